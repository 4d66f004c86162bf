"""Calls that change companies. Each is safe to repeat: the version decides, not the order of arrival."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from math import isnan
from numbers import Integral
from typing import Any, TypeAlias

from similarity.client.call import NDJSON, Call, Reply, as_json, json_reader, lines_reader, path_of
from similarity.company import Company
from similarity.errors import InvalidInput
from similarity.formats.plain_values import plain_value

LINES_PER_REQUEST = 500
# Below the service's limit of 10 MB a request.
BYTES_PER_REQUEST = 8_000_000

Change: TypeAlias = Company | Mapping[str, Any]
"""A company to put, or a line of the service's bulk format: `{"id": ..., "deleted": true}` deletes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The result of a change: applied, unchanged, superseded by a newer one, or accepted for later.

    `status`: the URL path with the later result of an accepted change; see `write_status`.
    """

    outcome: str
    id: str = ""
    version: int | None = None
    warnings: tuple[str, ...] = ()
    status: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteStatus:
    """The state of an accepted change: still accepted, applied, or superseded by a newer one."""

    outcome: str
    id: str = ""
    version: int | None = None
    stored: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineResult:
    """The result of one line of a bulk request; line numbers start at 1."""

    line: int
    outcome: str
    id: str | None = None
    reason: str | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedGeneration:
    """The result of an erasure in one generation."""

    generation: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The numbers of users' records about a company that were removed or changed."""

    events: int = 0
    lists: int = 0
    looks: int = 0
    notes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The progress of an erasure. `state`: running, done, or failed (then erase again).

    `erased`: the company is no longer found. `compaction`: `running` while the text is still on the disk.
    `warnings`: from `erase`, if no company with this id was stored. `remaining`: the copies that the service cannot
    reach, and what to do there.
    """

    id: str
    state: str
    erased: bool
    problem: str = ""
    warnings: tuple[str, ...] = ()
    generations: tuple[ErasedGeneration, ...] = ()
    published: bool = False
    forgotten: Forgotten = Forgotten()
    compaction: str = "running"
    remaining: tuple[str, ...] = ()


def put(company: Company | Mapping[str, Any], *, event_time: datetime | str | None = None) -> Call[Written]:
    """Add or replace a company, also given as a dict: `{"id": ..., "name": ..., "description": ...}`.

    `event_time`, with a zone, decides which of several changes is newer. Without it, the time of receipt decides; give
    it if changes can arrive out of order.

    Raises:
        InvalidInput: a dict has no id.
    """
    members = _members(company)
    if isinstance(members.get("id"), Integral) and not isinstance(members["id"], bool):  # a column of numbers
        members["id"] = str(members["id"])
    if not isinstance(members.get("id"), str):
        raise InvalidInput("the company has no id; give one: put({'id': 'acme', 'name': ..., 'description': ...})")
    if event_time is not None:
        members["event_time"] = _iso_text(event_time)
    return Call("PUT", path_of("companies", members["id"]), json_reader(Written), body=as_json(members))


def delete(company_id: str, *, event_time: datetime | str | None = None) -> Call[Written]:
    """Delete a company as of `event_time` (by default the time of receipt)."""
    parameters = {"event_time": None if event_time is None else _iso_text(event_time)}
    return Call("DELETE", path_of("companies", company_id, parameters=parameters), json_reader(Written))


def _iso_text(time: datetime | str) -> str:
    """Return a time in ISO 8601; a text is returned unchanged, for the service to check."""
    return time if isinstance(time, str) else time.isoformat()


def write_status(company_id: str, version: int) -> Call[WriteStatus]:
    """Return the state of the accepted change with this `version`, by comparing it with the stored version."""
    return Call("GET", path_of("companies", company_id, "writes", str(version)), json_reader(WriteStatus))


def erase(company_id: str) -> Call[Erasure]:
    """Erase a company permanently, with the feedback about it.

    Returns when the company is no longer found. The service does the rest in the background; see `erasure`.
    """
    return Call("POST", path_of("companies", company_id, "erasure"), json_reader(Erasure))


def erasure(company_id: str) -> Call[Erasure]:
    """Return the progress of the last erasure of a company."""
    return Call("GET", path_of("companies", company_id, "erasure"), json_reader(Erasure))


def bulk(
    changes: Iterable[Change], *, at_once: int = LINES_PER_REQUEST
) -> Iterator[Call[tuple[LineResult, ...]] | tuple[LineResult, ...]]:
    """Yield the calls that send many changes, `at_once` per call; line numbers count over all calls.

    A change that has no JSON form is not sent; its result is yielded in its place, and the other changes go on.
    """
    sent = 0
    lines: list[bytes] = []
    for change in changes:
        members = _members(change)
        try:
            line = as_json(members) + b"\n"
        except InvalidInput as error:
            if lines:
                yield _bulk(lines, sent)
            sent += len(lines) + 1
            lines = []
            company_id = members.get("id")
            yield (
                LineResult(
                    line=sent,
                    outcome="rejected",
                    id=company_id if isinstance(company_id, str) else None,
                    reason=str(error).replace("the request cannot be sent", "not sent", 1),
                ),
            )
            continue
        if lines and (len(lines) >= at_once or sum(map(len, lines)) + len(line) > BYTES_PER_REQUEST):
            yield _bulk(lines, sent)
            sent += len(lines)
            lines = []
        lines.append(line)
    if lines:
        yield _bulk(lines, sent)


def _members(change: Change) -> dict[str, Any]:
    return {"id": change.id, **change.content()} if isinstance(change, Company) else _plain(change)


def _plain(value: Any) -> Any:
    """Return a value of a data frame as a JSON value: NaN, which is a missing value in a data frame, becomes null."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    plain = plain_value(value)
    if isinstance(plain, list):
        return [_plain(each) for each in plain]
    return None if isinstance(plain, float) and isnan(plain) else plain


def _bulk(lines: list[bytes], sent: int) -> Call[tuple[LineResult, ...]]:
    def read(reply: Reply) -> tuple[LineResult, ...]:
        return tuple(replace(result, line=result.line + sent) for result in lines_reader(LineResult)(reply))

    return Call("POST", "/companies/bulk", read, body=b"".join(lines), media_type=NDJSON, accept=NDJSON)
