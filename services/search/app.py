"""The search service as an application: `create_app` puts the parts together."""

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.staticfiles import StaticFiles

from services.search import problems
from services.search.envelope import Envelope
from services.search.failures import answer_failures
from services.search.manual import manual_page
from services.search.routes import search_routes
from services.search.service import QueryEncoder, SearchService
from similarity.index.protocol import CompanyIndex

WEB = Path(__file__).parent / "web"
API_VERSION = "1.0"
DESCRIPTION = (
    "Who competes with a company, judged by what the companies say about themselves. Every error is a problem "
    "document (RFC 9457). One index, one tenant, no authentication: the service listens on this machine only."
)


def create_app(*, index: CompanyIndex, encoder: QueryEncoder | None = None) -> FastAPI:
    """A new application that answers from `index`.

    `encoder` is for free text and may be missing; questions by company never use it. Both stay the
    caller's: whoever opened the index closes it after the application has stopped.
    """
    app = FastAPI(
        title="Company similarity",
        version=API_VERSION,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    app.add_middleware(Envelope)
    answer_failures(app)
    app.include_router(search_routes(SearchService(index, encoder)))
    _add_pages(app)
    _say_problem_media_type(app)
    return app


def _add_pages(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(WEB / "index.html")

    @app.get("/docs", include_in_schema=False)
    def manual() -> HTMLResponse:
        return HTMLResponse(manual_page(app.openapi()))

    app.mount("/assets", StaticFiles(directory=WEB), name="assets")


def _say_problem_media_type(app: FastAPI) -> None:
    """FastAPI describes every answer as plain JSON; our problems say what they are."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = describe()
            for operations in document["paths"].values():
                for operation in operations.values():
                    for status, response in operation["responses"].items():
                        if not status.startswith("2"):
                            response["content"] = {problems.MEDIA_TYPE: response["content"]["application/json"]}
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to change the document
