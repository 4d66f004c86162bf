"""Re-embed of an index into a new generation, without interrupting readers and writers. The steps of a run:

    lease      take the re-embed lease; if it expires and another process takes it, this run can no longer promote
    candidate  register a new generation, or continue with the candidate of an earlier run; writers now write to it too
    writers    wait until every writer has acknowledged the candidate (see `similarity.ingest.writer_leases`)
    backfill   copy or embed the documents that the candidate lacks
    catch-up   repeat the backfill until the candidate lacks no document
    rejected   if the candidate cannot store some of the documents: end without promotion
    compact    remove replaced and deleted documents of the candidate from the disk, if `Options.compact` is set
    gate       check that the candidate is not worse than the live generation
    promote    make the candidate live and the live generation previous, in one step
    settle     copy late writes from the previous generation (a paused writer may not have seen the candidate)

If the live generation already has the bundle, the steps are lease, settle and finished: an earlier run may have stopped
between promote and settle.

All state is in the index. A killed run can be started again. It continues with the candidate of the same bundle and
skips the documents that the candidate already has. After the promotion, writers also write to the previous generation
until it is retired, so that a rollback loses no write.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias

from similarity.errors import GenerationConflict, IndexUnavailable, InvalidInput, UnknownGeneration
from similarity.generations.filling import Filled, Filler, Pace
from similarity.generations.gate import Gate, GateReport
from similarity.generations.plan import (
    copy_of,
    made_since,
    previous_generations,
    same_bundle,
    unfinished_candidate,
    warning,
)
from similarity.index.protocol import CompanyIndex, Generation, GenerationState
from similarity.ingest.renewed_leases import LEASE_SECONDS, REEMBED, RenewedLease
from similarity.ingest.writer_leases import wait_for_writers, writer_leases
from similarity.model.encoder_protocol import Encoder

MAX_PASSES = 20

OnStep: TypeAlias = Callable[[str, str], None]
"""Called after each step with its name and a summary of one line."""
FillPass: TypeAlias = Callable[[Filler], Filled]
"""Copies or embeds the documents that the candidate lacks. Documents that it fails on are left to the next pass."""


@dataclass(slots=True)
class ReembedReport:
    """The result of a run.

    `generation` is the candidate, and `replaces` the generation that was live before. `documents`: number of documents
    that the candidate accepted (`Filled.applied`), over all passes. `encoded`: number of companies that were embedded
    for it. `rejected`: the reason for each document that the candidate cannot store, by id.
    """

    generation: str
    replaces: str
    documents: int = 0
    encoded: int = 0
    rejected: dict[str, str] = field(default_factory=dict)
    gate: GateReport | None = None
    promoted: bool = False

    @property
    def refusal(self) -> str:
        """The reasons why the gate refused the candidate, and what to do; empty if it did not refuse it."""
        if self.gate is None or self.gate.passed:
            return ""
        return (
            f"{self.generation} does not pass the gate: {'; '.join(self.gate.reasons)}. It stays a candidate, and "
            f"every change is written to it too; to remove it: similarity generations retire {self.generation}"
        )

    def add(self, filled: Filled) -> None:
        """Add the counts of one pass."""
        self.documents += filled.applied
        self.encoded += filled.encoded
        self.rejected |= filled.rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a run.

    `gate`: evaluates the candidate; None promotes without evaluation. `promote`: False ends the run after the gate.
    `compact`: remove replaced and deleted documents of the candidate from the disk before the gate; this may take long.
    `fill_pass`: runs one pass of the backfill, by default in this process. `writers_timeout`: how many seconds to wait
    for the writers. `on_documents`: called with the number of documents written since the last call. `clock` and
    `sleep`: for tests.
    """

    gate: Gate | None
    promote: bool = True
    compact: bool = False
    fill_pass: FillPass = Filler.fill
    max_docs_per_second: float | None = None
    writers_timeout: float = 600.0
    lease_seconds: float = LEASE_SECONDS
    on_step: OnStep = lambda name, detail: None
    on_documents: Callable[[int], None] = lambda documents: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        if self.max_docs_per_second is not None and not self.max_docs_per_second > 0:
            raise InvalidInput(
                f"the limit is {self.max_docs_per_second} documents a second; give more than 0, or no limit"
            )

    def pace(self) -> Pace:
        """Return the rate limit for one backfill."""
        return Pace(self.max_docs_per_second, clock=self.clock, sleep=self.sleep)

    def lease(self, index: CompanyIndex) -> RenewedLease:
        """Return the re-embed lease of a run; `with` takes and releases it."""
        return RenewedLease(index, REEMBED, seconds=self.lease_seconds)


def reembed(
    index: CompanyIndex, target: Generation, *, encoder: Encoder | None, now: datetime, options: Options
) -> ReembedReport:
    """Fill the generation `target`, evaluate it and promote it.

    If there is a candidate of the same bundle, the run continues with that candidate instead of `target`. If `target`
    has the encoder of the live generation, vectors are copied. Then `encoder` is needed only if the bundle is live
    already, and the previous generation has another encoder.

    Raises:
        NoLiveGeneration: there is no generation to re-embed.
        InvalidInput: vectors must be made, and `encoder` is not the encoder of `target`.
        LeaseHeld: another re-embed is running, or a writer does not acknowledge the candidate.
        LeaseLost: another process took the lease; this run has stopped.
        GenerationConflict: there is a candidate of another bundle, the candidate cannot be filled, or another
            generation went live during the run.
        IndexUnavailable: the store accepts no documents; a later run continues from here.
    """
    with options.lease(index) as lease:
        live = index.live()
        if same_bundle(live, target):
            return _settle_promoted(index, live, encoder=encoder, now=now, options=options)
        return _run(Filler(index=index, source=live, target=target, encoder=encoder, now=now), options, lease)


def copy_generation(index: CompanyIndex, *, now: datetime, options: Options) -> ReembedReport:
    """Fill and promote a new generation with copied vectors, to use a new mapping or new settings of the index.

    Raises the same exceptions as `reembed`.
    """
    with options.lease(index) as lease:
        live = index.live()
        target = copy_of(index, live, now=now)
        return _run(Filler(index=index, source=live, target=target, encoder=None, now=now), options, lease)


def _run(filler: Filler, options: Options, lease: RenewedLease) -> ReembedReport:
    """Run all steps after `lease`, and return the report. Raises LeaseLost if another process took `lease`."""
    options.on_step("lease", "no other re-embed is running")
    filler = replace(filler, target=_registered_candidate(filler, options))
    index, live, candidate = filler.index, filler.source.name, filler.target.name
    report = ReembedReport(generation=candidate, replaces=live)
    if lacks := warning(filler.source, filler.target):
        options.on_step("warning", lacks)
    _wait_for_writers(index, options)
    _backfill(replace(filler, before_write=lease.held), report, options)
    if report.rejected:
        options.on_step("rejected", f"{len(report.rejected):,} documents cannot be stored; not promoted")
        return report
    if options.compact:
        is_complete = index.compact(candidate)
        options.on_step("compact", "the candidate is compact" if is_complete else _held_back(candidate))
    lease.held()
    if options.gate:
        report.gate = options.gate(live, candidate)
        options.on_step("gate", "passed" if report.gate.passed else "refused")
        if not report.gate.passed:
            return report
    if options.promote:
        _promote(filler, report, options, lease)
    return report


def _registered_candidate(filler: Filler, options: Options) -> Generation:
    """Register the generation to fill as the candidate, and return it: a new one, or the one of an earlier run."""
    if candidate := unfinished_candidate(filler.index, filler.target):
        origin = f"continuing with the candidate {candidate.name} of an earlier run"
    else:
        candidate = filler.target
        origin = f"{candidate.name} is new"
        filler.index.create_generation(candidate)
    if candidate.state is GenerationState.BUILDING:
        filler.index.register_candidate(candidate.name)
    options.on_step("candidate", f"{origin}; to replace {filler.source.name}")
    return candidate


def _wait_for_writers(index: CompanyIndex, options: Options) -> None:
    """Wait until every active writer also writes to the candidate."""
    timeout = options.writers_timeout
    wait_for_writers(index, index.revision(), timeout=timeout, clock=options.clock, sleep=options.sleep)
    options.on_step("writers", f"{len(writer_leases(index))} active writers; all of them write to the candidate")


def _backfill(filler: Filler, report: ReembedReport, options: Options) -> None:
    """Fill the candidate in passes, until a pass finds no missing document."""
    live, candidate = filler.source.name, filler.target.name
    filler = replace(filler, pace=options.pace(), on_documents=options.on_documents)
    for number in range(1, MAX_PASSES + 1):
        filled = options.fill_pass(filler)
        report.add(filled)
        options.on_step("backfill" if number == 1 else "catch-up", _summary(filled))
        if filled.is_complete:
            return
        if filled.failed and not filled.applied:
            raise IndexUnavailable(
                f"the store did not accept {filled.failed:,} documents of the candidate {candidate}; no data "
                "is lost. When the store accepts writes again, run the same command; it continues from here"
            )
    raise GenerationConflict(
        f"after {MAX_PASSES} passes the candidate {candidate} still lacks documents. Either a process writes only to "
        f"{live}, or the store fails on some documents in each pass. List the writers with: similarity generations "
        "leases; stop one that has not acknowledged the candidate, and run the same command again"
    )


def _promote(filler: Filler, report: ReembedReport, options: Options, lease: RenewedLease) -> None:
    """Promote the candidate, then copy the writes that reached only the previous generation."""
    live, candidate = filler.source.name, filler.target.name
    now_live = filler.index.live().name
    if now_live != live:
        raise GenerationConflict(
            f"{now_live} went live while this run copied {live}; if {candidate} should replace {now_live}, "
            "run the same command again"
        )
    filler.index.promote(candidate, lease=lease.held())
    report.promoted = True
    options.on_step("promote", f"{candidate} is live; {live} is kept for a rollback")
    _copy_late_writes(filler, report, options)


def _settle_promoted(
    index: CompanyIndex, live: Generation, *, encoder: Encoder | None, now: datetime, options: Options
) -> ReembedReport:
    """Run the step settle for `live`, which already has the bundle: an earlier run may have stopped before settle."""
    options.on_step("lease", "no other re-embed is running")
    report = ReembedReport(generation=live.name, replaces="", promoted=True)
    # Documents that only a rolled-back generation has must stay out. Such a generation is newer than `live`, or it is
    # older and was rolled back before `live` was made. So copy only from the generation that `live` replaced.
    newer = made_since(index, live.name)
    for previous in previous_generations(index)[:1]:
        if previous.name in newer or previous.promotion != live.promotion - 1:
            continue
        report.replaces = previous.name
        filler = Filler(index=index, source=previous, target=live, encoder=encoder, now=now)
        _copy_late_writes(filler, report, options)
    options.on_step("finished", f"{live.name} has this bundle and is already live")
    return report


def _copy_late_writes(filler: Filler, report: ReembedReport, options: Options) -> None:
    """Copy the documents that the live generation lacks from the previous one, `filler.source`."""
    try:
        filled = replace(filler, pace=options.pace()).fill()
    except UnknownGeneration:
        return  # the previous generation was retired meanwhile; there is nothing left to copy from
    report.add(filled)
    options.on_step("settle", _summary(filled))


def _held_back(candidate: str) -> str:
    return (
        "the candidate still holds replaced and deleted documents, because a copy of the store is unavailable; "
        f"run later: similarity generations compact {candidate}"
    )


def _summary(filled: Filled) -> str:
    if not filled.documents:
        return "no missing documents"
    counts = {"written": filled.applied, "encoded": filled.encoded, "failed": filled.failed}
    listed = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    return f"{filled.documents:,} documents" + (f": {listed}" if listed else ", all already stored")
