"""What goes out and what comes in, as plain values: nothing here opens a connection."""

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
    """An HTTP answer: header names in lower case, the body in full."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[Answer]):
    """One request and how its answer is read. `path` begins with a slash and is quoted.

    Whatever is sent here may be sent again, also when nobody knows whether it arrived: questions
    change nothing, changes carry versions, and feedback carries ids.
    """

    method: str
    path: str
    read: Callable[[Reply], Answer]
    body: bytes | None = None
    media_type: str = JSON
    accept: str = JSON


def path_of(*segments: str, parameters: Parameters | None = None) -> str:
    """The path `/a/b?c=d`, whatever the segments hold; parameters that are None are left out."""
    path = "".join(f"/{quote(segment, safe='')}" for segment in segments)
    given = {name: value for name, value in (parameters or {}).items() if value is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def as_json(members: object) -> bytes:
    """JSON as a request's body.

    Raises:
        InvalidInput: something in it has no form in JSON, such as a number that is not finite.
    """
    try:
        return json.dumps(members, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"this cannot be sent: {error}; use texts, finite numbers, true and false") from None


def reading(record: type[Answer]) -> Callable[[Reply], Answer]:
    """Reads an answer that is one JSON object.

    The reader raises:
        UnreadableAnswer: the answer is something else.
    """

    def read(reply: Reply) -> Answer:
        return decoded(record, json_of(reply), reply)

    return read


def decoded(record: type[Answer], value: object, reply: Reply) -> Answer:
    """The record that `value`, a part of `reply`, spells out. Raises UnreadableAnswer."""
    try:
        return decode(record, value)
    except Undecodable as error:
        raise UnreadableAnswer(str(error), request_id=reply.request_id) from None


def json_of(reply: Reply) -> Any:
    """The JSON that an answer holds. Raises UnreadableAnswer."""
    try:
        return json.loads(reply.body)
    except ValueError:
        raise UnreadableAnswer(
            f"it is no JSON: {reply.body[:100]!r}; is the address that of the search service?",
            request_id=reply.request_id,
        ) from None


def nothing(_: Reply) -> None:
    """Reads an answer of which only the status matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One sending of a call, times in seconds.

    Wait `after`, then send; give up when the network is silent for `timeout`, or when the clock shows
    `until` and the answer is not complete.
    """

    after: float
    timeout: float
    until: float
