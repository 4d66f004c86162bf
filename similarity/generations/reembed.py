"""Moves an index to a new generation while others go on reading and writing it.

    lease      one re-embed at a time; whoever takes over, the other can promote nothing
    candidate  a new generation, or the one that an earlier run began; from now on writers write to it too
    writers    wait until each of them knows that (`similarity.ingest.writer_leases` says why)
    backfill   copy or embed what the live generation holds and the candidate lacks
    catch-up   again, until nothing lacks
    gate       is the candidate at least as good?
    promote    candidate and live change places, in one step
    settle     once more from the old to the new: for a writer that slept through all of this

All state is in the index. A run that is killed at any point is simply started again: it goes on with
the candidate of the same bundle, and does not repeat what that holds already. After the promote
writers go on writing to the old generation too, until it is retired; that is what makes a rollback safe.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol, TypeAlias

from similarity.errors import GenerationConflict, IndexUnavailable, InvalidInput, UnknownGeneration
from similarity.generations.filling import Filled, Filler, Pace
from similarity.generations.leases import LEASE_SECONDS, REEMBED, KeptLease
from similarity.generations.plan import begun_earlier, copy_of, documents_in, is_finished
from similarity.index.protocol import CompanyIndex, Generation, GenerationState
from similarity.ingest.writer_leases import wait_for_writers, writer_leases
from similarity.model.encoder_protocol import Encoder

MAX_PASSES = 20


class GateReport(Protocol):
    """What a gate says; `similarity.generations.gate.GateReport` is one."""

    @property
    def passed(self) -> bool: ...

    @property
    def reasons(self) -> tuple[str, ...]: ...


Gate: TypeAlias = Callable[[str | None, str], GateReport]
"""Judges (live generation or None, candidate)."""
OnStep: TypeAlias = Callable[[str, str], None]
"""Called with the name of a finished step and one line on it."""
OnProgress: TypeAlias = Callable[[int, int], None]
"""Called with (documents done, of how many)."""
FillPass: TypeAlias = Callable[[Filler], Filled]
"""Brings a candidate up to the live generation, once; what it leaves undone the next pass does."""


@dataclass(slots=True)
class ReembedReport:
    """What a run did. `rejected`: documents that the candidate cannot hold, why, by id."""

    generation: str
    replaces: str
    documents: int = 0
    encoded: int = 0
    rejected: dict[str, str] = field(default_factory=dict)
    gate: GateReport | None = None
    promoted: bool = False

    def add(self, filled: Filled) -> None:
        """Counts one pass."""
        self.documents += filled.applied
        self.encoded += filled.encoded
        self.rejected |= filled.rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a run behaves. `compact`: merge the candidate on disk before it is judged (may take long).

    `gate` None promotes unjudged. `fill_pass` does the passes of the backfill, by default in this
    process. `clock` and `sleep` are for tests.
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
            raise InvalidInput(f"a rate of {self.max_docs_per_second} documents a second never ends; give more than 0")


def reembed(
    index: CompanyIndex, wanted: Generation, *, encoder: Encoder | None, now: datetime, options: Options
) -> ReembedReport:
    """Fills the generation `wanted`, judges it and makes it live; goes on with a candidate of the same bundle.

    Where the live generation has the wanted encoder, vectors are copied and `encoder` is not used.

    Raises:
        NoLiveGeneration: there is nothing to re-embed yet.
        LeaseHeld: another run is under way, or a writer does not notice the candidate.
        LeaseLost: another run took over; this one has stopped.
        GenerationConflict: a candidate of another bundle is in the way, or this one cannot be filled.
        IndexUnavailable: the store does not take documents; run again later, it goes on.
    """
    with KeptLease(index, REEMBED, holder=options.holder, seconds=options.lease_seconds) as lease:
        options.on_step("lease", "no other re-embed is running")
        live = index.live()
        if is_finished(live, wanted):
            return _finish(index, live, encoder=encoder, now=now, options=options)
        return _Run(index, live, wanted, encoder=encoder, now=now, options=options, lease=lease).run()


def copy(index: CompanyIndex, *, now: datetime, options: Options) -> ReembedReport:
    """A new generation with the live one's vectors: for a new mapping or new settings of the index. Encodes nothing.

    Raises:
        As `reembed`.
    """
    with KeptLease(index, REEMBED, holder=options.holder, seconds=options.lease_seconds) as lease:
        options.on_step("lease", "no other re-embed is running")
        live = index.live()
        wanted = copy_of(live, taken=[known.name for known in index.generations()], now=now)
        return _Run(index, live, wanted, encoder=None, now=now, options=options, lease=lease).run()


class _Run:
    """One run from candidate to settle, each step a method."""

    def __init__(
        self,
        index: CompanyIndex,
        live: Generation,
        wanted: Generation,
        *,
        encoder: Encoder | None,
        now: datetime,
        options: Options,
        lease: KeptLease,
    ) -> None:
        self.index = index
        self.live = live
        self.wanted = wanted
        self.encoder = _encoder_for(live, wanted, encoder)
        self.now = now
        self.options = options
        self.lease = lease

    def run(self) -> ReembedReport:
        candidate = self.candidate()
        report = ReembedReport(generation=candidate.name, replaces=self.live.name)
        self.writers()
        self.backfill(candidate, report)
        if report.rejected:
            self.options.on_step("rejected", f"{len(report.rejected):,} documents cannot be stored; nothing goes live")
            return report
        if self.options.compact:
            self.index.compact(candidate.name)
            self.options.on_step("compact", "the candidate is merged on disk")
        if self.passes(candidate, report) and self.options.promote:
            self.promote(candidate, report)
        return report

    def candidate(self) -> Generation:
        """Registers the generation to fill, a new one or the one begun earlier."""
        candidate = begun_earlier(self.index, self.wanted)
        verb = "goes on"
        if candidate is None:
            candidate, verb = self.wanted, "is new"
            self.index.create_generation(candidate)
        if candidate.state is GenerationState.BUILDING:
            self.index.register_candidate(candidate.name)
        self.options.on_step("candidate", f"{candidate.name} {verb}; it will replace {self.live.name}")
        return candidate

    def writers(self) -> None:
        """Waits until nobody writes to the live generation alone."""
        revision = self.index.revision()
        timeout, clock, sleep = self.options.writers_timeout, self.options.clock, self.options.sleep
        wait_for_writers(self.index, revision, timeout=timeout, clock=clock, sleep=sleep)
        count = len(writer_leases(self.index))
        self.options.on_step("writers", f"{count} writing now, all to the candidate too")

    def backfill(self, candidate: Generation, report: ReembedReport) -> None:
        """Fills the candidate, pass after pass until one finds nothing to do."""
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
            self.options.on_step("backfill" if number == 1 else "catch-up", _told(filled))
            if filled.settled:
                return
            if filled.failed and not filled.applied:
                raise IndexUnavailable(
                    f"the store did not take {filled.failed:,} documents of the candidate {candidate.name}; nothing is "
                    "lost: run the same command again when it does, it goes on from here"
                )
        raise GenerationConflict(
            f"the candidate {candidate.name} falls behind again and again: something writes to {self.live.name} alone. "
            "See who writes with: similarity generations leases; stop it and run the same command again"
        )

    def passes(self, candidate: Generation, report: ReembedReport) -> bool:
        """Asks the gate; without one, everything passes."""
        self.lease.held()
        if self.options.gate is None:
            return True
        report.gate = self.options.gate(self.live.name, candidate.name)
        verdict = "passed" if report.gate.passed else f"refused: {'; '.join(report.gate.reasons)}"
        self.options.on_step("gate", verdict)
        return report.gate.passed

    def promote(self, candidate: Generation, report: ReembedReport) -> None:
        """Makes the candidate live, and looks once more for what came late."""
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
        _settle(filler, report, self.options)


def _finish(
    index: CompanyIndex, live: Generation, *, encoder: Encoder | None, now: datetime, options: Options
) -> ReembedReport:
    """What is left where an earlier run died between promote and settle, or nothing at all."""
    report = ReembedReport(generation=live.name, replaces="", promoted=True)
    before = [known for known in index.generations() if known.state is GenerationState.PREVIOUS and known.promoted_at]
    if before:
        previous = max(before, key=lambda known: (known.promoted_at, known.created_at))
        report.replaces = previous.name
        encoder = _encoder_for(previous, live, encoder)
        _settle(_filler(index, previous, live, encoder=encoder, now=now, options=options), report, options)
    options.on_step("finished", f"{live.name} of this bundle is live")
    return report


def _settle(filler: Filler, report: ReembedReport, options: Options) -> None:
    try:
        filled = filler.fill()
    except UnknownGeneration:
        return  # the old one was retired meanwhile: nobody can have written to it alone
    report.add(filled)
    options.on_step("settle", _told(filled))


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
    """The encoder that fills `target`; None where the vectors of `source` are its own."""
    if source.encoder_id == target.encoder_id:
        return None
    if encoder is None or encoder.encoder_id != target.encoder_id:
        held = encoder.encoder_id if encoder else "none"
        raise InvalidInput(f"the generation needs encoder {target.encoder_id}, but {held} was given; pass its bundle")
    return encoder


def _told(filled: Filled) -> str:
    if not filled.documents:
        return "nothing lacking"
    counts = {"written": filled.applied, "encoded": filled.encoded, "failed": filled.failed}
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return f"{filled.documents:,} documents" + (f": {told}" if told else ", all there already")
