"""Batch composition: the number of pairs of each stratum in a batch, and the assignment of groups to batches."""

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.data.pairs import Integers, Pairs

# Random noise of up to a tenth of a length, so that pairs share a batch with other pairs in the next epoch.
_JITTER = 0.1


def composition(
    shares: NDArray[np.float64], *, sizes: Integers, once: slice | NDArray[np.bool_], total: int, batch: int
) -> Integers:
    """Return the number of pairs of each stratum in each batch, int64 `[batches, strata]`.

    A full batch contains its share of a stratum rounded down or up; those with the largest accumulated remainders are
    rounded up. The last batch contains the rest of the `total`. Each pair of the strata `once` is used exactly once.
    """
    full = np.floor(shares * batch + 1e-9).astype(np.int64)
    limit = np.full(len(sizes), np.iinfo(np.int64).max)
    limit[once] = sizes[once]
    counts: list[Integers] = []
    used = np.zeros(len(sizes), dtype=np.int64)
    for number in range(1, total // batch + 1):
        row = np.minimum(full, limit - used)
        remainder = np.where(limit - used > row, shares * batch * number - used - row, -np.inf)
        row[np.argsort(-remainder, kind="stable")[: batch - int(row.sum())]] += 1
        used += row
        counts.append(row)
    if (sizes - used)[once].any() or not counts:
        rest = np.maximum(np.rint(shares * total).astype(np.int64) - used, 0)
        rest[once] = sizes[once] - used[once]
        counts.append(rest)
    return np.array(counts)


def batches_of_groups(sizes: Integers, batch: int) -> int:
    """Return the number of batches of about `batch` rows that groups of these `sizes` fill; no batch is empty."""
    total = int(sizes.sum())
    return max(1, min(-(-total // batch), total // int(sizes.max())))


def split_into_batches(order: Integers, sizes: Integers, batches: int) -> list[Integers]:
    """Split the groups in this order into `batches` batches of about equal rows, each group by its middle row."""
    ordered = sizes[order]
    middles = np.cumsum(ordered) - ordered / 2
    ends = np.searchsorted(middles, np.arange(1, batches) * (ordered.sum() / batches))
    return np.split(order, ends)


def pair_lengths(pairs: Pairs, lengths: NDArray[np.integer] | None) -> NDArray[np.integer] | None:
    """Return the length of each pair `[n]`: that of its longer text, to which both are padded."""
    return None if lengths is None else np.maximum(lengths[pairs.left], lengths[pairs.right])


def by_length(
    rows: Integers, lengths: NDArray[np.integer] | NDArray[np.floating], random: np.random.Generator
) -> Integers:
    """Return `rows` sorted by their `lengths` with random noise."""
    return rows[np.argsort(lengths[rows] * random.uniform(1 - _JITTER, 1 + _JITTER, len(rows)))]


def stratum_shares(numbers: Integers, sizes: Integers, share: float) -> NDArray[np.float64]:
    """Return the share of each stratum in a batch; `share` of the batch is labelled (stratum numbers 0 and up).

    Raises:
        InvalidInput: there are no labelled or no unlabelled pairs.
    """
    labelled = numbers >= 0
    if labelled.all() or not labelled.any():
        lacking = "unlabelled" if labelled.all() else "labelled"
        raise InvalidInput(f"labelled_share needs labelled and unlabelled pairs, but no pair is {lacking}; omit it")
    return np.where(labelled, share * sizes / sizes[labelled].sum(), 1 - share)
