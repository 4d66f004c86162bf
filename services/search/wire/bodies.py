"""Request bodies: their models, and how routes read them: strictly as JSON, or as bytes."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeAlias, TypeVar

from anyio.to_thread import run_sync
from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from similarity.company import ID_PATTERN

from . import problems
from .problem_documents import NO_OBJECT, Problem, invalid_request, pattern_of
from .strict_json import strict_json
from .tables import CSV

JSON = "application/json"
EXCEL = frozenset({"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "application/vnd.ms-excel"})
# Parsing more than this takes long enough to delay other requests.
MAX_BYTES_ON_EVENT_LOOP = 50_000

# With ^ and $: otherwise a longer text that contains a valid id would match.
WHOLE_ID = pattern_of(f"^{ID_PATTERN.pattern}$", "must be an id: 1 to 128 letters, digits and . _ : -")
CompanyId = Annotated[str, StringConstraints(pattern=WHOLE_ID)]
Item = TypeVar("Item")

# Bodies are validated on the event loop. A body of 2 MB may have a million wrong items; collecting an error for each
# would stop the whole process for seconds.
Listed: TypeAlias = Annotated[list[Item], Field(fail_fast=True)]
"""A list in a request; validation stops at the first wrong item."""


class Closed(BaseModel):
    """A request body, an object in one, or query parameters. Members that are not declared are refused."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _is_object(cls, given: Any) -> Any:
        if given is None or isinstance(given, str | int | float | list):
            raise PydanticCustomError("no_object", f"{NO_OBJECT}; /docs#{cls.__name__} describes it")
        return given


def example(**members: Any) -> ConfigDict:
    """Return the configuration of a model; its section at /docs shows an object with these `members`."""
    return ConfigDict(json_schema_extra={"examples": [members]})


def media_type_of(request: Request, *accepted: str) -> str:
    """Return the media type of a request's body.

    Raises:
        Problem: it is not one of `accepted`.
    """
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given in EXCEL and given not in accepted and CSV in accepted:
        raise Problem(
            problems.WRONG_MEDIA_TYPE,
            "Excel files are not read here; save the list as CSV (in Excel: CSV UTF-8) and send it with Content-Type: "
            f"{CSV}",
        )
    if given not in accepted:
        problem = f"the Content-Type of the body is {given[:80]!a}" if given else "the body has no Content-Type"
        raise Problem(problems.WRONG_MEDIA_TYPE, f"{problem}; send it with Content-Type: {' or '.join(accepted)}")
    return given


def body_of(*media_types: str) -> Any:
    """Return the dependency that gives a route its body as bytes, if it has one of these media types."""

    async def body(request: Request) -> bytes:
        media_type_of(request, *media_types)
        return await request.body()

    return Depends(body)


def described_body(media_type: str, schema: dict[str, Any], example: Any = None) -> dict[str, Any]:
    """Return the OpenAPI entry of a body that the route reads itself."""
    content = {"schema": schema} if example is None else {"schema": schema, "example": example}
    return {"requestBody": {"required": True, "content": {media_type: content}}}


class StrictRoute(APIRoute):
    """A route that reads its JSON body with `strict_json`: `APIRouter(route_class=StrictRoute)`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler that FastAPI calls (its documented way to change how requests are read)."""
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
            return self  # FastAPI knows whether the route needs a body
        media_type_of(self, JSON)
        try:
            in_thread = len(raw) >= MAX_BYTES_ON_EVENT_LOOP
            self._value = await run_sync(strict_json, raw) if in_thread else strict_json(raw)
        except ValueError as error:
            raise invalid_request([{"loc": ["body"], "msg": f"the JSON cannot be used: {error}"}]) from None
        return self

    async def json(self) -> Any:
        return self._value
