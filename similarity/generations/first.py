"""Creation and promotion of the first generation of an index; names of new generations."""

import re
import time
from collections.abc import Collection
from datetime import datetime

from similarity.bundle import ModelBundle
from similarity.errors import EncoderMismatch, GenerationConflict, LeaseHeld, NoLiveGeneration
from similarity.generations.leases import RenewedLease
from similarity.index.protocol import CompanyIndex, Generation, GenerationState

FIRST_LOAD = "first-load"
"""Name of the lease for creating the first generation."""
POLL_SECONDS = 0.1


def ensure_generation(index: CompanyIndex, bundle: ModelBundle, *, now: datetime) -> Generation:
    """Return the generation that a first load writes to: the live one, an existing candidate, or a new one.

    If several first loads start at the same time, one creates the generation and the others wait for it. If each
    had its own candidate, the promoted one could lack documents that another load wrote before it was registered.

    Raises:
        EncoderMismatch: the existing generation has another encoder than the bundle.
    """
    while (found := _written_to(index)) is None:
        try:
            with RenewedLease(index, FIRST_LOAD):
                if _written_to(index) is None:
                    new = new_generation(bundle, now=now, taken=[known.name for known in index.generations()])
                    index.create_generation(new)
                    index.register_candidate(new.name)
        except LeaseHeld:
            time.sleep(POLL_SECONDS)
    return _of_encoder(found, bundle)


def promote_first(index: CompanyIndex, generation: Generation) -> bool:
    """Promote a filled generation if none is live yet, and return whether it became live.

    An empty generation stays a candidate.
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
    """Return a generation for vectors of this bundle, with a name that is not `taken`; nothing is written."""
    return Generation(
        name=new_name(bundle.encoder_id, now=now, taken=taken),
        encoder_id=bundle.encoder_id,
        bundle_id=bundle.bundle_id,
        dimension=bundle.manifest.dimension,
        created_at=now,
        calibration=bundle.manifest.calibration,
    )


def new_name(encoder_id: str, *, now: datetime, taken: Collection[str]) -> str:
    """Return a name of time and encoder, such as 20260131-120000-1f2e3d4c; with -2, -3 ... if it is taken."""
    plain = f"{now:%Y%m%d-%H%M%S}-{re.sub('[^a-z0-9]', '-', encoder_id[:8].lower())}"
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}-{number}"
    return name


def _written_to(index: CompanyIndex) -> Generation | None:
    """Return the live generation, else a candidate, else None."""
    targets = index.write_targets()
    for state in (GenerationState.LIVE, GenerationState.CANDIDATE):
        for generation in targets:
            if generation.state is state:
                return generation
    return None


def _of_encoder(generation: Generation, bundle: ModelBundle) -> Generation:
    if generation.encoder_id != bundle.encoder_id:
        raise EncoderMismatch(
            f"generation {generation.name} ({generation.state}) has vectors of encoder {generation.encoder_id}, but "
            f"the bundle {bundle.folder} has encoder {bundle.encoder_id}; omit --bundle to use the generation's "
            f"encoder, or change to the new one with: similarity generations reembed --bundle {bundle.folder}"
        )
    return generation
