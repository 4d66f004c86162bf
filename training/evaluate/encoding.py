"""The interface of an encoder for evaluations: a function from texts to unit vectors."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.company import Vector
from similarity.errors import InvalidInput

Encode: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]
"""n texts -> unit vectors, float32 `[n, dimension]`"""
Texts: TypeAlias = Mapping[str, str]
"""company id -> text"""
Vectors: TypeAlias = Mapping[str, Vector]
"""company id -> unit vector, float32 `[dimension]`"""
Progress: TypeAlias = Callable[[int, int], None]
"""called with the number of texts done, and of all texts"""

BLOCK_TEXTS = 2_048


def encode_all(encode: Encode, texts: Sequence[str], *, progress: Progress | None = None) -> NDArray[np.float32]:
    """Return the unit vectors of `texts`, float32 `[n, dimension]`, n >= 1; equal texts are encoded once.

    Texts are encoded in blocks, the longest first; `progress` is called after each block.

    Raises:
        InvalidInput: the encoder does not return one finite vector for each text.
    """
    distinct = sorted(set(texts), key=lambda text: (-len(text), text))
    blocks = []
    for start in range(0, len(distinct), BLOCK_TEXTS):
        block = distinct[start : start + BLOCK_TEXTS]
        vectors = encode(block)
        if vectors.shape[0] != len(block) or not np.isfinite(vectors).all():
            raise InvalidInput(
                f"the encoder made an array of shape {list(vectors.shape)} of {len(block)} texts, or numbers that are "
                "not finite; the model may have diverged in training: take an earlier checkpoint"
            )
        blocks.append(vectors)
        if progress is not None:
            progress(start + len(block), len(distinct))
    row_of = {text: row for row, text in enumerate(distinct)}
    found: NDArray[np.float32] = np.concatenate(blocks)[[row_of[text] for text in texts]]
    return found


def encode_companies(encode: Encode, texts: Texts) -> dict[str, Vector]:
    """Return the unit vector of each company's text by company id."""
    return dict(zip(texts, encode_all(encode, list(texts.values())), strict=True))
