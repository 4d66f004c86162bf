"""Adding, changing and deleting companies, without HTTP: bodies in, answer models or Problems out.

A write's version is its event time. So the same write with the same event time may be sent any number of
times, and late ones change nothing. A write without an event time has the time of receipt, or the next
version after the stored one: it is applied, or refused, never superseded.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import chain

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
from similarity.index.protocol import CompanyIndex
from similarity.ingest.records import Change, ParsedRecord

from ..wire import problems
from ..wire.problem_documents import Problem
from ..wire.problems import Kind
from .committing import GroupCommit, Written
from .write_records import BadRecord, change_of_line, company_of_body, deletion
from .write_schemas import (
    MAX_BULK_LINES,
    BulkResult,
    Outcome,
    WriteAnswer,
    WriteStatus,
)

BULK_LINES_AT_ONCE = 128
SUPERSEDED = "a newer version of this company is stored, so this write changed nothing"
OVERTAKEN = "other writes of this company were stored at every attempt; send it again, or give it an event_time"
SEND_AGAIN = "it may be written or not: send it again, which is harmless"

log = logging.getLogger(__name__)


class WriteMode(StrEnum):
    """What the service does with writes."""

    DIRECT = "direct"
    """Embeds and stores them before it answers."""
    KAFKA = "kafka"
    """Publishes them; `pipelines.stream` stores them."""
    OFF = "off"
    """Refuses them."""


@dataclass(frozen=True, slots=True)
class WriteService:
    """Writes through `commits`; None where writing is off. They end in `index`.

    `clock` gives the time of receipt. `removed` is told of the ids of companies that were deleted.
    """

    commits: GroupCommit | None
    index: CompanyIndex
    clock: Callable[[], datetime] = utc_now
    removed: Callable[[Collection[str]], None] = lambda _: None

    def put(self, company_id: str, body: bytes) -> WriteAnswer:
        """Stores the company in `body` (JSON) under this id, whole.

        Raises:
            Problem: writing is off, the body breaks a rule, or the store takes nothing just now.
        """
        commits = self.require_on()
        now = self.clock()
        try:
            parsed = company_of_body(body, company_id, now=now)
        except BadRecord as bad:
            raise bad.problem() from None
        return _answer(parsed, write_one(commits, parsed.change))

    def delete(self, company_id: str, event_time: str | None) -> WriteAnswer:
        """Deletes a company; one that was never there is remembered as deleted all the same.

        Raises:
            Problem: writing is off, the time breaks a rule, or the store takes nothing just now.
        """
        commits = self.require_on()
        now = self.clock()
        try:
            parsed = deletion(company_id, event_time, now=now)
        except BadRecord as bad:
            raise bad.problem(where="query") from None
        written = write_one(commits, parsed.change)
        self.removed({company_id})
        return _answer(parsed, written)

    def bulk(self, body: bytes) -> Iterator[list[BulkResult]]:
        """A result per line of NDJSON, in order and part by part, while the lines are written.

        Raises:
            Problem: writing is off, there are too many lines, or the store takes nothing of the first
                ones. Later trouble is the result of its lines.
        """
        commits = self.require_on()
        lines = body.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if len(lines) - (not lines[-1]) > MAX_BULK_LINES:
            raise Problem(problems.BODY_TOO_LARGE, f"there are more than {MAX_BULK_LINES:,} lines; send them in parts")
        numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
        now = self.clock()
        parts = [
            [_read_line(number, line, now=now) for number, line in numbered[start : start + BULK_LINES_AT_ONCE]]
            for start in range(0, len(numbered), BULK_LINES_AT_ONCE)
        ]
        first = self._write_lines(commits, parts[0]) if parts else []
        return chain([first], self._rest(commits, parts[1:]))

    def status(self, company_id: str, version: int) -> WriteStatus:
        """Returns how far a write of this version is, by what the live generation holds of the company.

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
        """Raises a Problem where writing is off."""
        if self.commits is None:
            raise Problem(
                problems.WRITES_OFF,
                "this service only reads; whoever runs it can set SIMILARITY_SERVICE_WRITES=direct (or kafka)",
            )
        return self.commits

    def close(self) -> None:
        """Finishes the writes that wait and takes no more."""
        if self.commits is not None:
            self.commits.close()

    def _write_lines(self, commits: GroupCommit, lines: Sequence["_Line"]) -> list[BulkResult]:
        changes = [line.parsed.change for line in lines if line.parsed]
        written = iter(_committed(commits, changes, patient=True) if changes else [])
        if deleted := {change.id for change in changes if isinstance(change, DeletedCompany)}:
            self.removed(deleted)
        return [line.result(next(written) if line.parsed else Written(Outcome.REJECTED, line.reason)) for line in lines]

    def _rest(self, commits: GroupCommit, parts: Sequence[Sequence["_Line"]]) -> Iterator[list[BulkResult]]:
        """Where the store takes nothing any more, it is not asked again: the rest would take hours to fail."""
        trouble = ""
        for lines in parts:
            if not trouble:
                try:
                    yield self._write_lines(commits, lines)
                    continue
                except (Problem, SimilarityError) as error:
                    trouble = str(error)
            failed = Written(Outcome.FAILED, trouble)
            yield [line.result(failed if line.parsed else Written(Outcome.REJECTED, line.reason)) for line in lines]


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a bulk upload: its change, or why it has none."""

    number: int
    id: str | None
    parsed: ParsedRecord | None = None
    reason: str = ""

    def result(self, written: Written) -> BulkResult:
        if self.parsed is None:
            return BulkResult(line=self.number, id=self.id, outcome=written.outcome, reason=written.reason)
        if _is_overtaken(self.parsed.change, written):
            return BulkResult(line=self.number, id=self.id, outcome=Outcome.FAILED, reason=OVERTAKEN)
        reason = written.reason or "; ".join(self.parsed.warnings)
        status = _status_address(self.parsed.change, written)
        return BulkResult(line=self.number, id=self.id, outcome=written.outcome, reason=reason, status=status)


def _read_line(number: int, raw: bytes, *, now: datetime) -> _Line:
    try:
        parsed = change_of_line(raw, now=now)
    except BadRecord as bad:
        return _Line(number, bad.id, reason=str(bad))
    return _Line(number, parsed.change.id, parsed=parsed)


def write_one(commits: GroupCommit, change: Change) -> Written:
    """What became of one change that somebody waits for.

    Raises:
        Problem: it is not stored (or, in Kafka, not acknowledged).
    """
    [written] = _committed(commits, [change], patient=False)
    if _is_overtaken(change, written):
        raise Problem(problems.WRITE_CONFLICT, OVERTAKEN)
    if written.outcome is Outcome.REJECTED:
        raise Problem(problems.WRITE_REJECTED, written.reason)
    if written.outcome is Outcome.FAILED:
        raise Problem(problems.WRITE_FAILED, f"{written.reason or 'the store did not take it'}; {SEND_AGAIN}")
    return written


def _committed(commits: GroupCommit, changes: Sequence[Change], *, patient: bool) -> list[Written]:
    try:
        return commits.write(changes, patient=patient)
    except SimilarityError as error:
        raise refusal(error) from error


def refusal(error: SimilarityError) -> Exception:
    """The Problem that an error of a store or an encoder becomes; the error itself where `failures` knows it."""
    if isinstance(error, EncoderMismatch):
        return Problem(problems.WRITE_ENCODER_MISSING, f"{error}. Nothing was written")
    known: dict[type[SimilarityError], tuple[Kind, str]] = {
        InvalidBundle: (
            problems.WRITE_ENCODER_MISSING,
            "a bundle in the index's bundle folder is damaged (the service's log says which); nothing was written",
        ),
        EncodingFailed: (problems.WRITE_FAILED, "the encoder fails on every text; nothing was written"),
        IndexUnavailable: (problems.INDEX_UNAVAILABLE, f"the index does not take writes just now; {SEND_AGAIN}"),
        AuditUnavailable: (problems.WRITE_FAILED, f"the audit record cannot be written; {SEND_AGAIN}"),
        LeaseHeld: (problems.WRITE_FAILED, f"the right to write cannot be had just now; {SEND_AGAIN}"),
        LeaseLost: (problems.WRITE_FAILED, f"the right to write was lost; {SEND_AGAIN}"),
        InvalidInput: (
            problems.WRITE_FAILED,
            "a setting of the service cannot be used (its log says which); nothing was written",
        ),
    }
    if type(error) not in known:
        return error
    kind, detail = known[type(error)]
    if not isinstance(error, IndexUnavailable | AuditUnavailable):  # `similarity.upkeep.outage` logs those
        log.warning("a write was not taken: %s", error)
    return Problem(kind, detail)


def _is_overtaken(change: Change, written: Written) -> bool:
    """Whether a write that should follow what is stored was not taken, because others were faster."""
    return change.untimed and (
        written.outcome is Outcome.SUPERSEDED
        or (written.outcome is Outcome.REJECTED and written.version is not None)  # of the version of another write
    )


def _status_address(change: Change, written: Written) -> str | None:
    if written.outcome is not Outcome.ACCEPTED:
        return None
    return f"/companies/{change.id}/writes/{_version(change, written)}"


def _version(change: Change, written: Written) -> int:
    """The version of a write; that of a superseded one is its own, not the stored one."""
    if written.version is None or written.outcome is Outcome.SUPERSEDED:
        return change.version
    return written.version


def _answer(parsed: ParsedRecord, written: Written) -> WriteAnswer:
    superseded = [SUPERSEDED] if written.outcome is Outcome.SUPERSEDED else []
    return WriteAnswer(
        id=parsed.change.id,
        outcome=written.outcome,
        version=_version(parsed.change, written),
        warnings=[*superseded, *parsed.warnings],
        status=_status_address(parsed.change, written),
    )
