"""Promotion, rollback and retirement of a generation by an operator, each with its checks."""

from dataclasses import dataclass

from similarity.errors import GenerationConflict, NoLiveGeneration
from similarity.generations.gate import Gate, GateReport, generation_named
from similarity.generations.leases import REEMBED, RenewedLease
from similarity.generations.plan import previous_generations
from similarity.index.comparing import lagging, persistent_lag
from similarity.index.protocol import CompanyIndex, GenerationState
from similarity.index.validation import nothing_before


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


def promote(index: CompanyIndex, name: str, *, gate: Gate | None, dry_run: bool = False) -> Promotion:
    """Make a filled generation live if it passes the gate and lacks no documents. Without a gate, it may be worse.

    A building generation (with imported vectors) is registered immediately before.

    Raises:
        UnknownGeneration: there is no generation of this name.
        GenerationConflict: the generation is live or previous.
        LeaseHeld: a re-embed is running.
    """
    generation = generation_named(index, name)
    if generation.state not in (GenerationState.CANDIDATE, GenerationState.BUILDING):
        raise GenerationConflict(f"generation {name} is {generation.state}; to go back to a previous one, roll back")
    live = live_name(index)
    lacking = sum(1 for _ in lagging(index, ahead=live, behind=name)) if live else 0
    verdict = gate(live, name) if gate else None
    reasons = verdict.reasons if verdict else ()
    if lacking:
        reasons = (f"it lacks {lacking:,} documents of {live}; run the re-embed or the import again", *reasons)
    promoted = not dry_run and not reasons
    if promoted:
        with RenewedLease(index, REEMBED) as lease:
            if generation.state is GenerationState.BUILDING:
                index.register_candidate(name)
            index.promote(name, lease=lease.held())
    return Promotion(generation=name, replaces=live, lacking=lacking, gate=verdict, reasons=reasons, promoted=promoted)


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

    Raises:
        UnknownGeneration: there is no generation of this name.
        GenerationConflict: the generation is live.
        LeaseHeld: a re-embed is running.
    """
    if generation_named(index, name).state in (GenerationState.LIVE, GenerationState.PREVIOUS):
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
