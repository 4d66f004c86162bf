"""Batches of texts that are near each other: a loss that compares all texts of a batch then sees hard cases.

batches = NeighbourBatches(Taught.by(unit_vectors), batch_texts=128, seed=0)
for batch in batches.epoch(0): ...   # batch.texts are rows of the vectors
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.data.batches import Integers, TextBatch
from training.distillation.targets import Taught

NEIGHBOURHOOD = 16


class NeighbourBatches:
    """Batches of `batch_texts` texts: some drawn at random, each with its nearest that no earlier batch had.

    `taught` says what is near. Every text comes once in an epoch, but for
    the last few that fill no batch. Towards its end the neighbours that are left are farther away; another
    epoch draws others. What a batch holds depends on seed, epoch and its number alone.

    Raises:
        InvalidInput: a batch is no whole number of neighbourhoods, or there are not texts enough for one.
    """

    def __init__(self, taught: Taught, *, batch_texts: int, seed: int, neighbourhood: int = NEIGHBOURHOOD) -> None:
        if batch_texts < neighbourhood or batch_texts % neighbourhood:
            raise InvalidInput(f"batch_texts is {batch_texts}; give a multiple of {neighbourhood}")
        if len(taught) < batch_texts:
            raise InvalidInput(f"{len(taught):,} texts fill no batch of {batch_texts}; give more, or lower batch_texts")
        self._taught = taught
        self._batch_texts = batch_texts
        self._neighbourhood = neighbourhood
        self._seed = seed

    @property
    def batches_per_epoch(self) -> int:
        """The same for every epoch."""
        return len(self._taught) // self._batch_texts

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[TextBatch]:
        """The batches of epoch `number` (from 0), without the first `skip` of them."""
        drawn = iter(np.random.default_rng([self._seed, number]).permutation(len(self._taught)).tolist())
        free = np.ones(len(self._taught), dtype=bool)
        for batch in range(self.batches_per_epoch):
            groups = []
            for _ in range(self._batch_texts // self._neighbourhood):
                centre = next(text for text in drawn if free[text])
                groups.append(self._nearest(centre, free))
                free[groups[-1]] = False
            if batch >= skip:
                yield TextBatch(texts=np.concatenate(groups))

    def _nearest(self, centre: int, free: NDArray[np.bool_]) -> Integers:
        """The centre and the nearest texts that are free."""
        nearness = np.where(free, self._taught.nearness(centre), -np.inf)
        nearness[centre] = np.inf
        nearest: Integers = np.argpartition(-nearness, self._neighbourhood - 1)[: self._neighbourhood].astype(np.int64)
        return nearest
