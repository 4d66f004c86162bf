"""What a re-embed would do, found without changing anything."""

from dataclasses import dataclass, replace
from datetime import datetime

from similarity.errors import GenerationConflict
from similarity.generations.first import new_name
from similarity.index.protocol import CompanyIndex, Generation, GenerationState
from similarity.ingest.writer_leases import writer_leases


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run would do.

    About `lacking` documents, deleted ones included, are to be written (by counts; a run compares each
    version); `encodes` is False where vectors
    are copied. `begun`: the candidate exists already. `finished`: the live generation is of this
    bundle already. `writers` hold a lease now.
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


def plan(index: CompanyIndex, wanted: Generation) -> Plan:
    """What a re-embed into the generation `wanted` would do.

    Raises:
        NoLiveGeneration: there is nothing to re-embed yet.
        GenerationConflict: a candidate of another bundle is in the way.
    """
    live = index.live()
    begun = begun_earlier(index, wanted)
    here = index.stats(live.name)
    there = index.stats(begun.name) if begun else None
    documents = here.companies + here.deleted
    return Plan(
        live=live,
        candidate=begun or wanted,
        begun=begun is not None,
        finished=is_finished(live, wanted),
        encodes=live.encoder_id != wanted.encoder_id,
        companies=here.companies,
        documents=documents,
        lacking=max(0, documents - (there.companies + there.deleted if there else 0)),
        writers=tuple(lease.holder for lease in writer_leases(index)),
    )


def copy_of(live: Generation, *, taken: list[str], now: datetime) -> Generation:
    """The generation that a copy of the live one fills; nothing is written."""
    name = new_name(live.encoder_id, now=now, taken=taken)
    return replace(live, name=name, created_at=now, state=GenerationState.BUILDING, promoted_at=None)


def begun_earlier(index: CompanyIndex, wanted: Generation) -> Generation | None:
    """The candidate of the wanted bundle that an earlier run left, if any.

    Raises:
        GenerationConflict: a candidate of another bundle is in the way.
    """
    unfinished = (GenerationState.CANDIDATE, GenerationState.BUILDING)
    known = [generation for generation in index.generations() if generation.state in unfinished]
    others = [each for each in known if each.state is GenerationState.CANDIDATE and not _same_bundle(each, wanted)]
    if others:
        raise GenerationConflict(
            f"the candidate {others[0].name} of bundle {others[0].bundle_id} was begun before and is not live yet; "
            f"finish it with its own bundle, or give it up with: similarity generations retire {others[0].name}"
        )
    return next((generation for generation in known if _same_bundle(generation, wanted)), None)


def is_finished(live: Generation, wanted: Generation) -> bool:
    """Whether the live generation is of the wanted bundle already."""
    return _same_bundle(live, wanted)


def documents_in(index: CompanyIndex, generation: Generation) -> int:
    """How many documents a generation holds, deleted ones included."""
    stats = index.stats(generation.name)
    return stats.companies + stats.deleted


def _same_bundle(generation: Generation, wanted: Generation) -> bool:
    return (generation.encoder_id, generation.bundle_id) == (wanted.encoder_id, wanted.bundle_id)
