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
METHODS = ("get", "post", "put", "delete")
TAGS = ("Competitors", "Companies", "Matching", "Lists", "Feedback", "Writing", "Operation")
"""The order in the description. Routes are added in another one: `/companies/{id}/erasure` before `/companies/{id}`."""


@dataclass(frozen=True, slots=True)
class RenderedDescription:
    """The OpenAPI document, and the bodies of both responses."""

    document: Document
    openapi: bytes
    manual: bytes


class DescriptionCache:
    """The description of an API, rendered at the first request: this takes a quarter of a second.

    Thread-safe. Without the lock, FastAPI sometimes fails if two threads make the OpenAPI document at the same time.
    """

    def __init__(self, describe: Callable[[], Document]) -> None:
        self._describe = describe
        self._lock = Lock()
        self._rendered: RenderedDescription | None = None

    def get(self) -> RenderedDescription:
        """Return the description; the first call renders it."""
        with self._lock:
            if self._rendered is None:
                document = _in_order_of_tags(_set_problem_media_type(self._describe()))
                self._rendered = RenderedDescription(
                    document, bytes(JSONResponse(document).body), bytes(HTMLResponse(manual_page(document)).body)
                )
            return self._rendered

    async def get_async(self) -> RenderedDescription:
        """Return the description without blocking the event loop."""
        rendered = self._rendered
        return rendered if rendered is not None else await run_sync(self.get)


def add_description(app: FastAPI) -> None:
    """Add the description to `app`, which must have all its routes."""
    cache = DescriptionCache(app.openapi)
    # FastAPI's documented way to change the document.
    app.openapi = lambda: cache.get().document  # type: ignore[method-assign]

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return Response((await cache.get_async()).openapi, media_type="application/json")

    @app.get("/docs", include_in_schema=False)
    async def manual() -> Response:
        return HTMLResponse((await cache.get_async()).manual)


def _set_problem_media_type(document: Document) -> Document:
    """Set the media type of problems in `document`, and return it. FastAPI describes every response as plain JSON."""
    for operations in document["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if not status.startswith("2") and "content" in response:
                    response["content"] = {MEDIA_TYPE: response["content"]["application/json"]}
    return document


def _in_order_of_tags(document: Document) -> Document:
    """Sort the paths of `document` by the first of TAGS on an operation of a path, and its operations by METHODS."""
    document["tags"] = [{"name": tag} for tag in TAGS]
    document["paths"] = dict(sorted(document["paths"].items(), key=lambda path: min(map(_place, path[1].values()))))
    for path, operations in document["paths"].items():
        document["paths"][path] = dict(sorted(operations.items(), key=lambda operation: METHODS.index(operation[0])))
    return document


def _place(operation: Document) -> int:
    return TAGS.index(operation["tags"][0])
