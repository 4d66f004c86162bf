"""The query vector of several anchors and negatives."""

from collections.abc import Sequence

import numpy as np

from similarity.company import Vector
from similarity.errors import InvalidInput

# Rocchio's rule gives negatives less weight than positives (Manning, Raghavan, Schuetze: Introduction to
# Information Retrieval, 9.1.1): with equal weights the query would move too far away.
NEGATIVE_WEIGHT = 0.5
MIN_LENGTH = 1e-3


def query_vector(
    anchors: Sequence[Vector], *, weights: Sequence[float] | None = None, negatives: Sequence[Vector] = ()
) -> Vector:
    """Return the weighted mean of the anchors minus `NEGATIVE_WEIGHT` times the mean of the negatives.

    The result is a unit vector, float32 `[dimension]`; a single anchor without negatives is returned unchanged.

        >>> query_vector([np.float32([1, 0]), np.float32([0, 1])], weights=[3, 1]).round(2).tolist()
        [0.949999988079071, 0.3199999928474426]

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
    if length < MIN_LENGTH:
        raise InvalidInput("the anchors and negatives cancel out; remove one of them", about="negatives")
    unit: Vector = (query / length).astype(np.float32)
    return unit
