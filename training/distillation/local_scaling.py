"""How crowded it is around each text: in some industries everything is near everything, in others nothing is.

A cosine of .8 says little where all neighbours have .85, and much where the next one has .6. Cross-domain similarity
local scaling (CSLS: Conneau et al., ICLR 2018, https://arxiv.org/abs/1710.04087) takes off a cosine how near each
of the two texts is to its nearest ones, half of it each; so cosines of different texts can be compared.
"""

import numpy as np
from numpy.typing import NDArray

# The nearest are looked for among this many texts, drawn at random, so that the work grows with the corpus only once.
REFERENCE_TEXTS = 16_384
NEAREST = 32
_ROWS = 1_024


def crowding(vectors: NDArray[np.float32], *, seed: int) -> NDArray[np.float32]:
    """Each text's mean cosine to its `NEAREST` among some others, less the mean of all texts, float32 `[t]`.

    Args:
        vectors: unit vectors `[t, d]`, t at least 2; rows of equal texts are thought to be there only once.
        seed: draws the others.
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
