"""Routes whose JSON bodies are read strictly: what is no JSON by the book is a problem before it is validated."""

from collections.abc import Callable, Coroutine
from typing import Any

from anyio.to_thread import run_sync
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from . import problems
from .problem_documents import Problem
from .strict_json import strict_json

MEDIA_TYPE = "application/json"
# Reading more than this takes long enough to keep others waiting.
READ_AT_ONCE = 50_000


class StrictRoute(APIRoute):
    """Reads the JSON body of its requests with `strict_json`: `APIRouter(route_class=StrictRoute)`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler that FastAPI calls (its documented way to change how requests are read)."""
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def handle_strictly(request: Request) -> Response:
            return await handle(await _StrictRequest(request.scope, request.receive).read())

        return handle_strictly


class _StrictRequest(Request):
    """A request whose JSON has been read already."""

    _value: Any = None

    async def read(self) -> "_StrictRequest":
        raw = await self.body()
        if not raw:
            # FastAPI knows whether the route needs a body.
            return self
        given = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if given != MEDIA_TYPE:
            raise Problem(
                problems.WRONG_MEDIA_TYPE,
                f"the body is said to be {given[:80]!a}; send it with Content-Type: {MEDIA_TYPE}",
            )
        try:
            self._value = strict_json(raw) if len(raw) < READ_AT_ONCE else await run_sync(strict_json, raw)
        except ValueError as error:
            reason = {"type": "json_invalid", "loc": ("body",), "msg": f"is no JSON that can be used: {error}"}
            raise RequestValidationError([reason]) from None
        return self

    async def json(self) -> Any:
        return self._value
