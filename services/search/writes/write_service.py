"""Add, change and delete companies, independent of HTTP: from bodies to response models or Problems.

The version of a write is made from its event time. Therefore the same write may be sent any number of times, and late
writes change nothing. A write without an event time has the time of receipt, or the next version after the stored one:
it is applied or refused, but never superseded.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from itertools import chain, repeat

from similarity.company import DeletedCompany, utc_now
from similarity.errors import (
    AuditUnavailable,
    EncoderMismatch,
    EncodingFailed,
    IndexUnavailable,
    InvalidBundle,
    InvalidInput,
    LeaseHeld,
    LeaseLost,
    SimilarityError,
)
from similarity.index.attributes import AttributeSchema
from similarity.index.protocol import CompanyIndex
from similarity.ingest.records import Change, ParsedRecord
from similarity.preparation.words import MIN_CONTENT_WORDS
from similarity.text import text_to_rank_by
from similarity.upkeep.erasure import not_stored

from ..wire import problems
from ..wire.problem_documents import Problem, invalid_request
from ..wire.problems import Kind
from .group_commit import STORED, GroupCommit, Written, weight_of
from .write_records import Line, company_of_body, deletion, read_line
from .write_schemas import MAX_BULK_LINES, BulkResult, Outcome, WriteAnswer, WriteStatus

SUPERSEDED = "a newer version of this company is stored, so this write changed nothing"
OVERTAKEN = "other writes of this company were stored at every attempt; send it again, or give it an event_time"
NO_LINES = (
    "send one JSON object in each line, uncompressed (of an array: jq -c '.[]' FILE); CSV, Excel and other files are "
    "loaded with similarity ingest"
)
NO_VECTOR = (
    f"the description has fewer than {MIN_CONTENT_WORDS} words that say what the company does, so the company is in no "
    "ranking, and nothing can be compared with it; write a longer description"
)
SEND_AGAIN = "it may or may not be stored: send it again, which is harmless"

log = logging.getLogger(__name__)


class WriteMode(StrEnum):
    """The destination of writes: the index, Kafka, or none (writes are refused)."""

    DIRECT = "direct"
    """Embed and store them before the answer."""
    KAFKA = "kafka"
    """Publish them; `pipelines.stream` stores them."""
    OFF = "off"
    """Refuse them."""


@dataclass(frozen=True, slots=True)
class WriteService:
    """Writes companies to `index` through `commits`, which is None if writing is off.

    `clock`: returns the time of receipt. `removed`: called with the ids of deleted companies. All writes raise
    NoLiveGeneration if the index has no generation to write to.
    """

    commits: GroupCommit | None
    index: CompanyIndex
    clock: Callable[[], datetime] = utc_now
    removed: Callable[[Collection[str]], None] = lambda _: None

    def put(self, company_id: str, body: bytes) -> WriteAnswer:
        """Store the company in `body` (JSON) under this id, replacing all its members.

        Raises:
            Problem: writing is off, the body is invalid, or the store does not accept the write.
        """
        commits = self.require_on()
        parsed = company_of_body(body, company_id, now=self.clock(), declared=self._declared)
        return _answer(parsed, write_one(commits, parsed.change))

    def delete(self, company_id: str, event_time: str | None) -> WriteAnswer:
        """Delete a company; an unknown id is stored as deleted too.

        Raises:
            Problem: writing is off, the time is invalid, or the store does not accept the write.
        """
        commits = self.require_on()
        parsed = deletion(company_id, event_time, now=self.clock())
        missing = missing_warnings(self.index, company_id)
        written = write_one(commits, parsed.change)
        self.removed({company_id})
        # After a repeated delete (`unchanged`), the company may be missing only because of the first delete.
        is_new = written.outcome in {Outcome.APPLIED, Outcome.ACCEPTED}
        return _answer(parsed, written, missing if is_new else [])

    def bulk(self, body: bytes) -> Iterator[list[BulkResult]]:
        """Return one result per line of NDJSON, in order, in parts that are yielded while the lines are written.

        Raises:
            Problem: writing is off, there are too many lines, no line is an object, or the store does not accept the
                first part. Later failures are results of their lines.
        """
        commits = self.require_on()
        lines = body.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if body.strip() and not any(line.lstrip().startswith(b"{") for line in lines):
            raise invalid_request([{"loc": ["body"], "msg": NO_LINES}])
        if len(lines) - (not lines[-1]) > MAX_BULK_LINES:
            raise Problem(problems.BODY_TOO_LARGE, f"there are more than {MAX_BULK_LINES:,} lines; send them in parts")
        numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
        now, declared = self.clock(), cache(self._declared)
        read = [read_line(number, line, now=now, declared=declared) for number, line in numbered]
        parts = _parts(read, commits.full_batch)
        first = self._write_lines(commits, next(parts, []))
        return chain([first], self._rest(commits, parts))

    def status(self, company_id: str, version: int) -> WriteStatus:
        """Return the state of a write of this version, from the version that the live generation holds.

        Raises:
            NoLiveGeneration: nothing is stored yet.
            IndexUnavailable: the index cannot be read.
        """
        stored = self.index.stored_versions(self.index.live().name, [company_id]).get(company_id)
        outcome = Outcome.APPLIED if stored == version else Outcome.SUPERSEDED
        if stored is None or stored < version:
            outcome = Outcome.ACCEPTED
        return WriteStatus(id=company_id, version=version, outcome=outcome, stored=stored)

    def require_on(self) -> GroupCommit:
        """Return `commits`; raises a Problem if writing is off."""
        if self.commits is None:
            raise Problem(
                problems.WRITES_OFF,
                "this service is read-only; the operator can set SIMILARITY_SERVICE_WRITES=direct (or kafka)",
            )
        return self.commits

    def close(self) -> None:
        """Finish the waiting writes and refuse new ones."""
        if self.commits is not None:
            self.commits.close()

    def _declared(self) -> AttributeSchema:
        """Return the declared types; none if the index cannot be read, because Kafka still accepts writes."""
        try:
            return self.index.attributes()
        except SimilarityError as error:
            log.warning("attributes are written without reading the declared types: %s", error)
            return AttributeSchema()

    def _write_lines(self, commits: GroupCommit, lines: Sequence[Line]) -> list[BulkResult]:
        changes = [line.parsed.change for line in lines if line.parsed]
        written = _committed(commits, changes, waits_longer_for_slot=True) if changes else []
        if deleted := {change.id for change in changes if isinstance(change, DeletedCompany)}:
            self.removed(deleted)
        return _results(lines, iter(written))

    def _rest(self, commits: GroupCommit, parts: Iterable[Sequence[Line]]) -> Iterator[list[BulkResult]]:
        """Yield the results of the further parts. After a failure the store is not called again: each call may wait."""
        trouble = ""
        for lines in parts:
            if not trouble:
                try:
                    yield self._write_lines(commits, lines)
                    continue
                except (Problem, SimilarityError) as error:
                    trouble = str(error)
            yield _results(lines, repeat(Written(Outcome.FAILED, trouble)))


def _parts(lines: Sequence[Line], most: Callable[[], int]) -> Iterator[list[Line]]:
    """Yield consecutive lines that are written together, with at most the weight `most()`.

    Only a single line may exceed it.
    """
    part: list[Line] = []
    weight = 0
    for line in lines:
        added = weight_of(line.parsed.change) if line.parsed else 1
        if part and weight + added > most():
            yield part
            part, weight = [], 0
        part.append(line)
        weight += added
    if part:
        yield part


def _results(lines: Sequence[Line], written: Iterator[Written]) -> list[BulkResult]:
    """Return the result of each line; `written`: the results of the lines with a change."""
    return [
        _result(line, line.parsed, next(written))
        if line.parsed
        else BulkResult(line=line.number, id=line.id, outcome=Outcome.REJECTED, reason=line.reason)
        for line in lines
    ]


def _result(line: Line, parsed: ParsedRecord, written: Written) -> BulkResult:
    if _is_overtaken(parsed.change, written):
        return BulkResult(line=line.number, id=line.id, outcome=Outcome.FAILED, reason=OVERTAKEN)
    return BulkResult(
        line=line.number,
        id=line.id,
        outcome=written.outcome,
        reason=written.reason or "; ".join(_warnings(parsed, written)),
        status=_status_address(parsed.change, written),
    )


def write_one(commits: GroupCommit, change: Change) -> Written:
    """Write one change and return its result.

    Raises:
        Problem: it is not stored (or, with Kafka, not acknowledged).
    """
    [written] = _committed(commits, [change], waits_longer_for_slot=False)
    if _is_overtaken(change, written):
        raise Problem(problems.WRITE_CONFLICT, OVERTAKEN)
    if written.outcome is Outcome.REJECTED:
        raise Problem(problems.WRITE_REJECTED, written.reason)
    if written.outcome is Outcome.FAILED:
        raise Problem(problems.WRITE_FAILED, f"{written.reason or 'the store did not accept it'}; {SEND_AGAIN}")
    return written


def _committed(commits: GroupCommit, changes: Sequence[Change], *, waits_longer_for_slot: bool) -> list[Written]:
    try:
        return commits.write(changes, waits_longer_for_slot=waits_longer_for_slot)
    except SimilarityError as error:
        raise refusal(error) from error


def refusal(error: SimilarityError) -> Exception:
    """Return the Problem that an error of a store or an encoder becomes; the error itself if `failures` handles it."""
    if isinstance(error, EncoderMismatch):
        return Problem(problems.WRITE_ENCODER_MISSING, f"{error}; {SEND_AGAIN}")
    known: dict[type[SimilarityError], tuple[Kind, str]] = {
        InvalidBundle: (
            problems.WRITE_ENCODER_MISSING,
            f"a bundle in the index's bundle folder is damaged (the service's log says which); {SEND_AGAIN}",
        ),
        EncodingFailed: (problems.WRITE_FAILED, f"the encoder fails on every text; {SEND_AGAIN}"),
        IndexUnavailable: (problems.INDEX_UNAVAILABLE, f"the index does not accept writes; {SEND_AGAIN}"),
        AuditUnavailable: (problems.WRITE_FAILED, f"the audit record cannot be written; {SEND_AGAIN}"),
        LeaseHeld: (problems.WRITE_FAILED, f"another process holds the writer lease; {SEND_AGAIN}"),
        LeaseLost: (problems.WRITE_FAILED, f"the writer lease was lost; {SEND_AGAIN}"),
        InvalidInput: (
            problems.WRITE_FAILED,
            f"a setting of the service is invalid (its log says which); {SEND_AGAIN}",
        ),
    }
    if type(error) not in known:
        return error
    kind, detail = known[type(error)]
    if not isinstance(error, IndexUnavailable | AuditUnavailable):  # `similarity.upkeep.outage` logs those
        log.warning("a write was not accepted: %s", error)
    return Problem(kind, detail)


def _is_overtaken(change: Change, written: Written) -> bool:
    """Return whether a write without event time lost against other writes, which were stored first."""
    return change.untimed and (
        written.outcome is Outcome.SUPERSEDED
        or (written.outcome is Outcome.REJECTED and written.version is not None)  # another write has that version
    )


def _status_address(change: Change, written: Written) -> str | None:
    if written.outcome is not Outcome.ACCEPTED:
        return None
    return f"/companies/{change.id}/writes/{_version(change, written)}"


def _version(change: Change, written: Written) -> int:
    """Return the version of a write; if it was superseded, its own version, not the stored one."""
    if written.version is None or written.outcome is Outcome.SUPERSEDED:
        return change.version
    return written.version


def _warnings(parsed: ParsedRecord, written: Written) -> list[str]:
    """Return warnings: the ignored parts of a record, and that its company is in no ranking."""
    change = parsed.change
    if isinstance(change, DeletedCompany) or written.outcome not in STORED or text_to_rank_by(change.company):
        return list(parsed.warnings)
    return [*parsed.warnings, NO_VECTOR]


def missing_warnings(index: CompanyIndex, company_id: str) -> list[str]:
    """Return a warning if no generation has the id; none if the index cannot be read."""
    try:
        missing = not_stored(index, company_id)
    except SimilarityError as error:
        log.warning("a deletion does not say whether the company is stored: %s", error)
        return []
    return [missing] if missing else []


def _answer(parsed: ParsedRecord, written: Written, missing: Sequence[str] = ()) -> WriteAnswer:
    superseded = [SUPERSEDED] if written.outcome is Outcome.SUPERSEDED else []
    return WriteAnswer(
        id=parsed.change.id,
        outcome=written.outcome,
        version=_version(parsed.change, written),
        warnings=[*superseded, *missing, *_warnings(parsed, written)],
        status=_status_address(parsed.change, written),
    )
