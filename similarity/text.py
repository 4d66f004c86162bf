"""The one text preparation: what of a company's profile the encoder reads."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSettings:
    """What is taken out before encoding; part of a bundle's `encoder_id`."""

    mask_names: bool = True
    drop_origin_sentences: bool = True
    drop_places: bool = False
