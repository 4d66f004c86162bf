"""Measures of order, on plain arrays: average ranks, AUC and Spearman's correlation. Ties count half."""

import numpy as np
from numpy.typing import NDArray


def average_ranks(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the rank of each of `values` `[n]`, 1 for the lowest; equal values have the mean of their ranks."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    shared: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return shared


def auc(scores: NDArray[np.floating], positive: NDArray[np.bool_]) -> float:
    """Return the probability that a positive scores above a negative (ties count half); NaN for only one kind."""
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if not positives or not negatives:
        return float("nan")
    above = average_ranks(scores)[positive].sum() - positives * (positives + 1) / 2
    return float(above / (positives * negatives))


def spearman(first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
    """Return Spearman's rank correlation of two arrays `[n]`; NaN if one of them is constant."""
    one, other = (ranks - ranks.mean() for ranks in (average_ranks(first), average_ranks(second)))
    spread = np.sqrt((one @ one) * (other @ other))
    return float(one @ other / spread) if spread else float("nan")
