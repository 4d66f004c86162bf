"""Calibration of probabilities: reliability table, calibration error, Brier score and log loss.

All functions take `probabilities` `[n]`, `positive` (bool `[n]`) and `weights` `[n]`, the number of pairs that each
pair represents (1: only itself).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput

BINS = 10
DRAWS = 200
# Bounds the log loss of a wrong probability of 0 or 1.
CLIP = 1e-6

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """Pairs whose probabilities lie between `lower` and `upper`: the mean predicted and observed share of competitors.

    `share` is the bin's share of all weight, `pairs` its number of pairs.
    """

    lower: float
    upper: float
    predicted: float
    observed: float
    share: float
    pairs: int


def reliability(probabilities: Floats, positive: Flags, weights: Floats, *, bins: int = BINS) -> list[ReliabilityBin]:
    """Return bins of equally many pairs, lowest first; equal probabilities share a bin, so there may be fewer bins.

    Bins of equal width would leave the few high probabilities, which matter most, in nearly empty bins.

    Raises:
        InvalidInput: there is no pair, or a probability is not between 0 and 1.
    """
    bin_of = _bins(probabilities, bins)
    shares, predicted, observed = _averages(bin_of, probabilities, positive, weights)
    return [
        ReliabilityBin(
            lower=float(probabilities[bin_of == number].min()),
            upper=float(probabilities[bin_of == number].max()),
            predicted=float(predicted[number]),
            observed=float(observed[number]),
            share=float(shares[number]),
            pairs=int((bin_of == number).sum()),
        )
        for number in range(len(shares))
    ]


def calibration_error(probabilities: Floats, positive: Flags, weights: Floats, *, bins: int = BINS) -> float:
    """Return the ECE: the mean absolute difference of predicted and observed share over the bins of `reliability`.

    It is above 0 on any sample, even for perfectly calibrated probabilities; see `chance_error`.
    """
    shares, predicted, observed = _averages(_bins(probabilities, bins), probabilities, positive, weights)
    return float(shares @ np.abs(predicted - observed))


def chance_error(probabilities: Floats, weights: Floats, *, seed: int = 0) -> float:
    """Return the expected ECE of calibrated probabilities: the mean over independent outcomes simulated from them."""
    _check(probabilities)
    outcomes = np.random.default_rng(seed).random((DRAWS, len(probabilities))) < probabilities
    return float(np.mean([calibration_error(probabilities, drawn, weights) for drawn in outcomes]))


def brier(probabilities: Floats, positive: Flags, weights: Floats) -> float:
    """Return the Brier score: the mean squared difference of probability and outcome."""
    _check(probabilities)
    return float(np.average((probabilities - positive) ** 2, weights=weights))


def log_loss(probabilities: Floats, positive: Flags, weights: Floats) -> float:
    """Return the mean negative natural logarithm of the probability of the outcome."""
    _check(probabilities)
    given = np.where(positive, probabilities, 1 - probabilities)
    return float(np.average(-np.log(np.clip(given, CLIP, None)), weights=weights))


def _bins(probabilities: Floats, bins: int) -> NDArray[np.intp]:
    """Return the bin of each probability, numbered from 0 without gaps."""
    _check(probabilities)
    edges = np.unique(np.quantile(probabilities, np.arange(1, bins) / bins))
    _, bin_of = np.unique(np.searchsorted(edges, probabilities, side="right"), return_inverse=True)
    return bin_of


def _averages(
    bin_of: NDArray[np.intp], probabilities: Floats, positive: Flags, weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return for each bin its share of all weight, the mean predicted and the mean observed share."""
    weight = np.bincount(bin_of, weights=weights)
    predicted = np.bincount(bin_of, weights=weights * probabilities) / weight
    return weight / weight.sum(), predicted, np.bincount(bin_of, weights=weights * positive) / weight


def _check(probabilities: Floats) -> None:
    if not len(probabilities):
        raise InvalidInput("there is no pair with a probability; give at least one")
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise InvalidInput("a probability is not between 0 and 1; map scores to probabilities first")
