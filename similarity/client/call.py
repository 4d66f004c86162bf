"""Requests and replies as plain values; nothing here opens a connection."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

from similarity.client.decoding import Undecodable, decode_json
from similarity.client.problems import UnreadableAnswer
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


def path_of(*segments: str, parameters: Parameters | None = None) -> str:
    """Return the path `/a/b?c=d` with quoted segments; parameters that are None are omitted.

    Raises:
        InvalidInput: a text cannot be encoded.
    """
    given = {name: value for name, value in (parameters or {}).items() if value is not None}
    try:
        path = "".join(f"/{quote(segment, safe='')}" for segment in segments)
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


def json_reader(record: type[Answer]) -> Callable[[Reply], Answer]:
    """Return a function that decodes a reply with one JSON object into `record`, or raises UnreadableAnswer."""

    def read(reply: Reply) -> Answer:
        return _decode(record, reply.body, reply)

    return read


def lines_reader(record: type[Answer]) -> Callable[[Reply], tuple[Answer, ...]]:
    """Return a function that decodes each line of a reply into `record`, or raises UnreadableAnswer."""

    def read(reply: Reply) -> tuple[Answer, ...]:
        return tuple(_decode(record, line, reply) for line in reply.body.splitlines())

    return read


def _decode(record: type[Answer], body: bytes, reply: Reply) -> Answer:
    try:
        return decode_json(record, body)
    except Undecodable as error:
        raise UnreadableAnswer(str(error), request_id=reply.request_id) from None


def read_text(reply: Reply) -> str:
    """Return the body of a reply as text. Raises UnreadableAnswer."""
    try:
        return reply.body.decode()
    except UnicodeDecodeError as error:
        raise UnreadableAnswer(f"it is not UTF-8: {error}", request_id=reply.request_id) from None


def ignore_body(_: Reply) -> None:
    """Decode a reply without a body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt to send a call, with times in seconds.

    Wait `after`, then send. Give up if the network is silent for `timeout`, or if the reply is not complete when the
    clock shows `until`.
    """

    after: float
    timeout: float
    until: float
