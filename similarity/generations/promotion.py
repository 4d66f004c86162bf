"""Promotion, rollback and retirement of a generation by an operator, each with its checks."""

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import takewhile

from similarity.errors import GenerationConflict, NoLiveGeneration
from similarity.generations.gate import Gate, GateReport, generation_named
from similarity.generations.plan import made_since, previous_generations
from similarity.index.comparing import lagging, persistent_lag
from similarity.index.protocol import ROLLBACK_SECONDS, CompanyIndex, Generation, GenerationState
from similarity.index.validation import nothing_before
from similarity.ingest.former_names import remember_names_only_in
from similarity.ingest.renewed_leases import REEMBED, RETIRE, RenewedLease
from similarity.ingest.writer_leases import wait_for_writers

IMPORTED = "imported"
"""The `bundle_id` of a generation whose vectors were imported without a bundle."""
WRITERS_SECONDS = 30.0
"""How long a promotion waits for writers; meanwhile, if the candidate has no bundle, writes are refused."""
LAG_SECONDS = 2.0
"""How long a document may seem missing because it was written between the two reads that are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """The result of a promotion or of its dry run. `reasons`: why it is refused; empty if it is allowed."""

    generation: str
    replaces: str | None
    lacking: int
    gate: GateReport | None
    reasons: tuple[str, ...]
    promoted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """The `target` of a rollback, how many documents of the live generation it lacks, and the first of their ids."""

    live: str
    target: str
    lacking: int
    lacks: tuple[str, ...]


def promote(
    index: CompanyIndex, name: str, *, gate: Gate | None, dry_run: bool = False, wait: float = WRITERS_SECONDS
) -> Promotion:
    """Make a filled generation live if it passes the gate and lacks no documents. Without a gate, it may be worse.

    A generation that was rolled back can be promoted too, if no other has been live since.

    Writes go on while the gate runs. Then a building generation (of imported vectors) is registered as a candidate.
    When every writer writes to it too, for which this waits at most `wait` seconds, the documents that it lacks are
    counted again. If it is not promoted, it is building again: the service refuses writes while a candidate has no
    bundle.

    Raises:
        UnknownGeneration: there is no generation of this name.
        GenerationConflict: the generation is live, or was live but not directly before the live one, or another one
            went live meanwhile.
        LeaseHeld: a re-embed is running, or a writer did not acknowledge the generation within `wait` seconds.
    """
    generation = generation_named(index, name)
    if generation.state is GenerationState.LIVE:
        raise GenerationConflict(f"generation {name} is live already")
    if generation.state is GenerationState.PREVIOUS and (target := previous_generations(index)[0].name) != name:
        raise GenerationConflict(
            f"generation {name} is previous, and {target} was live after it; only {target} can be made live again. To "
            f"go back to {name}, retire {target} first"
        )
    if generation.state is GenerationState.CANDIDATE and generation.bundle_id == IMPORTED and not dry_run:
        with RenewedLease(index, REEMBED):  # left by a promotion that was killed
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
        if generation.state is GenerationState.PREVIOUS:
            index.rollback(wait=0)  # the store's step that makes the previous generation live
        else:
            index.promote(name, lease=lease.held())
        undo.pop_all()
        return 0


def _withdraw(index: CompanyIndex, name: str) -> None:
    with suppress(GenerationConflict):  # it is live: only the store's answer was lost
        index.withdraw_candidate(name)


def _how_to_fill(generation: Generation) -> str:
    """Return how to bring a generation up to date, for a message."""
    if generation.state is GenerationState.PREVIOUS:
        return "load these companies again: loads write to it too"
    if generation.bundle_id != IMPORTED:
        return "run the re-embed or the copy again"
    return (
        "import these companies, and the deleted ones as rows with deleted=true: similarity generations import-vectors "
        f"FILE --encoder-id {generation.encoder_id} --into {generation.name}"
    )


def rollback_plan(index: CompanyIndex, *, force: bool = False, wait: float = 0) -> Rollback:
    """Return the target of a rollback with this `force`, and the documents that it still lacks after `wait` seconds.

    Raises:
        GenerationConflict: no generation was live before, or it was rolled back.
    """
    live, target = index.live().name, _rollback_target(index, force=force)
    lag = persistent_lag(index, ahead=live, behind=target, wait=wait)
    return Rollback(live=live, target=target, lacking=lag.count, lacks=lag.ids)


def rollback(index: CompanyIndex, *, force: bool = False, wait: float = ROLLBACK_SECONDS) -> Generation:
    """Make the previous generation live again. A repeated call is refused; `index.rollback` would undo the first.

    With `force`, however, a live import is replaced by the generation that was live before it, even if that one is
    newer: the import may have been promoted later. If such a rollback is repeated, the import is live again.

    Raises:
        GenerationConflict: no generation was live before, or it was rolled back, or it lacks documents (unless
            `force`).
    """
    if previous_generations(index):  # without one, the store refuses, and that is audited
        _rollback_target(index, force=force)
    return index.rollback(force=force, wait=wait)


def _rollback_target(index: CompanyIndex, *, force: bool) -> str:
    """Return the name of the generation that was live before the live one.

    Raises:
        GenerationConflict: there is none, or it is newer than the live one, so it was rolled back (unless `force`, and
            the live one is an import).
    """
    generation = index.live()
    live, is_import = generation.name, generation.bundle_id == IMPORTED
    previous = previous_generations(index)
    if not previous:
        raise nothing_before(live)
    target = previous[0].name
    newer = made_since(index, live)
    if target not in newer or (force and is_import):
        return target
    rolled_back = list(takewhile(newer.__contains__, (generation.name for generation in previous)))
    message = (
        f"nothing was changed: {live} is live, and {target}, which was live before it, is newer; so it was rolled "
        f"back. To make {target} live again: similarity generations promote {target} --without-gate"
    )
    if is_import:
        message += f". If {target} was not rolled back, because {live} is an import that was promoted later: "
        message += "similarity generations rollback --force"
    if older := previous[len(rolled_back) :]:
        message += f". To go back to {older[0].name}: retire {', '.join(rolled_back)}, then roll back"
    raise GenerationConflict(message)


def retire(index: CompanyIndex, name: str) -> None:
    """Remove a generation with all its documents; an unfinished one only while no re-embed runs.

    The names that only this generation holds are remembered, for later erasures.

    Raises:
        UnknownGeneration: there is no generation of this name.
        GenerationConflict: the generation is live.
        LeaseHeld: another generation that was live is being removed or, for an unfinished one, a re-embed is running.
    """
    state = generation_named(index, name).state
    was_live = state in (GenerationState.LIVE, GenerationState.PREVIOUS)
    with RenewedLease(index, RETIRE if was_live else REEMBED):
        if state is GenerationState.PREVIOUS:
            remember_names_only_in(index, name)
        index.retire(name)


def live_name(index: CompanyIndex) -> str | None:
    """Return the name of the live generation; None if none is live yet."""
    try:
        return index.live().name
    except NoLiveGeneration:
        return None
