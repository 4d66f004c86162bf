"""Requests and replies as plain values; nothing here opens a connection."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

from similarity.client.decoding import Undecodable, decode
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
    """Return the path `/a/b?c=d` with quoted segments; parameters that are None are omitted."""
    path = "".join(f"/{quote(segment, safe='')}" for segment in segments)
    given = {name: value for name, value in (parameters or {}).items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


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
        return decode_value(record, parse_json(reply), reply)

    return read


def decode_value(record: type[Answer], value: object, reply: Reply) -> Answer:
    """Return the record decoded from `value`, a part of `reply`. Raises UnreadableAnswer."""
    try:
        return decode(record, value)
    except Undecodable as error:
        raise UnreadableAnswer(str(error), request_id=reply.request_id) from None


def parse_json(reply: Reply) -> Any:
    """Return the parsed JSON body of a reply. Raises UnreadableAnswer."""
    try:
        return json.loads(reply.body)
    except ValueError:
        raise UnreadableAnswer(
            f"it is not JSON: {reply.body[:100]!r}; is this the URL of the search service?",
            request_id=reply.request_id,
        ) from None


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
