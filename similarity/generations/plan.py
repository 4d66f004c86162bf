"""The plan of a re-embed, computed without changing anything, and look-ups of the generations that it depends on."""

from dataclasses import dataclass, replace
from datetime import datetime

from similarity.errors import GenerationConflict
from similarity.generations.new import new_name
from similarity.index.protocol import CompanyIndex, Generation, GenerationState
from similarity.ingest.writer_leases import writer_leases

LOST_PROBABILITY = (
    "unlike the live one, the new bundle gives no probability, and hits will be in the order of the cosine; unless "
    "this is meant, stop, and run python -m training.calibrate or training.rank first (docs/training.md)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of a run.

    `lacking`: about how many documents, tombstones included, will be written (by counts; a run compares versions).
    `encodes`: False if vectors are copied. `begun`: the candidate exists already. `writers`: holders of writer leases.
    `warning`: what the candidate lacks; empty if nothing.
    """

    live: Generation
    candidate: Generation
    begun: bool
    encodes: bool
    companies: int
    documents: int
    lacking: int
    writers: tuple[str, ...]
    warning: str


def plan(index: CompanyIndex, target: Generation) -> Plan:
    """Return the plan of a re-embed into the generation `target`.

    Raises:
        NoLiveGeneration: there is no generation to re-embed.
        GenerationConflict: there is a candidate of another bundle.
    """
    live = index.live()
    begun = unfinished_candidate(index, target)
    stats = index.stats(live.name)
    documents = stats.companies + stats.deleted
    return Plan(
        live=live,
        candidate=begun or target,
        begun=begun is not None,
        encodes=live.encoder_id != target.encoder_id,
        companies=stats.companies,
        documents=documents,
        lacking=max(0, documents - (documents_in(index, begun) if begun else 0)),
        writers=tuple(lease.holder for lease in writer_leases(index)),
        warning=warning(live, target),
    )


def warning(live: Generation, target: Generation) -> str:
    """Return what searches will lack once `target` is live; empty if nothing."""
    return LOST_PROBABILITY if live.second_stage and not target.second_stage else ""


def copy_of(index: CompanyIndex, live: Generation, *, now: datetime) -> Generation:
    """Return the new generation for a copy of the live one; nothing is written."""
    name = new_name(index, live.encoder_id, now=now)
    return replace(live, name=name, created_at=now, state=GenerationState.BUILDING, promoted_at=None, promotion=0)


def unfinished_candidate(index: CompanyIndex, target: Generation) -> Generation | None:
    """Return the unfinished candidate of the target bundle, if an earlier run left one.

    A building generation does not count, because it may be a user's import. The only exception is an empty one with the
    name of `target`: an earlier run of this target stopped before it registered the generation.

    Raises:
        GenerationConflict: there is a candidate of another bundle.
    """
    known = [each for each in index.generations() if _is_of_a_run(index, each, target)]
    others = [each for each in known if not same_bundle(each, target)]
    if others:
        raise GenerationConflict(
            f"there is an unfinished candidate {others[0].name} of bundle {others[0].bundle_id}; finish it with its "
            f"own bundle, or remove it with: similarity generations retire {others[0].name}"
        )
    return next((generation for generation in known if same_bundle(generation, target)), None)


def _is_of_a_run(index: CompanyIndex, generation: Generation, target: Generation) -> bool:
    if generation.state is GenerationState.BUILDING and generation.name == target.name:
        return same_bundle(generation, target) and not documents_in(index, generation)
    return generation.state is GenerationState.CANDIDATE


def previous_generations(index: CompanyIndex) -> list[Generation]:
    """Return the generations that were live before, the most recent one first."""
    previous = [generation for generation in index.generations() if generation.state is GenerationState.PREVIOUS]
    return sorted(previous, key=lambda generation: generation.promotion, reverse=True)


def former_bundles(index: CompanyIndex) -> set[str]:
    """Return the ids of the bundles that were live and are not live now, even if their generations were retired.

    They were replaced or rolled back, so a schedule does not make them live again.
    """
    known = index.generations()
    live, previous = (
        {generation.bundle_id for generation in known if generation.state is state}
        for state in (GenerationState.LIVE, GenerationState.PREVIOUS)
    )
    return previous.union(index.retired_bundles()) - live


def made_since(index: CompanyIndex, name: str) -> set[str]:
    """Return the names of a generation and of all newer ones. If one of these is previous, it was rolled back."""
    oldest_first = [generation.name for generation in index.generations()]
    return set(oldest_first[oldest_first.index(name) :])


def documents_in(index: CompanyIndex, generation: Generation) -> int:
    """Return how many documents a generation holds, tombstones included."""
    stats = index.stats(generation.name)
    return stats.companies + stats.deleted


def same_bundle(generation: Generation, target: Generation) -> bool:
    """Return whether both generations have the same bundle."""
    return (generation.encoder_id, generation.bundle_id) == (target.encoder_id, target.bundle_id)
