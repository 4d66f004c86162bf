"""Hubness of texts, and its correction: in some industries everything is near everything, in others nothing is.

A cosine of .8 says little where all neighbours have .85, and much where the next one has .6. Cross-domain similarity
local scaling (CSLS: Conneau et al., ICLR 2018, https://arxiv.org/abs/1710.04087) subtracts from the cosine of two
texts half of each one's mean cosine to its nearest neighbours. Then cosines of different texts can be compared.
"""

import numpy as np
from numpy.typing import NDArray

# Neighbours are searched among this many texts, drawn at random, so that the work grows linearly with the corpus.
REFERENCE_TEXTS = 16_384
NEAREST = 32
_ROWS = 1_024


def hubness(vectors: NDArray[np.float32], *, seed: int) -> NDArray[np.float32]:
    """Each text's mean cosine to its `NEAREST` reference texts, minus the mean over all texts, float32 `[t]`.

    Args:
        vectors: unit vectors `[t, d]` of distinct texts, t at least 2.
        seed: draws the reference texts.
    """
    drawn = np.random.default_rng(seed).permutation(len(vectors))[:REFERENCE_TEXTS]
    column = np.full(len(vectors), -1)
    column[drawn] = np.arange(len(drawn))
    reference = np.ascontiguousarray(vectors[drawn].T)
    nearest = min(NEAREST, len(drawn) - 1)
    means = np.empty(len(vectors), dtype=np.float32)
    for start in range(0, len(vectors), _ROWS):
        rows = np.arange(start, min(start + _ROWS, len(vectors)))
        cosines = vectors[rows] @ reference
        itself = column[rows] >= 0
        cosines[np.flatnonzero(itself), column[rows][itself]] = -np.inf
        means[rows] = np.partition(cosines, -nearest, axis=1)[:, -nearest:].mean(axis=1)
    means -= means.mean()
    return means
