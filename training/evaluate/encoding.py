"""The interface of an encoder for evaluations: a function from texts to unit vectors."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput

Encode: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]
"""n texts -> unit vectors, float32 `[n, dimension]`"""
Texts: TypeAlias = Mapping[str, str]
"""company id -> text"""


def encode_all(encode: Encode, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the unit vectors of `texts`, float32 `[n, dimension]`, n >= 1; equal texts are encoded once.

    Raises:
        InvalidInput: the encoder does not return one finite vector for each text.
    """
    distinct = list(dict.fromkeys(texts))
    vectors = encode(distinct)
    if vectors.shape[0] != len(distinct) or not np.isfinite(vectors).all():
        raise InvalidInput(
            f"the encoder returned an array of shape {list(vectors.shape)} for {len(distinct)} texts, or numbers that "
            "are not finite; the model may have diverged in training: take an earlier checkpoint"
        )
    row_of = {text: row for row, text in enumerate(distinct)}
    return vectors[[row_of[text] for text in texts]]
