"""The first generation of an index, from nothing to live."""

from datetime import datetime

from similarity.bundle import ModelBundle
from similarity.errors import EncoderMismatch, NoLiveGeneration
from similarity.index.protocol import CompanyIndex, Generation, GenerationState


def ensure_generation(index: CompanyIndex, bundle: ModelBundle, *, now: datetime) -> Generation:
    """The generation that a first load writes to: the live one, a candidate begun earlier, or a new one.

    Raises:
        EncoderMismatch: what is there was made with another encoder than the bundle's.
    """
    targets = index.write_targets()
    for state in (GenerationState.LIVE, GenerationState.CANDIDATE):
        for generation in targets:
            if generation.state is state:
                return _of_encoder(generation, bundle)
    generation = Generation(
        name=f"{now:%Y%m%d-%H%M%S}-{bundle.encoder_id[:8]}",
        encoder_id=bundle.encoder_id,
        bundle_id=bundle.bundle_id,
        dimension=bundle.manifest.dimension,
        created_at=now,
        calibration=bundle.manifest.calibration,
    )
    index.create_generation(generation)
    index.register_candidate(generation.name)
    return generation


def promote_first(index: CompanyIndex, generation: Generation) -> bool:
    """Makes a filled generation live if none is live yet; an empty one stays a candidate."""
    try:
        index.live()
    except NoLiveGeneration:
        if index.stats(generation.name).companies:
            index.promote(generation.name)
            return True
    return False


def _of_encoder(generation: Generation, bundle: ModelBundle) -> Generation:
    if generation.encoder_id != bundle.encoder_id:
        raise EncoderMismatch(
            f"generation {generation.name} ({generation.state}) was made with encoder {generation.encoder_id}, but "
            f"the bundle {bundle.folder} holds {bundle.encoder_id}; pass the generation's own bundle with --bundle, "
            "or start a new index file with --index"
        )
    return generation
