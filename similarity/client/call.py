"""Requests and replies as plain values; nothing here opens a connection."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from functools import cache
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

from pydantic import TypeAdapter, ValidationError

from similarity.client.problems import UnreadableAnswer
from similarity.company import DOT_SEGMENTS
from similarity.errors import InvalidInput

Answer = TypeVar("Answer")
Parameters: TypeAlias = Mapping[str, str | int | float | Sequence[str] | None]

JSON = "application/json"
NDJSON = "application/x-ndjson"
CSV = "text/csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A complete HTTP response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Call(Generic[Answer]):
    """One request, and the function that decodes its reply. `path` begins with a slash and is quoted.

    Every call may be sent again, even if the first request may have arrived: queries change nothing, changes have
    versions, and feedback has ids.
    """

    method: str
    path: str
    read: Callable[[Reply], Answer]
    body: bytes | None = None
    media_type: str = JSON
    accept: str = JSON


def path_of(*segments: str | int, parameters: Parameters | None = None) -> str:
    """Return the path `/a/b?c=d` with quoted segments; parameters that are None are omitted.

    Raises:
        InvalidInput: a text cannot be encoded, or a segment is `.` or `..`, which would address something else.
    """
    for segment in segments:
        if segment in DOT_SEGMENTS:
            raise InvalidInput(f"{segment!r} cannot be an id or a name in an address; give another one")
    given = {name: value for name, value in (parameters or {}).items() if value is not None}
    try:
        path = "".join(f"/{quote(str(segment), safe='')}" for segment in segments)
        return f"{path}?{urlencode(given, doseq=True)}" if given else path
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{error.object!a:.100} contains half a surrogate pair; remove it") from None


def as_json(members: object) -> bytes:
    """Return the JSON body of a request.

    Raises:
        InvalidInput: a value has no JSON form, such as a number that is not finite.
    """
    try:
        return json.dumps(members, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the request cannot be sent: {error}; use texts, finite numbers, true and false") from None


def json_reader(kind: type[Answer], *, member: str = "") -> Callable[[Reply], Answer]:
    """Return a function that decodes the JSON of a reply, or one `member` of it, into a dataclass or a tuple of them.

    Unknown JSON members are ignored, so that answers of a newer service can be read. A field with a default may be
    absent, so that answers of an older service can be read. Any other JSON raises UnreadableAnswer.
    """
    return lambda reply: _decode(kind, member, reply.body, reply)


def lines_reader(kind: type[Answer]) -> Callable[[Reply], tuple[Answer, ...]]:
    """Return a function that decodes each line of a reply, as `json_reader` does."""
    return lambda reply: tuple(_decode(kind, "", line, reply) for line in reply.body.splitlines())


def read_text(reply: Reply) -> str:
    """Return the body of a reply as text, without a byte order mark. Raises UnreadableAnswer if it is not UTF-8."""
    try:
        return reply.body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableAnswer(f"it is not UTF-8: {error}", request_id=reply.request_id) from None


def _decode(kind: Any, member: str, body: bytes, reply: Reply) -> Any:
    try:
        decoded = _decoder(kind, member).validate_json(body, strict=True)
    except ValidationError as failure:
        error = failure.errors(include_url=False)[0]
        if error["type"] == "json_invalid":
            reason = f"{error['msg']}: {body[:100]!r}; is this the URL of the search service?"
        else:
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
            reason = f"{place or 'JSON'}: {error['msg']}; found {error['input']!a:.60}"
        raise UnreadableAnswer(reason, request_id=reply.request_id) from None
    return getattr(decoded, member) if member else decoded


@cache
def _decoder(kind: Any, member: str) -> TypeAdapter[Any]:
    return TypeAdapter(make_dataclass("Object", [(member, kind)]) if member else kind)
