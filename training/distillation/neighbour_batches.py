"""Batches of neighbouring texts: a loss that compares all texts of a batch then sees hard cases.

batches = NeighbourBatches(TeacherTargets.of_vectors(unit_vectors), batch_texts=128, seed=0)
for batch in batches.epoch(0): ...   # batch.texts are rows of the vectors
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.data.batches import Integers, TextBatch
from training.distillation.targets import TeacherTargets

NEIGHBOURHOOD = 16


class NeighbourBatches:
    """Batches of `batch_texts` texts: random centres, each with its nearest texts that no earlier batch had.

    Neighbours are nearest by `targets`. Every text comes once in an epoch, except the last few that fill no
    batch. Towards the end of an epoch the remaining neighbours are farther away; the next epoch draws other
    centres. What a batch holds depends on seed, epoch and its number alone.

    Raises:
        InvalidInput: a batch is no whole number of neighbourhoods, or there are not texts enough for one.
    """

    def __init__(
        self, targets: TeacherTargets, *, batch_texts: int, seed: int, neighbourhood: int = NEIGHBOURHOOD
    ) -> None:
        if batch_texts < neighbourhood or batch_texts % neighbourhood:
            raise InvalidInput(f"batch_texts is {batch_texts}; give a multiple of {neighbourhood}")
        if len(targets) < batch_texts:
            raise InvalidInput(f"{len(targets):,} texts fill no batch of {batch_texts}; give more or lower it")
        self._targets = targets
        self._batch_texts = batch_texts
        self._neighbourhood = neighbourhood
        self._seed = seed

    @property
    def batches_per_epoch(self) -> int:
        """The same for every epoch."""
        return len(self._targets) // self._batch_texts

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[TextBatch]:
        """The batches of epoch `number` (from 0), without the first `skip` of them."""
        drawn = iter(np.random.default_rng([self._seed, number]).permutation(len(self._targets)).tolist())
        free = np.ones(len(self._targets), dtype=bool)
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
        similarities = np.where(free, self._targets.similarities(centre), -np.inf)
        similarities[centre] = np.inf
        nearest: Integers = np.argpartition(-similarities, self._neighbourhood - 1)[: self._neighbourhood].astype(
            np.int64
        )
        return nearest
