"""Hubness of texts, for its correction by local scaling.

In some industries all descriptions are near each other, in others none are, so equal cosines do not mean equal
similarity. Cross-domain similarity local scaling (CSLS: Conneau et al., ICLR 2018, https://arxiv.org/abs/1710.04087)
subtracts from the cosine of two texts half of each one's mean cosine to its nearest neighbours. Then cosines are
comparable across texts.
"""

import numpy as np
from numpy.typing import NDArray

# Neighbours are searched in a random sample of this size, so that the work grows linearly with the corpus.
REFERENCE_TEXTS = 16_384
NEAREST = 32
_ROWS = 1_024


def hubness(vectors: NDArray[np.float32], *, seed: int) -> NDArray[np.float32]:
    """Return each text's mean cosine to its `NEAREST` reference texts, minus the mean over all texts, float32 `[t]`.

    Args:
        vectors: unit vectors `[t, d]` of distinct texts, t at least 2.
        seed: selects the reference texts.
    """
    sample = np.random.default_rng(seed).permutation(len(vectors))[:REFERENCE_TEXTS]
    column = np.full(len(vectors), -1)
    column[sample] = np.arange(len(sample))
    reference = np.ascontiguousarray(vectors[sample].T)
    nearest = min(NEAREST, len(sample) - 1)
    means = np.empty(len(vectors), dtype=np.float32)
    for start in range(0, len(vectors), _ROWS):
        rows = np.arange(start, min(start + _ROWS, len(vectors)))
        cosines = vectors[rows] @ reference
        itself = column[rows] >= 0
        cosines[np.flatnonzero(itself), column[rows][itself]] = -np.inf
        means[rows] = np.partition(cosines, -nearest, axis=1)[:, -nearest:].mean(axis=1)
    means -= means.mean()
    return means
