"""The query of several anchors: towards some companies, away from others."""

from collections.abc import Sequence

import numpy as np

from similarity.company import Vector
from similarity.errors import InvalidInput

# Rocchio's rule weighs what is not wanted less than what is (Manning, Raghavan, Schuetze: Introduction
# to Information Retrieval, 9.1.1): far from everything that a negative is like would be too far.
NEGATIVE_WEIGHT = 0.5
SHORTEST = 1e-3


def query_vector(
    anchors: Sequence[Vector], *, weights: Sequence[float] | None = None, negatives: Sequence[Vector] = ()
) -> Vector:
    """Weighted mean of the anchors less `NEGATIVE_WEIGHT` of the mean of the negatives; unit, float32 `[dimension]`.

    One anchor alone is returned as it is.

    Raises:
        InvalidInput: there is no anchor, the weights do not fit them, or anchors and negatives cancel out.
    """
    if not anchors:
        raise InvalidInput("name at least one company to be similar to")
    if weights is not None and (len(weights) != len(anchors) or any(not weight > 0 for weight in weights)):
        raise InvalidInput(f"give a weight above 0 for each of the {len(anchors)} anchors")
    if len(anchors) == 1 and not negatives:
        return anchors[0]
    towards = np.average(np.array(anchors, dtype=np.float64), axis=0, weights=weights)
    away = np.mean(np.array(negatives, dtype=np.float64), axis=0) if negatives else np.zeros_like(towards)
    query = towards - NEGATIVE_WEIGHT * away
    length = float(np.linalg.norm(query))
    if length < SHORTEST:
        raise InvalidInput("these anchors and negatives cancel out; leave one of them out")
    unit: Vector = (query / length).astype(np.float32)
    return unit
