"""What the API says about itself: /openapi.json and the manual at /docs, made once and handed out as they are.

Anybody may ask for both without a key, so asking must cost next to nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias

from anyio.to_thread import run_sync
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, JSONResponse, Response

from .manual import manual_page
from .wire.problem_documents import MEDIA_TYPE

Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Described:
    """The document, and what is sent of it."""

    document: Document
    openapi: bytes
    manual: bytes


class Description:
    """Describes an API when that is first asked for: it takes a quarter of a second, which many tests can spare.

    Thread-safe: FastAPI fails now and then where two threads describe at once, and whoever asks sees the
    document only when it is finished.
    """

    def __init__(self, describe: Callable[[], Document]) -> None:
        self._describe = describe
        self._lock = Lock()
        self._made: Described | None = None

    def made(self) -> Described:
        """The description; may have to wait for it."""
        with self._lock:
            if self._made is None:
                document = _with_problem_media_type(self._describe())
                self._made = Described(
                    document, bytes(JSONResponse(document).body), bytes(HTMLResponse(manual_page(document)).body)
                )
            return self._made

    async def ready(self) -> Described:
        """The same for the event loop, which does not wait."""
        made = self._made
        return made if made is not None else await run_sync(self.made)


def add_description(app: FastAPI) -> None:
    """Has `app` answer what it is; to be called when it has all its routes."""
    description = Description(app.openapi)
    # FastAPI's documented way to change the document.
    app.openapi = lambda: description.made().document  # type: ignore[method-assign]

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return Response((await description.ready()).openapi, media_type="application/json")

    @app.get("/docs", include_in_schema=False)
    async def manual() -> Response:
        return HTMLResponse((await description.ready()).manual)


def _with_problem_media_type(document: Document) -> Document:
    """FastAPI describes every answer as plain JSON; our problems say what they are."""
    for operations in document["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if not status.startswith("2") and "content" in response:
                    response["content"] = {MEDIA_TYPE: response["content"]["application/json"]}
    return document
