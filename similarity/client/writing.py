"""The calls that change companies. Each is safe to repeat: a version decides, not the order of arrival."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias

from similarity.client.call import NDJSON, Call, Reply, as_json, decoded, path_of, reading
from similarity.client.problems import UnreadableAnswer
from similarity.company import Company

LINES_AT_ONCE = 500
# Below the service's limit of 10 MB a request.
BYTES_AT_ONCE = 8_000_000

Change: TypeAlias = Company | Mapping[str, Any]
"""A company to put, or a line of the service's bulk format: `{"id": ..., "deleted": true}` deletes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What became of a change: applied, unchanged, superseded by a newer one, or accepted for later.

    `status` is the address that tells what became of an accepted one; see `write_status`.
    """

    outcome: str
    id: str = ""
    version: int | None = None
    warnings: tuple[str, ...] = ()
    status: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteStatus:
    """How far an accepted change is: still accepted, applied, or superseded by a newer one."""

    outcome: str
    id: str = ""
    version: int | None = None
    stored: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineResult:
    """What became of one line of a bulk request; lines count from 1."""

    line: int
    outcome: str
    id: str | None = None
    reason: str | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedGeneration:
    """What an erasure did in one generation."""

    generation: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """How much was removed of what people had added about a company."""

    events: int = 0
    lists: int = 0
    looks: int = 0
    notes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """How far an erasure is. `state` is running, done, or failed: erase again.

    `erased`: nobody finds the company any more. `compaction` is `running` while the words are still on
    the disk. `remaining` is what the service cannot reach, and what to do there.
    """

    id: str
    state: str
    erased: bool
    problem: str = ""
    generations: tuple[ErasedGeneration, ...] = ()
    published: bool = False
    forgotten: Forgotten = Forgotten()
    compaction: str = "running"
    remaining: tuple[str, ...] = ()


def put(company: Company, *, event_time: datetime | None = None) -> Call[Written]:
    """Adds or replaces a company. `event_time`, with a zone, is since when this is true: the service's clock
    decides without it, so say it where changes may overtake each other.
    """
    members = company.content()
    if event_time is not None:
        members["event_time"] = event_time.isoformat()
    return Call(method="PUT", path=path_of("companies", company.id), body=as_json(members), read=reading(Written))


def delete(company_id: str, *, event_time: datetime | None = None) -> Call[Written]:
    """Deletes a company as of `event_time` (the service's clock without it)."""
    parameters = {"event_time": None if event_time is None else event_time.isoformat()}
    return Call(method="DELETE", path=path_of("companies", company_id, parameters=parameters), read=reading(Written))


def write_status(company_id: str, version: int) -> Call[WriteStatus]:
    """Returns how far a change is that was answered with this `version`, by the version that is stored now."""
    return Call(method="GET", path=path_of("companies", company_id, "writes", str(version)), read=reading(WriteStatus))


def erase(company_id: str) -> Call[Erasure]:
    """Erases a company everywhere and for good, with what people said of it.

    The answer comes when nobody finds it any more. The rest goes on in the service: `erasure` says how far it is.
    """
    return Call(method="POST", path=path_of("companies", company_id, "erasure"), read=reading(Erasure))


def erasure(company_id: str) -> Call[Erasure]:
    """How far the last erasure of a company is."""
    return Call(method="GET", path=path_of("companies", company_id, "erasure"), read=reading(Erasure))


def bulk(changes: Iterable[Change], *, at_once: int = LINES_AT_ONCE) -> Iterator[Call[tuple[LineResult, ...]]]:
    """The calls that send many changes, `at_once` a call; results number the lines over all of them."""
    sent = 0
    lines: list[bytes] = []
    for change in changes:
        line = as_json({"id": change.id, **change.content()} if isinstance(change, Company) else dict(change)) + b"\n"
        if lines and (len(lines) >= at_once or sum(map(len, lines)) + len(line) > BYTES_AT_ONCE):
            yield _bulk(lines, sent)
            sent += len(lines)
            lines = []
        lines.append(line)
    if lines:
        yield _bulk(lines, sent)


def _bulk(lines: list[bytes], sent: int) -> Call[tuple[LineResult, ...]]:
    def read(reply: Reply) -> tuple[LineResult, ...]:
        results = [decoded(LineResult, value, reply) for value in _lines(reply)]
        return tuple(replace(result, line=result.line + sent) for result in results)

    return Call(
        method="POST", path="/companies/bulk", body=b"".join(lines), media_type=NDJSON, accept=NDJSON, read=read
    )


def _lines(reply: Reply) -> Iterator[object]:
    for line in reply.body.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            raise UnreadableAnswer(f"a line is no JSON: {line[:100]!r}", request_id=reply.request_id) from None
