"""The description of the API: /openapi.json and the manual at /docs, made once.

Both need no key, so serving them must be cheap.
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
    """The OpenAPI document, and both responses as bytes."""

    document: Document
    openapi: bytes
    manual: bytes


class Description:
    """Describes an API at the first request: it takes a quarter of a second, which most tests do not need.

    Thread-safe. Without the lock FastAPI fails now and then if two threads describe at once.
    """

    def __init__(self, describe: Callable[[], Document]) -> None:
        self._describe = describe
        self._lock = Lock()
        self._made: Described | None = None

    def made(self) -> Described:
        """Return the description; the first call makes it."""
        with self._lock:
            if self._made is None:
                document = _with_problem_media_type(self._describe())
                self._made = Described(
                    document, bytes(JSONResponse(document).body), bytes(HTMLResponse(manual_page(document)).body)
                )
            return self._made

    async def ready(self) -> Described:
        """Return the description without blocking the event loop."""
        made = self._made
        return made if made is not None else await run_sync(self.made)


def add_description(app: FastAPI) -> None:
    """Add the description to `app`, which must have all its routes."""
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
    """Return the document with the media type of problems; FastAPI describes every answer as plain JSON."""
    for operations in document["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if not status.startswith("2") and "content" in response:
                    response["content"] = {MEDIA_TYPE: response["content"]["application/json"]}
    return document
