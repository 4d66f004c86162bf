"""Batches of neighbouring texts, so that a loss that compares all texts of a batch sees hard cases.

batches = NeighbourBatches(TeacherTargets.of_vectors(unit_vectors), batch_texts=128, seed=0)
for batch in batches.epoch(0): ...   # batch.texts are rows of the vectors
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.data.batches import TextBatch
from training.data.pairs import Integers
from training.distillation.targets import TeacherTargets

NEIGHBOURHOOD = 16


class NeighbourBatches:
    """Batches of `batch_texts` texts: random centres, each with its nearest texts that are in no earlier batch.

    Nearness is the similarity of `targets`. An epoch contains every text once, except the last few that do not fill a
    batch. Towards the end of an epoch the remaining neighbours are farther away; the next epoch has other centres. A
    batch depends only on the seed, the epoch and its number.

    Raises:
        InvalidInput: `batch_texts` is not a multiple of the neighbourhood, or there are too few texts for a batch.
    """

    def __init__(
        self, targets: TeacherTargets, *, batch_texts: int, seed: int, neighbourhood: int = NEIGHBOURHOOD
    ) -> None:
        if batch_texts < neighbourhood or batch_texts % neighbourhood:
            raise InvalidInput(f"batch_texts is {batch_texts}; give a multiple of {neighbourhood}")
        if len(targets) < batch_texts:
            raise InvalidInput(f"{len(targets):,} texts do not fill a batch of {batch_texts}; lower batch_texts")
        self._targets = targets
        self._batch_texts = batch_texts
        self._neighbourhood = neighbourhood
        self._seed = seed
        self.batches_per_epoch = len(targets) // batch_texts

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[TextBatch]:
        """Yield the batches of epoch `number` (from 0), without the first `skip`."""
        centres = iter(np.random.default_rng([self._seed, number]).permutation(len(self._targets)).tolist())
        free = np.ones(len(self._targets), dtype=bool)
        for batch in range(self.batches_per_epoch):
            groups = []
            for _ in range(self._batch_texts // self._neighbourhood):
                centre = next(text for text in centres if free[text])
                groups.append(self._nearest(centre, free))
                free[groups[-1]] = False
            if batch >= skip:
                yield TextBatch(texts=np.concatenate(groups))

    def _nearest(self, centre: int, free: NDArray[np.bool_]) -> Integers:
        """Return the centre and the nearest texts that are free."""
        similarities = np.where(free, self._targets.similarities(centre), -np.inf)
        similarities[centre] = np.inf
        return np.argpartition(-similarities, self._neighbourhood - 1)[: self._neighbourhood].astype(np.int64)
