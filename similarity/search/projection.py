"""Projection of vectors onto their first two principal components, for a map."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

AXES = 2
# In float32 vectors, a smaller variation is rounding.
MIN_SPREAD = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """Points of a map: float64 `[n, 2]` within [-1, 1]. `explained`: share of the variance that they show, 0 to 1.

    Equal vectors are all at the origin, with `explained` 1.
    """

    points: NDArray[np.float64]
    explained: float


def project(vectors: NDArray[np.float32]) -> Projection:
    """Return the first two principal components of `vectors` `[n, dimension]`, n of 0 or more.

    Both axes have the same scale, so that distances can be compared; the largest coordinate is 1. A principal
    component has no sign: each axis is oriented so that its farthest vector (of several, the first) is positive.

        >>> project(np.float32([[0, 0], [1, 0], [4, 0]])).points[:, 0].round(2).tolist()
        [-0.71, -0.29, 1.0]
    """
    centred = vectors.astype(np.float64)
    if len(centred):
        centred -= centred.mean(axis=0)
    if len(centred) < 2 or float(np.abs(centred).max()) < MIN_SPREAD:
        return Projection(points=np.zeros((len(centred), AXES)), explained=1.0)
    _, spreads, directions = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(centred), AXES))
    found = (centred @ directions[:AXES].T) * (spreads[:AXES] > MIN_SPREAD)
    points[:, : found.shape[1]] = found * _signs(found)
    explained = float((spreads[:AXES] ** 2).sum() / (spreads**2).sum())
    return Projection(points=points / np.abs(points).max(), explained=explained)


def _signs(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """+1 or -1 for each axis, such that its farthest point lies on the positive side."""
    # Rounded, so that of two equally far points, one on each side, the last digit does not decide.
    farthest = np.abs(points).round(9).argmax(axis=0)
    return np.where(points[farthest, np.arange(points.shape[1])] < 0, -1.0, 1.0)
