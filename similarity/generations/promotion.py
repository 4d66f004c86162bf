"""Promotion, rollback and retirement of a generation by an operator, each with its checks."""

from contextlib import ExitStack, suppress
from dataclasses import dataclass

from similarity.errors import GenerationConflict, NoLiveGeneration
from similarity.generations.gate import Gate, GateReport, generation_named
from similarity.generations.leases import REEMBED, RenewedLease
from similarity.generations.plan import previous_generations
from similarity.index.comparing import lagging, persistent_lag
from similarity.index.protocol import CompanyIndex, Generation, GenerationState
from similarity.index.validation import nothing_before
from similarity.ingest.former_names import remember_names_only_in
from similarity.ingest.writer_leases import wait_for_writers

IMPORTED = "imported"
"""The `bundle_id` of a generation whose vectors were imported without a bundle."""
WRITERS_SECONDS = 30.0
"""How long a promotion waits for writers; meanwhile, writes to an encoder without a bundle are refused."""
LAG_SECONDS = 2.0
"""How long a document may seem to be missing: it was written between the two reads that are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """The result of a promotion or of its dry run. `reasons`: why it is refused; empty if it is not."""

    generation: str
    replaces: str | None
    lacking: int
    gate: GateReport | None
    reasons: tuple[str, ...]
    promoted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """The `target` of a rollback, how many documents of the live generation it lacks, and the first of them."""

    live: str
    target: str
    lacking: int
    lacks: tuple[str, ...]


def promote(
    index: CompanyIndex, name: str, *, gate: Gate | None, dry_run: bool = False, wait: float = WRITERS_SECONDS
) -> Promotion:
    """Make a filled generation live if it passes the gate and lacks no documents. Without a gate, it may be worse.

    The gate runs first, because writes go on meanwhile. Then a building generation (with imported vectors) is
    registered, and what it lacks is counted again once every writer writes to it too; `wait` limits that to so many
    seconds. A generation that is not promoted is building again: while one without a bundle is a candidate, the service
    refuses writes.

    Raises:
        UnknownGeneration: there is no generation of this name.
        GenerationConflict: the generation is live or previous, or another one went live meanwhile.
        LeaseHeld: a re-embed is running, or a writer did not acknowledge the generation within `wait` seconds.
    """
    generation = generation_named(index, name)
    if generation.state not in (GenerationState.CANDIDATE, GenerationState.BUILDING):
        raise GenerationConflict(f"generation {name} is {generation.state}; to go back to a previous one, roll back")
    if generation.state is GenerationState.CANDIDATE and generation.bundle_id == IMPORTED and not dry_run:
        with RenewedLease(index, REEMBED):  # no promotion is running: one was killed
            index.withdraw_candidate(name)
        generation = generation_named(index, name)
    live = live_name(index)
    lacking = sum(1 for _ in lagging(index, ahead=live, behind=name)) if live else 0
    verdict = gate(live, name) if gate else None
    refused = lacking or (verdict is not None and verdict.reasons)
    if not refused and not dry_run:
        lacking = _go_live(index, generation, live=live, wait=wait)
    reasons = verdict.reasons if verdict else ()
    if lacking:
        reasons = (f"it lacks {lacking:,} documents of {live}; {_how_to_fill(generation)}", *reasons)
    promoted = not dry_run and not reasons
    return Promotion(generation=name, replaces=live, lacking=lacking, gate=verdict, reasons=reasons, promoted=promoted)


def _go_live(index: CompanyIndex, generation: Generation, *, live: str | None, wait: float) -> int:
    """Promote the generation and return 0, or return how many documents of `live` it lacks."""
    name = generation.name
    with RenewedLease(index, REEMBED) as lease, ExitStack() as undo:
        if generation.state is GenerationState.BUILDING:
            index.register_candidate(name)
            undo.callback(_withdraw, index, name)
        wait_for_writers(index, index.revision(), timeout=wait)
        if (now_live := live_name(index)) != live:
            raise GenerationConflict(f"{now_live} went live meanwhile; run the same command again to replace it")
        if live and (lag := persistent_lag(index, ahead=live, behind=name, wait=LAG_SECONDS)).count:
            return lag.count
        index.promote(name, lease=lease.held())
        undo.pop_all()
        return 0


def _withdraw(index: CompanyIndex, name: str) -> None:
    with suppress(GenerationConflict):  # it is live: only the store's answer was lost
        index.withdraw_candidate(name)


def _how_to_fill(generation: Generation) -> str:
    """Return what brings a generation up to date, for a message."""
    if generation.bundle_id != IMPORTED:
        return "run the re-embed or the copy again"
    return (
        "import these companies, and the deleted ones as rows with deleted=true: similarity generations import-vectors "
        f"FILE --encoder-id {generation.encoder_id} --into {generation.name}"
    )


def rollback_plan(index: CompanyIndex, *, wait: float = 0) -> Rollback:
    """Return the target of a rollback, and the documents that it still lacks after `wait` seconds.

    Raises:
        GenerationConflict: no generation was live before.
    """
    live = index.live()
    previous = previous_generations(index)
    if not previous:
        raise nothing_before(live.name)
    target = previous[0].name
    lag = persistent_lag(index, ahead=live.name, behind=target, wait=wait)
    return Rollback(live=live.name, target=target, lacking=lag.count, lacks=lag.ids)


def retire(index: CompanyIndex, name: str) -> None:
    """Remove a generation with all its documents; an unfinished one only while no re-embed runs.

    The names that only this generation holds are remembered, for later erasures.

    Raises:
        UnknownGeneration: there is no generation of this name.
        GenerationConflict: the generation is live.
        LeaseHeld: a re-embed is running.
    """
    state = generation_named(index, name).state
    if state in (GenerationState.LIVE, GenerationState.PREVIOUS):
        if state is GenerationState.PREVIOUS:
            remember_names_only_in(index, name)
        index.retire(name)
        return
    with RenewedLease(index, REEMBED):
        index.retire(name)


def live_name(index: CompanyIndex) -> str | None:
    """Return the name of the live generation; None if none is live yet."""
    try:
        return index.live().name
    except NoLiveGeneration:
        return None
