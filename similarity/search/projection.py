"""A map of vectors: two axes along which they differ most, by principal components."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

AXES = 2
# Of float32 vectors, whatever varies less than this does so by rounding.
SMALLEST_SPREAD = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """`points` is float64 `[n, 2]` within [-1, 1]; `explained` the share of the variance they show, 0 to 1.

    Points that are one and the same are all at the origin, and nothing is left unexplained.
    """

    points: NDArray[np.float64]
    explained: float


def project(vectors: NDArray[np.float32]) -> Projection:
    """The principal components of `vectors` `[n, dimension]`, n of 0 or more.

    Both axes have one scale, so that distances can be compared, and the farthest coordinate is 1. The
    same vectors give the same map: each axis points to where its farthest vector is (of several, the
    first), for a principal component as such has no direction.
    """
    centred = vectors.astype(np.float64)
    if len(centred):
        centred -= centred.mean(axis=0)
    if len(centred) < 2 or float(np.abs(centred).max()) < SMALLEST_SPREAD:
        return Projection(points=np.zeros((len(centred), AXES)), explained=1.0)
    _, spreads, directions = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(centred), AXES))
    found = (centred @ directions[:AXES].T) * (spreads[:AXES] > SMALLEST_SPREAD)
    points[:, : found.shape[1]] = found * _signs(found)
    explained = float((spreads[:AXES] ** 2).sum() / (spreads**2).sum())
    return Projection(points=points / np.abs(points).max(), explained=explained)


def _signs(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """+1 or -1 for each axis, such that its farthest point lies on the positive side."""
    # Rounded, so that two points equally far, one on each side, are not told apart by the last digit.
    farthest = np.abs(points).round(9).argmax(axis=0)
    return np.where(points[farthest, np.arange(points.shape[1])] < 0, -1.0, 1.0)
