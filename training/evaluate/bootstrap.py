"""Confidence intervals by the bootstrap over anchors.

Anchors are resampled, not pairs, because the pairs of one anchor are not independent. Two methods are compared on the
same anchors (paired), which removes the differences in difficulty between anchors.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.generations.confidence_intervals import INTERVAL, RESAMPLES, bootstrap_interval

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure, such as a mean or a mean difference, with the 2.5th and 97.5th percentile of its resamples."""

    mean: float
    lower: float
    upper: float
    anchors: int


def with_bounds(name: str, found: Interval) -> dict[str, float]:
    """Return mean, lower and upper bound as figures of a manifest: `name`, `name`_lower, `name`_upper."""
    return {name: found.mean, f"{name}_lower": found.lower, f"{name}_upper": found.upper}


def mean_interval(values: Floats, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """Return the mean of one method's values `[anchors]` and its interval; NaN values are left out.

    Raises:
        InvalidInput: no value is left.
    """
    kept = _defined(values)
    lower, upper = bootstrap_interval(kept, seed=seed, resamples=resamples)
    return Interval(mean=float(kept.mean()), lower=lower, upper=upper, anchors=len(kept))


def paired_difference(new: Floats, old: Floats, *, seed: int = 0) -> Interval:
    """Return the mean of `new` - `old`, both `[anchors]` in the same order, without anchors that have a NaN in either.

    Raises:
        InvalidInput: the two are of different length, or no anchor is left.
    """
    if new.shape != old.shape:
        raise InvalidInput(
            f"the methods have {len(new)} and {len(old)} values; to compare them in pairs, give the same anchors in "
            "one order"
        )
    return mean_interval(new - old, seed=seed)


def statistic_interval(
    statistic: Callable[[NDArray[np.intp]], float], groups: NDArray[np.int64], *, seed: int = 0, resamples: int = 1_000
) -> Interval:
    """Return the interval of a statistic that is not a mean over anchors, such as an AUC over all pairs.

    `groups` `[pairs]` is the number of each pair's anchor. `statistic` gets the indices of the resampled pairs, with
    repetitions. Resamples for which it is NaN are left out.

    Raises:
        InvalidInput: there are no pairs, or the statistic is NaN for all resamples.
    """
    if not len(groups):
        raise InvalidInput("there is no pair to resample; give judgements with at least one")
    _, anchor_of = np.unique(groups, return_inverse=True)
    order = np.argsort(anchor_of, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(anchor_of))[:-1])
    random = np.random.default_rng(seed)
    draws = random.integers(len(members), size=(resamples, len(members)))
    found = _defined(np.array([statistic(np.concatenate([members[anchor] for anchor in draw])) for draw in draws]))
    lower, upper = np.percentile(found, INTERVAL)
    whole = statistic(np.arange(len(groups)))
    return Interval(mean=whole, lower=float(lower), upper=float(upper), anchors=len(members))


def _defined(values: Floats) -> Floats:
    kept: Floats = values[~np.isnan(values)]
    if not len(kept):
        raise InvalidInput("no anchor has a value to resample; give judgements with competitors and others")
    return kept
