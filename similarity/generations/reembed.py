"""Re-embed an index into a new generation without interrupting readers and writers.

    lease      one re-embed at a time; if another process takes the lease, this one can no longer promote
    candidate  register a new generation, or continue with that of an earlier run; writers now write to it too
    writers    wait until every writer has acknowledged the candidate (see `similarity.ingest.writer_leases`)
    backfill   copy or embed the documents that the candidate lacks
    catch-up   repeat until the candidate lacks no document
    gate       check that the candidate is not worse than the live generation
    promote    make the candidate live and the live generation previous, in one step
    settle     copy late writes from the previous generation (a paused writer may not have seen the candidate)

All state is in the index. A killed run can be started again: it continues with the candidate of the same bundle,
and skips the documents that the candidate already holds. After the promotion, writers also write to the previous
generation until it is retired, so that a rollback loses nothing.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol, TypeAlias

from similarity.errors import GenerationConflict, IndexUnavailable, InvalidInput, UnknownGeneration
from similarity.generations.filling import Filled, Filler, Pace
from similarity.generations.leases import LEASE_SECONDS, REEMBED, RenewedLease
from similarity.generations.plan import copy_of, documents_in, is_finished, unfinished_candidate
from similarity.index.protocol import CompanyIndex, Generation, GenerationState
from similarity.ingest.writer_leases import wait_for_writers, writer_leases
from similarity.model.encoder_protocol import Encoder

MAX_PASSES = 20


class GateReport(Protocol):
    """The result of a gate, as this module needs it; `similarity.generations.gate.GateReport` implements it."""

    @property
    def passed(self) -> bool: ...

    @property
    def reasons(self) -> tuple[str, ...]: ...


Gate: TypeAlias = Callable[[str | None, str], GateReport]
"""Called with the names of the live generation (None if there is none) and of the candidate."""
OnStep: TypeAlias = Callable[[str, str], None]
"""Called with the name of a finished step and a one-line summary."""
OnProgress: TypeAlias = Callable[[int, int], None]
"""Called with the number of documents done and the total number."""
FillPass: TypeAlias = Callable[[Filler], Filled]
"""Copies or embeds once the documents that the candidate lacks. The next pass does the remaining ones."""


@dataclass(slots=True)
class ReembedReport:
    """The result of a run. `rejected`: the reason for each document that the candidate cannot store, by id."""

    generation: str
    replaces: str
    documents: int = 0
    encoded: int = 0
    rejected: dict[str, str] = field(default_factory=dict)
    gate: GateReport | None = None
    promoted: bool = False

    def add(self, filled: Filled) -> None:
        """Add the counts of one pass."""
        self.documents += filled.applied
        self.encoded += filled.encoded
        self.rejected |= filled.rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a run. `compact`: merge the candidate on disk before the gate (may take long).

    `gate`: None promotes without evaluation. `fill_pass`: runs one pass of the backfill, by default in this process.
    `clock` and `sleep`: for tests.
    """

    gate: Gate | None
    promote: bool = True
    compact: bool = False
    fill_pass: FillPass = Filler.fill
    max_docs_per_second: float | None = None
    writers_timeout: float = 600.0
    holder: str = ""
    lease_seconds: float = LEASE_SECONDS
    on_step: OnStep = lambda name, detail: None
    on_progress: OnProgress = lambda done, total: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        if self.max_docs_per_second is not None and not self.max_docs_per_second > 0:
            raise InvalidInput(f"the limit is {self.max_docs_per_second} documents per second; give more than 0")


def reembed(
    index: CompanyIndex, target: Generation, *, encoder: Encoder | None, now: datetime, options: Options
) -> ReembedReport:
    """Fill the generation `target`, evaluate it and promote it; continue with a candidate of the same bundle.

    If the live generation has the same encoder, vectors are copied and `encoder` is not used.

    Raises:
        NoLiveGeneration: there is no generation to re-embed.
        LeaseHeld: another re-embed is running, or a writer does not acknowledge the candidate.
        LeaseLost: another process took the lease; this run has stopped.
        GenerationConflict: there is a candidate of another bundle, or this candidate cannot be filled.
        IndexUnavailable: the store does not accept documents; a later run continues from here.
    """
    with RenewedLease(index, REEMBED, holder=options.holder, seconds=options.lease_seconds) as lease:
        options.on_step("lease", "no other re-embed is running")
        live = index.live()
        if is_finished(live, target):
            return _finish(index, live, encoder=encoder, now=now, options=options)
        return _Run(index, live, target, encoder=encoder, now=now, options=options, lease=lease).run()


def copy_generation(index: CompanyIndex, *, now: datetime, options: Options) -> ReembedReport:
    """Fill and promote a new generation with copied vectors, for a new mapping or new settings of the index.

    Raises:
        As `reembed`.
    """
    with RenewedLease(index, REEMBED, holder=options.holder, seconds=options.lease_seconds) as lease:
        options.on_step("lease", "no other re-embed is running")
        live = index.live()
        target = copy_of(live, taken=[known.name for known in index.generations()], now=now)
        return _Run(index, live, target, encoder=None, now=now, options=options, lease=lease).run()


class _Run:
    """One run; each step is a method."""

    def __init__(
        self,
        index: CompanyIndex,
        live: Generation,
        target: Generation,
        *,
        encoder: Encoder | None,
        now: datetime,
        options: Options,
        lease: RenewedLease,
    ) -> None:
        self.index = index
        self.live = live
        self.target = target
        self.encoder = _encoder_for(live, target, encoder)
        self.now = now
        self.options = options
        self.lease = lease

    def run(self) -> ReembedReport:
        candidate = self.register_candidate()
        report = ReembedReport(generation=candidate.name, replaces=self.live.name)
        self.wait_for_writers()
        self.backfill(candidate, report)
        if report.rejected:
            self.options.on_step("rejected", f"{len(report.rejected):,} documents cannot be stored; not promoted")
            return report
        if self.options.compact:
            self.index.compact(candidate.name)
            self.options.on_step("compact", "the candidate is merged on disk")
        if self.passes_gate(candidate, report) and self.options.promote:
            self.promote(candidate, report)
        return report

    def register_candidate(self) -> Generation:
        """Register the generation to fill: a new one, or that of an earlier run."""
        candidate = unfinished_candidate(self.index, self.target)
        state = "continues"
        if candidate is None:
            candidate, state = self.target, "is new"
            self.index.create_generation(candidate)
        if candidate.state is GenerationState.BUILDING:
            self.index.register_candidate(candidate.name)
        self.options.on_step("candidate", f"{candidate.name} {state}; it will replace {self.live.name}")
        return candidate

    def wait_for_writers(self) -> None:
        """Wait until every writer also writes to the candidate."""
        revision = self.index.revision()
        timeout, clock, sleep = self.options.writers_timeout, self.options.clock, self.options.sleep
        wait_for_writers(self.index, revision, timeout=timeout, clock=clock, sleep=sleep)
        count = len(writer_leases(self.index))
        self.options.on_step("writers", f"{count} active writers; all of them write to the candidate")

    def backfill(self, candidate: Generation, report: ReembedReport) -> None:
        """Fill the candidate, in passes until one finds nothing to do."""
        total, done = documents_in(self.index, self.live), documents_in(self.index, candidate)

        def on_documents(documents: int) -> None:
            nonlocal done
            done += documents
            self.options.on_progress(min(done, total), total)

        filler = _filler(self.index, self.live, candidate, encoder=self.encoder, now=self.now, options=self.options)
        filler = replace(filler, before_write=self.lease.held, on_documents=on_documents)
        for number in range(1, MAX_PASSES + 1):
            filled = self.options.fill_pass(filler)
            report.add(filled)
            self.options.on_step("backfill" if number == 1 else "catch-up", _summary(filled))
            if filled.is_complete:
                return
            if filled.failed and not filled.applied:
                raise IndexUnavailable(
                    f"the store did not accept {filled.failed:,} documents of the candidate {candidate.name}; no data "
                    "is lost. When it accepts writes again, run the same command; it continues from here"
                )
        raise GenerationConflict(
            f"after {MAX_PASSES} passes the candidate {candidate.name} still lacks documents: a writer writes only to "
            f"{self.live.name}. List the writers with: similarity generations leases; stop that writer and run the "
            "same command again"
        )

    def passes_gate(self, candidate: Generation, report: ReembedReport) -> bool:
        """Run the gate and return whether it passed; return True if no gate is configured."""
        self.lease.held()
        if self.options.gate is None:
            return True
        report.gate = self.options.gate(self.live.name, candidate.name)
        verdict = "passed" if report.gate.passed else f"refused: {'; '.join(report.gate.reasons)}"
        self.options.on_step("gate", verdict)
        return report.gate.passed

    def promote(self, candidate: Generation, report: ReembedReport) -> None:
        """Promote the candidate, then copy the writes that reached only the old generation."""
        now_live = self.index.live().name
        if now_live != self.live.name:
            raise GenerationConflict(
                f"{now_live} went live while this run copied {self.live.name}; if {candidate.name} should replace it, "
                "run the same command again"
            )
        self.index.promote(candidate.name, lease=self.lease.held())
        report.promoted = True
        self.options.on_step("promote", f"{candidate.name} is live; {self.live.name} is kept for a rollback")
        filler = _filler(self.index, self.live, candidate, encoder=self.encoder, now=self.now, options=self.options)
        _copy_late_writes(filler, report, self.options)


def _finish(
    index: CompanyIndex, live: Generation, *, encoder: Encoder | None, now: datetime, options: Options
) -> ReembedReport:
    """Complete an earlier run that stopped after the promotion."""
    report = ReembedReport(generation=live.name, replaces="", promoted=True)
    before = [known for known in index.generations() if known.state is GenerationState.PREVIOUS and known.promoted_at]
    if before:
        previous = max(before, key=lambda known: (known.promoted_at, known.created_at))
        report.replaces = previous.name
        encoder = _encoder_for(previous, live, encoder)
        _copy_late_writes(_filler(index, previous, live, encoder=encoder, now=now, options=options), report, options)
    options.on_step("finished", f"{live.name} of this bundle is live")
    return report


def _copy_late_writes(filler: Filler, report: ReembedReport, options: Options) -> None:
    try:
        filled = filler.fill()
    except UnknownGeneration:
        return  # the previous generation was retired meanwhile, so no writer can have written only to it
    report.add(filled)
    options.on_step("settle", _summary(filled))


def _filler(
    index: CompanyIndex,
    source: Generation,
    target: Generation,
    *,
    encoder: Encoder | None,
    now: datetime,
    options: Options,
) -> Filler:
    pace = Pace(options.max_docs_per_second, clock=options.clock, sleep=options.sleep)
    return Filler(index=index, source=source, target=target, encoder=encoder, now=now, pace=pace)


def _encoder_for(source: Generation, target: Generation, encoder: Encoder | None) -> Encoder | None:
    """Return the encoder for `target`, or None if both generations have the same encoder and vectors are copied."""
    if source.encoder_id == target.encoder_id:
        return None
    if encoder is None or encoder.encoder_id != target.encoder_id:
        held = encoder.encoder_id if encoder else "none"
        raise InvalidInput(f"the generation needs encoder {target.encoder_id}, but {held} was given; pass its bundle")
    return encoder


def _summary(filled: Filled) -> str:
    if not filled.documents:
        return "no missing documents"
    counts = {"written": filled.applied, "encoded": filled.encoded, "failed": filled.failed}
    listed = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return f"{filled.documents:,} documents" + (f": {listed}" if listed else ", all already stored")
