"""Batches of neighbouring texts, so that a loss that compares all texts of a batch sees hard cases.

    batches = NeighbourBatches(vectors, rows, sources, batch_texts=256, seed=0)
    for batch in batches.epoch(0): ...   # batch.texts are numbers of texts

A row of `vectors` is one meaning: an English text and its translations have one row, and so the same targets.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.data.batches import TextBatch
from training.data.pairs import Integers

NEIGHBOURHOOD = 16
NEAREST = 48
"""A neighbourhood is a random sample of the NEAREST nearest rows of its centre, so it differs each time."""
TEXTS_OF_CENTRE = 3
"""Maximum number of texts of the central row in its neighbourhood; they are translations of each other."""
ORIGINALS = 0.35
"""The probability that the original of a neighbouring row is drawn, not one of its translations."""
_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Source:
    """Rows from which a `share` of the centres is drawn; shares of all sources need not sum to 1."""

    share: float
    rows: Integers


class NeighbourBatches:
    """Batches of `batch_texts` texts: random centres, each with a random sample of its nearest rows.

    `vectors`: unit vectors of the rows, float32 `[r, d]`. `rows`: the row of each text, int64 `[texts]`; the first text
    of a row is the original. An epoch has as many texts as there are, but draws them with replacement. A batch depends
    only on the seed, the epoch and its number.

    Raises:
        InvalidInput: `batch_texts` is not a multiple of the neighbourhood, or there are too few rows.
    """

    def __init__(
        self,
        vectors: NDArray[np.float32],
        rows: Integers,
        sources: Sequence[Source],
        *,
        batch_texts: int,
        seed: int,
        neighbourhood: int = NEIGHBOURHOOD,
    ) -> None:
        if batch_texts < neighbourhood or batch_texts % neighbourhood:
            raise InvalidInput(f"batch_texts is {batch_texts}; give a multiple of {neighbourhood}")
        if len(vectors) < max(batch_texts, neighbourhood + 1):
            raise InvalidInput(f"{len(vectors):,} rows do not fill a batch of {batch_texts}; lower batch_texts")
        self._nearest = nearest_rows(vectors, count=min(NEAREST, len(vectors) - 1))
        self._texts_of: list[list[int]] = [[] for _ in vectors]
        for text, row in enumerate(rows.tolist()):
            self._texts_of[row].append(text)
        self._sources = sources
        shares = np.array([source.share for source in sources])
        self._shares = shares / shares.sum()
        self._neighbourhoods = batch_texts // neighbourhood
        self._neighbourhood = neighbourhood
        self._seed = seed
        self.batches_per_epoch = len(rows) // batch_texts

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[TextBatch]:
        """Yield the batches of epoch `number` (from 0), without the first `skip`."""
        for batch in range(skip, self.batches_per_epoch):
            random = np.random.default_rng([self._seed, number, batch])
            texts = [text for _ in range(self._neighbourhoods) for text in self._drawn(random)]
            yield TextBatch(texts=np.array(texts, dtype=np.int64))

    def _drawn(self, random: np.random.Generator) -> list[int]:
        """Return the texts of one neighbourhood."""
        rows = self._sources[random.choice(len(self._sources), p=self._shares)].rows
        centre = int(random.choice(rows))
        texts: list[int] = random.permutation(self._texts_of[centre])[:TEXTS_OF_CENTRE].tolist()
        for row in random.permutation(self._nearest[centre])[: self._neighbourhood - len(texts)].tolist():
            original, *others = self._texts_of[row]
            texts.append(original if not others or random.random() < ORIGINALS else int(random.choice(others)))
        return texts


def nearest_rows(vectors: NDArray[np.float32], *, count: int) -> Integers:
    """Return the `count` nearest other rows of each row, int64 `[r, count]`, by inner product."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    matrix = torch.from_numpy(vectors).to(device)
    nearest = []
    for start in range(0, len(matrix), _ROWS):
        block = torch.arange(start, min(start + _ROWS, len(matrix)), device=device)
        products = matrix[block] @ matrix.T
        products[block - start, block] = -torch.inf
        nearest.append(products.topk(count).indices.cpu())
    found: Integers = torch.cat(nearest).numpy()
    return found
