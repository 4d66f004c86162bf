"""The search service: `create_app` builds the application from its parts."""

import shutil
import tempfile
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import Depends, FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from similarity.feedback.protocol import Workspace
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.protocol import CompanyIndex
from similarity.model.encoder_protocol import Encoder
from similarity.search.queries.encoders import QueryEncoders
from similarity.search.searcher import Searcher
from similarity.upkeep.outage import Outage, watched

from .asking.map_routes import map_routes
from .asking.maps import MapService
from .asking.routes import search_routes
from .asking.service import SearchService
from .description import add_description
from .guards.concurrency import begin_heavy_work, stop_if_late
from .guards.guards import Guards, guard
from .matches.match_routes import match_routes
from .matches.matching import MatchService
from .wire.failures import answer_failures, each_parameter_once
from .wire.paths import match_line_breaks_in_paths
from .workspace.feedback import FeedbackService
from .workspace.feedback_next import NextService
from .workspace.feedback_routes import feedback_routes
from .workspace.health import WorkspaceHealth
from .workspace.lists import ListsService
from .workspace.lists_routes import lists_routes
from .writes.write_routes import erasure_routes, write_routes
from .writes.write_service import WriteMode
from .writes.write_setup import Writing, set_up_writing

WEB = Path(__file__).parent / "web"
API_VERSION = "1.0"
WORKSPACE = "the store of feedback and lists"  # its name in the log
# Worker threads for work without a permit: health checks and files of the page.
SPARE_THREADS = 8
DESCRIPTION = (
    "Finds the companies that compete with a given company, from what they say about themselves. Every error is a "
    "problem document (RFC 9457). A service has one index, for one tenant. If it has keys, send one as "
    "`Authorization: Bearer KEY`."
)


def create_app(
    *,
    index: CompanyIndex,
    encoder: Encoder | None = None,
    encoders: Mapping[str, Encoder] | None = None,
    workspace: Workspace | None = None,
    writing: Writing | None = None,
    guards: Guards | None = None,
    cursor_key: bytes | None = None,
    rows_at_once: int = 1,
) -> FastAPI:
    """Return a new application that answers from `index`.

    `encoders`: encoders by id, for free text, reasons and writes. The application uses the encoder of the live
    generation, also after a promotion. `encoder`: a single encoder, instead of `encoders`. Without an encoder, queries
    by company still work. `workspace`: stores verdicts and lists; by default they are deleted when the application
    stops. `writing`: the services of the write routes; by default companies are written to the index, or not at all if
    there is no encoder. `guards`: the middlewares and their settings. `cursor_key`: signs cursors; a process accepts
    the cursors of all processes with the same key. `rows_at_once`: threads that match the rows of one list.

    The caller closes what it passes in, after the application has stopped.
    """
    closing = ExitStack()
    index = watched(index, Outage("the index"))
    match_line_breaks_in_paths()
    guards = guards or Guards()
    encoders = encoders if encoders is not None else {encoder.encoder_id: encoder} if encoder else {}
    workspace = watched(_temporary_workspace(closing) if workspace is None else workspace, Outage(WORKSPACE))
    if writing is None:
        mode = WriteMode.DIRECT if encoders else WriteMode.OFF
        writing = set_up_writing(mode, index=index, encoders=encoders, workspace=workspace)
        closing.callback(writing.close)
    query_encoders = QueryEncoders(
        encoders,
        on_lookup=guards.metrics.cache_asked,
        before_heavy_work=begin_heavy_work,
        needed=lambda: {generation.encoder_id for generation in index.generations()},
    )
    searcher = Searcher(index, query_encoders)
    search = SearchService(
        searcher, workspace, cursor_key=cursor_key, before_each=stop_if_late, before_heavy_work=begin_heavy_work
    )
    app = FastAPI(
        title="Company similarity",
        version=API_VERSION,
        description=DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(each_parameter_once)],
        separate_input_output_schemas=False,
        generate_unique_id_function=lambda route: route.name,
        lifespan=_lifespan(closing, threads=guards.gates.threads, at_start=writing.erasures.resume),
        # FastAPI's own spans have paths and parameters, which name the companies of a query; ours have only the route.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
    )
    answer_failures(app)
    writes = replace(writing.writes, removed=query_encoders.forget)
    app.include_router(write_routes(writes))
    app.include_router(erasure_routes(replace(writing.erasures, removed=query_encoders.forget)))
    app.include_router(search_routes(search, WorkspaceHealth(workspace).trouble))
    app.include_router(map_routes(MapService(search)))
    app.include_router(match_routes(MatchService(index, rows_at_once=rows_at_once)))
    app.include_router(feedback_routes(FeedbackService(search, workspace), NextService(search, workspace)))
    app.include_router(lists_routes(ListsService(search, workspace, before_heavy_work=begin_heavy_work)))
    _add_pages(app)
    add_description(app)
    guard(app, guards)
    return app


def _temporary_workspace(closing: ExitStack) -> Workspace:
    """Return a workspace in a new folder, which `closing` deletes."""
    folder = tempfile.mkdtemp(prefix="similarity-workspace-")
    workspace = SqliteWorkspace(Path(folder) / "workspace")
    # The finalizer deletes the folder of an application that is never started, and therefore never stopped.
    closing.callback(weakref.finalize(workspace, shutil.rmtree, folder, ignore_errors=True))
    closing.callback(workspace.close)
    return workspace


def _lifespan(
    closing: ExitStack, *, threads: int, at_start: Callable[[], None]
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Return the lifespan: provide worker threads and call `at_start`; when the application stops, close `closing`."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        limiter = current_default_thread_limiter()
        limiter.total_tokens = max(limiter.total_tokens, threads + SPARE_THREADS)
        at_start()
        yield
        await run_sync(closing.close)

    return lifespan


def _add_pages(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(WEB / "index.html")

    app.mount("/assets", StaticFiles(directory=WEB), name="assets")
