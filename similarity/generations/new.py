"""Creation and promotion of the first generation of an index; names of new generations."""

import re
import time
from datetime import datetime

from similarity.bundle import ModelBundle
from similarity.errors import EncoderMismatch, GenerationConflict, LeaseHeld, NoLiveGeneration
from similarity.index.protocol import CompanyIndex, Generation, GenerationState
from similarity.ingest.renewed_leases import RenewedLease

FIRST_LOAD = "first-load"
"""Name of the lease for creating the first generation."""
POLL_SECONDS = 0.1


def ensure_generation(index: CompanyIndex, bundle: ModelBundle, *, now: datetime) -> Generation:
    """Return the generation that a first load writes to: the live one, an existing candidate, or a new one.

    If several first loads start at the same time, one creates the generation and the others wait for it. If each load
    had its own candidate, the promoted candidate could lack documents that another load wrote before it existed.

    Raises:
        EncoderMismatch: the existing generation has another encoder than the bundle.
    """
    while (found := _written_to(index)) is None:
        try:
            with RenewedLease(index, FIRST_LOAD):
                if _written_to(index) is None:
                    new = new_generation(index, bundle, now=now)
                    index.create_generation(new)
                    index.register_candidate(new.name)
        except LeaseHeld:
            time.sleep(POLL_SECONDS)
    if found.encoder_id != bundle.encoder_id:
        raise EncoderMismatch(
            f"generation {found.name} ({found.state}) has vectors of encoder {found.encoder_id}, but "
            f"the bundle {bundle.folder} has encoder {bundle.encoder_id}; give --bundle the folder of encoder "
            f"{found.encoder_id} (by default the index's own is used, if it has one; imported vectors may have none), "
            f"or change to the new encoder with: similarity generations reembed --bundle {bundle.folder}"
        )
    return found


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


def new_generation(index: CompanyIndex, bundle: ModelBundle, *, now: datetime) -> Generation:
    """Return a generation for vectors of this bundle, with a new name; nothing is written."""
    return Generation(
        name=new_name(index, bundle.encoder_id, now=now),
        encoder_id=bundle.encoder_id,
        bundle_id=bundle.bundle_id,
        dimension=bundle.manifest.dimension,
        created_at=now,
        calibration=bundle.manifest.calibration,
        ranker=bundle.manifest.ranker,
    )


def new_name(index: CompanyIndex, encoder_id: str, *, now: datetime) -> str:
    """Return a name of time and encoder, such as 20260131-120000-1f2e3d4c; with -2, -3 ... if it is taken."""
    taken = [known.name for known in index.generations()]
    plain = f"{now:%Y%m%d-%H%M%S}-{re.sub('[^a-z0-9]', '-', encoder_id[:8].lower())}"
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}-{number}"
    return name


def _written_to(index: CompanyIndex) -> Generation | None:
    """Return the live generation, else a candidate, else None."""
    known = {generation.state: generation for generation in index.write_targets()[::-1]}
    return known.get(GenerationState.LIVE) or known.get(GenerationState.CANDIDATE)
