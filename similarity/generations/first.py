"""The first generation of an index, from nothing to live; and what a new generation is called."""

import re
import time
from collections.abc import Collection
from datetime import datetime

from similarity.bundle import ModelBundle
from similarity.errors import EncoderMismatch, GenerationConflict, LeaseHeld, NoLiveGeneration
from similarity.generations.leases import KeptLease
from similarity.index.protocol import CompanyIndex, Generation, GenerationState

FIRST_LOAD = "first-load"
"""The lease of whoever makes the first generation."""
POLL_SECONDS = 0.1


def ensure_generation(index: CompanyIndex, bundle: ModelBundle, *, now: datetime) -> Generation:
    """The generation that a first load writes to: the live one, a candidate begun earlier, or a new one.

    If several first loads begin at once, one makes the generation and the others wait for it. With a candidate for
    each load, the one that goes live could lack what another load wrote before it was registered.

    Raises:
        EncoderMismatch: what is there was made with another encoder than the bundle's.
    """
    while (found := _written_to(index)) is None:
        try:
            with KeptLease(index, FIRST_LOAD):
                if _written_to(index) is None:
                    new = new_generation(bundle, now=now, taken=[known.name for known in index.generations()])
                    index.create_generation(new)
                    index.register_candidate(new.name)
        except LeaseHeld:
            time.sleep(POLL_SECONDS)
    return _of_encoder(found, bundle)


def promote_first(index: CompanyIndex, generation: Generation) -> bool:
    """Make a filled generation live if none is live yet, and return whether it became live.

    An empty one stays a candidate.
    """
    try:
        index.live()
    except NoLiveGeneration:
        if index.stats(generation.name).companies:
            try:
                index.promote(generation.name)
            except GenerationConflict:  # another first load has promoted it just now
                return index.live().name == generation.name
            return True
    return False


def new_generation(bundle: ModelBundle, *, now: datetime, taken: Collection[str]) -> Generation:
    """A generation for what this bundle makes, under a name that is not `taken`; nothing is written."""
    return Generation(
        name=new_name(bundle.encoder_id, now=now, taken=taken),
        encoder_id=bundle.encoder_id,
        bundle_id=bundle.bundle_id,
        dimension=bundle.manifest.dimension,
        created_at=now,
        calibration=bundle.manifest.calibration,
    )


def new_name(encoder_id: str, *, now: datetime, taken: Collection[str]) -> str:
    """Time and encoder, such as 20260131-120000-1f2e3d4c; with -2, -3 ... where that is taken."""
    plain = f"{now:%Y%m%d-%H%M%S}-{re.sub('[^a-z0-9]', '-', encoder_id[:8].lower())}"
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}-{number}"
    return name


def _written_to(index: CompanyIndex) -> Generation | None:
    """The live generation, else a candidate, else None."""
    targets = index.write_targets()
    for state in (GenerationState.LIVE, GenerationState.CANDIDATE):
        for generation in targets:
            if generation.state is state:
                return generation
    return None


def _of_encoder(generation: Generation, bundle: ModelBundle) -> Generation:
    if generation.encoder_id != bundle.encoder_id:
        raise EncoderMismatch(
            f"generation {generation.name} ({generation.state}) was made with encoder {generation.encoder_id}, but "
            f"the bundle {bundle.folder} holds {bundle.encoder_id}; leave --bundle away to go on with the generation's "
            f"own, or move to the new one with: similarity generations reembed --bundle {bundle.folder}"
        )
    return generation
