"""The batch sampler: global batches of pairs, composed by label first, then by length.

    batches = PairBatches(pairs, batch_pairs=128, seed=0, lengths=token_counts)
    for batch in batches.epoch(0, skip=batches_already_done): ...

A batch depends only on the seed, the epoch and its number, so that a resumed run has the same batches. Each process has
the same global batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.data.pairs import Integers, Pairs

Order: TypeAlias = Literal["composition", "anchors"]

WINDOW = 16
# Random noise of up to a tenth of a length, so that pairs share a batch with other pairs in the next epoch.
_JITTER = 0.1
# Independent random streams of one seed: the number after the seed chooses the stream.
_PASSES, _WINDOWS, _ANCHORS = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One global batch as indices, the same in every process.

    `texts` `[r]` are indices into the texts of the data; a text that is listed twice is encoded twice, with different
    dropout. `left` and `right` `[n]` are rows of `texts`. `pairs` `[n]` are indices into the pairs of the data; a
    labelled pair is listed twice if it is repeated with other dropout.
    """

    texts: Integers
    left: Integers
    right: Integers
    pairs: Integers

    def __len__(self) -> int:
        return len(self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBatch:
    """Text numbers `[r]` of texts that are compared with each other."""

    texts: Integers

    def __len__(self) -> int:
        return len(self.texts)


class PairBatches:
    """Batches of `pairs`, epoch by epoch.

    `order="composition"`: each batch has the labels and the unlabelled pairs in the proportions of the data, up to one
    pair, and an epoch contains each pair once. If `labelled_share` is given, that share of a batch is labelled; an
    epoch then contains each unlabelled pair once, and the labelled pairs in shuffled passes that continue across
    epochs.

    `order="anchors"`: whole anchors with all their candidates. A batch has about `batch_pairs` pairs, at most the
    pairs of one anchor more.

    `labelled_copies=2` repeats the labelled pairs of a batch with their own text rows (dropout labels), in addition to
    `batch_pairs`. If `lengths` `[texts]` (in tokens) is given, pairs or anchors of similar length share a batch, within
    a window of batches; the composition takes precedence.

    Raises:
        InvalidInput: the settings contradict each other or do not fit the data.
    """

    def __init__(
        self,
        pairs: Pairs,
        *,
        batch_pairs: int,
        seed: int,
        order: Order = "composition",
        labelled_share: float | None = None,
        labelled_copies: int = 1,
        lengths: NDArray[np.integer] | None = None,
    ) -> None:
        if order == "anchors" and labelled_share is not None:
            raise InvalidInput("order 'anchors' takes all candidates of an anchor; omit labelled_share")
        if not len(pairs):
            raise InvalidInput("there are no pairs to make batches of")
        self._pairs = pairs
        self._labelled = pairs.labelled
        self._copies = labelled_copies
        self._plan: _Composition | _WholeAnchors
        if order == "anchors":
            self._plan = _WholeAnchors(pairs, batch_pairs=batch_pairs, seed=seed, lengths=lengths)
        else:
            self._plan = _Composition(pairs, batch_pairs=batch_pairs, seed=seed, share=labelled_share, lengths=lengths)
        self.batches_per_epoch = self._plan.batches

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[Batch]:
        """Yield the batches of epoch `number` (from 0), without the first `skip`."""
        return (self._batch(rows) for rows in self._plan.epoch(number, skip))

    def _batch(self, rows: Integers) -> Batch:
        labelled = rows[self._labelled[rows]]
        parts = [rows, *[labelled] * (self._copies - 1)]
        texts, left, right, used = [], [], [], 0
        for part in parts:
            both = np.concatenate([self._pairs.left[part], self._pairs.right[part]])
            distinct, row_of = np.unique(both, return_inverse=True)
            texts.append(distinct)
            left.append(used + row_of[: len(part)])
            right.append(used + row_of[len(part) :])
            used += len(distinct)
        return Batch(
            texts=np.concatenate(texts),
            left=np.concatenate(left),
            right=np.concatenate(right),
            pairs=np.concatenate(parts),
        )


class _Composition:
    """Batches by stratum: the counts `[batches, strata]` are the same in every epoch, the pairs differ."""

    def __init__(
        self, pairs: Pairs, *, batch_pairs: int, seed: int, share: float | None, lengths: NDArray[np.integer] | None
    ) -> None:
        self._seed = seed
        strata = pairs.strata
        numbers, sizes = np.unique(strata, return_counts=True)
        self._members = [np.flatnonzero(strata == number) for number in numbers]
        self._passes: dict[int, tuple[int, Integers]] = {}
        self._lengths = pair_lengths(pairs, lengths)
        shares = sizes / sizes.sum() if share is None else stratum_shares(numbers, sizes, share)
        once = slice(None) if share is None else numbers < 0
        total = float(sizes[once].sum() / shares[once].sum())
        self._counts = composition(shares, sizes=sizes, once=once, total=round(total), batch=batch_pairs)
        self.batches = len(self._counts)
        # At most a quarter of the epoch; otherwise the same pairs would share a batch in every epoch.
        self._window = max(1, min(WINDOW, self.batches // 4)) if lengths is not None else 1

    def epoch(self, number: int, skip: int) -> Iterator[Integers]:
        before = number * self._counts.sum(axis=0) + np.cumsum(self._counts, axis=0) - self._counts
        for first in range(skip - skip % self._window, self.batches, self._window):
            counts = self._counts[first : first + self._window]
            drawn = [
                self._draw(stratum, int(at), int(taken))
                for stratum, (at, taken) in enumerate(zip(before[first], counts.sum(axis=0), strict=True))
            ]
            random = np.random.default_rng([self._seed, _WINDOWS, number, first])
            batches = self._fill(counts, drawn, random)
            yield from batches[max(0, skip - first) :]

    def _draw(self, stratum: int, start: int, count: int) -> Integers:
        """Return `count` pairs from position `start` of the infinite sequence of shuffled passes through a stratum."""
        size = len(self._members[stratum])
        positions = np.arange(start, start + count)
        return np.concatenate(
            [np.empty(0, dtype=np.int64)]
            + [
                self._pass(stratum, int(number))[positions[positions // size == number] % size]
                for number in np.unique(positions // size)
            ]
        )

    def _pass(self, stratum: int, number: int) -> Integers:
        """Return one shuffled pass through a stratum; the last pass is cached, because batches are made in order."""
        cached = self._passes.get(stratum)
        if cached is None or cached[0] != number:
            random = np.random.default_rng([self._seed, _PASSES, stratum, number])
            cached = self._passes[stratum] = (number, random.permutation(self._members[stratum]))
        return cached[1]

    def _fill(self, counts: Integers, drawn: list[Integers], random: np.random.Generator) -> list[Integers]:
        """Distribute the pairs of each stratum over the batches of a window, by length, in a random batch order."""
        order = random.permutation(len(counts))
        parts: list[list[Integers]] = [[] for _ in counts]
        for stratum, found in enumerate(drawn):
            rows = found
            if self._lengths is not None:
                rows = by_length(rows, self._lengths, random)
            ends = np.cumsum(counts[order, stratum])[:-1]
            for batch, part in zip(order, np.split(rows, ends), strict=True):
                parts[batch].append(part)
        return [random.permutation(np.concatenate(part)) for part in parts]


class _WholeAnchors:
    """Batches of whole anchors with all their candidates."""

    def __init__(self, pairs: Pairs, *, batch_pairs: int, seed: int, lengths: NDArray[np.integer] | None) -> None:
        self._seed = seed
        order = np.argsort(pairs.left, kind="stable")
        starts = np.flatnonzero(np.diff(pairs.left[order], prepend=-1))
        self._groups = np.split(order, starts[1:])
        self._sizes = np.array([len(group) for group in self._groups], dtype=np.int64)
        largest = int(self._sizes.argmax())
        self.batches = batches_of_groups(self._sizes, batch_pairs)
        if self._sizes[largest] > batch_pairs:
            raise InvalidInput(
                f"{pairs.ids[pairs.left[self._groups[largest][0]]]} has {self._sizes[largest]} candidates, more than a "
                f"batch of {batch_pairs} pairs; raise batch_pairs"
            )

        per_pair = pair_lengths(pairs, lengths)
        self._lengths = None if per_pair is None else np.array([per_pair[group].mean() for group in self._groups])

    def epoch(self, number: int, skip: int) -> Iterator[Integers]:
        random = np.random.default_rng([self._seed, _ANCHORS, number])
        anchors = random.permutation(len(self._groups))
        if self._lengths is not None:
            windows = np.array_split(anchors, max(4, -(-self.batches // WINDOW)))
            anchors = np.concatenate([by_length(window, self._lengths, random) for window in windows])
        groups = split_into_batches(anchors, self._sizes, self.batches)
        for batch in random.permutation(len(groups))[skip:]:
            yield np.concatenate([self._groups[int(anchor)] for anchor in groups[batch]])


def composition(
    shares: NDArray[np.float64], *, sizes: Integers, once: slice | NDArray[np.bool_], total: int, batch: int
) -> Integers:
    """Return the number of pairs of each stratum in each batch, int64 `[batches, strata]`.

    A full batch contains its share of a stratum rounded down or up; strata with the largest accumulated remainders are
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
    """Split the groups in this order into `batches` batches of about equal rows; a group's middle row decides."""
    ordered = sizes[order]
    middles = np.cumsum(ordered) - ordered / 2
    ends = np.searchsorted(middles, np.arange(1, batches) * (ordered.sum() / batches))
    return np.split(order, ends)


def pair_lengths(pairs: Pairs, lengths: NDArray[np.integer] | None) -> NDArray[np.integer] | None:
    """Return the length of each pair `[n]`: the length of its longer text, to which both are padded."""
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
