"""Batch composition: how many pairs of each kind a batch has, and which groups share a batch."""

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.data.pairs import Integers, Pairs

# Noise of up to a tenth of a length, so that pairs meet other pairs in the next epoch.
_JITTER = 0.1


def composition(
    shares: NDArray[np.float64], *, sizes: Integers, once: slice | NDArray[np.bool_], total: int, batch: int
) -> Integers:
    """How many pairs of each stratum every batch takes, int64 `[batches, strata]`.

    A full batch takes its share of a stratum rounded down or up; the largest remainders so far are
    rounded up, so that every stratum comes in turn. The last batch has the rest of the `total`. The
    strata `once` are used up exactly.
    """
    full = np.floor(shares * batch + 1e-9).astype(np.int64)
    limit = np.full(len(sizes), np.iinfo(np.int64).max)
    limit[once] = sizes[once]
    counts: list[Integers] = []
    taken = np.zeros(len(sizes), dtype=np.int64)
    for number in range(1, total // batch + 1):
        row = np.minimum(full, limit - taken)
        lag = np.where(limit - taken > row, shares * batch * number - taken - row, -np.inf)
        row[np.argsort(-lag, kind="stable")[: batch - int(row.sum())]] += 1
        taken += row
        counts.append(row)
    if (sizes - taken)[once].any() or not counts:
        rest = np.maximum(np.rint(shares * total).astype(np.int64) - taken, 0)
        rest[once] = sizes[once] - taken[once]
        counts.append(rest)
    return np.array(counts)


def batches_of_groups(sizes: Integers, batch: int) -> int:
    """The number of batches of about `batch` rows that whole groups of these `sizes` fill; none is empty."""
    total = int(sizes.sum())
    return max(1, min(-(-total // batch), total // int(sizes.max())))


def split_into_batches(order: Integers, sizes: Integers, batches: int) -> list[Integers]:
    """The groups in this order, cut into `batches` of about equal rows; each group goes where its middle lies."""
    ordered = sizes[order]
    middles = np.cumsum(ordered) - ordered / 2
    ends = np.searchsorted(middles, np.arange(1, batches) * (ordered.sum() / batches))
    return np.split(order, ends)


def pair_lengths(pairs: Pairs, lengths: NDArray[np.integer] | None) -> NDArray[np.integer] | None:
    """The length of each pair `[n]`: that of its longer text, to which both are padded."""
    return None if lengths is None else np.maximum(lengths[pairs.left], lengths[pairs.right])


def by_length(
    rows: Integers, lengths: NDArray[np.integer] | NDArray[np.floating], random: np.random.Generator
) -> Integers:
    """`rows` sorted by their `lengths` with some random noise."""
    return rows[np.argsort(lengths[rows] * random.uniform(1 - _JITTER, 1 + _JITTER, len(rows)))]


def stratum_shares(numbers: Integers, sizes: Integers, share: float) -> NDArray[np.float64]:
    """The part of a batch that each stratum takes; `share` of it is labelled (stratum number 0 and up).

    Raises:
        InvalidInput: there are no labelled or no unlabelled pairs.
    """
    labelled = numbers >= 0
    if labelled.all() or not labelled.any():
        lacking = "unlabelled" if labelled.all() else "labelled"
        raise InvalidInput(f"a labelled share needs both kinds of pairs, and none is {lacking}; leave it out")
    return np.where(labelled, share * sizes / sizes[labelled].sum(), 1 - share)
