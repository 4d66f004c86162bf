"""The plan of a re-embed, computed without changing anything."""

from dataclasses import dataclass, replace
from datetime import datetime

from similarity.errors import GenerationConflict
from similarity.generations.first import new_name
from similarity.index.protocol import CompanyIndex, Generation, GenerationState
from similarity.ingest.writer_leases import writer_leases


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of a run.

    `lacking`: about how many documents, tombstones included, will be written (by counts; a run compares versions).
    `encodes`: False if vectors are copied. `begun`: the candidate exists already. `finished`: the live generation
    has this bundle already. `writers`: holders of writer leases.
    """

    live: Generation
    candidate: Generation
    begun: bool
    finished: bool
    encodes: bool
    companies: int
    documents: int
    lacking: int
    writers: tuple[str, ...]


def plan(index: CompanyIndex, target: Generation) -> Plan:
    """Return the plan of a re-embed into the generation `target`.

    Raises:
        NoLiveGeneration: there is no generation to re-embed.
        GenerationConflict: there is a candidate of another bundle.
    """
    live = index.live()
    begun = unfinished_candidate(index, target)
    here = index.stats(live.name)
    there = index.stats(begun.name) if begun else None
    documents = here.companies + here.deleted
    return Plan(
        live=live,
        candidate=begun or target,
        begun=begun is not None,
        finished=is_finished(live, target),
        encodes=live.encoder_id != target.encoder_id,
        companies=here.companies,
        documents=documents,
        lacking=max(0, documents - (there.companies + there.deleted if there else 0)),
        writers=tuple(lease.holder for lease in writer_leases(index)),
    )


def copy_of(live: Generation, *, taken: list[str], now: datetime) -> Generation:
    """Return the new generation for a copy of the live one; nothing is written."""
    name = new_name(live.encoder_id, now=now, taken=taken)
    return replace(live, name=name, created_at=now, state=GenerationState.BUILDING, promoted_at=None)


def unfinished_candidate(index: CompanyIndex, target: Generation) -> Generation | None:
    """Return the unfinished candidate of the target bundle, if an earlier run left one.

    Raises:
        GenerationConflict: there is a candidate of another bundle.
    """
    unfinished = (GenerationState.CANDIDATE, GenerationState.BUILDING)
    known = [generation for generation in index.generations() if generation.state in unfinished]
    others = [each for each in known if each.state is GenerationState.CANDIDATE and not _same_bundle(each, target)]
    if others:
        raise GenerationConflict(
            f"there is an unfinished candidate {others[0].name} of bundle {others[0].bundle_id}; finish it with its "
            f"own bundle, or remove it with: similarity generations retire {others[0].name}"
        )
    return next((generation for generation in known if _same_bundle(generation, target)), None)


def is_finished(live: Generation, target: Generation) -> bool:
    """Return whether the live generation has the target bundle already."""
    return _same_bundle(live, target)


def documents_in(index: CompanyIndex, generation: Generation) -> int:
    """Return how many documents a generation holds, tombstones included."""
    stats = index.stats(generation.name)
    return stats.companies + stats.deleted


def _same_bundle(generation: Generation, target: Generation) -> bool:
    return (generation.encoder_id, generation.bundle_id) == (target.encoder_id, target.bundle_id)
