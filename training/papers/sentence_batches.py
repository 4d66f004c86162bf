"""Splits descriptions into sentences, and makes batches of neighbouring sentences (QuickThoughts, IS-BERT).

batches = SentenceBatches(descriptions, batch_sentences=400, seed=0)
for batch in batches.epoch(0): ...   # batch.texts are indices into batches.texts
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from similarity.errors import InvalidInput
from similarity.preparation.sentences import split_sentences
from training.data.batches import batches_of_groups, split_into_batches
from training.data.pairs import Integers

# The number of a list item, and abbreviations before a capital or a number. The most frequent ones (Inc., Ltd., Dr.)
# are handled by similarity.preparation.sentences.
_ABBREVIATION = re.compile(
    r"^\W*\d{1,2}\.$|(?:^|[\s(\"“])(?:e\.g|i\.e|vs|cf|approx|est|incl|excl|Mrs|Ms|Prof|Jr|Sr|Messrs|Bros|Pty|Pte|Sdn|PT|"
    r"Mt|Mfg|Sci|Ave|Blvd|Rs|Nos|Ph\.D|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.$",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """Return the sentences of `text`, in order; none is empty. "Inc.", "U.S." and "e.g." do not end a sentence."""
    found: list[str] = []
    for part in split_sentences(" ".join(text.split())):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] = f"{found[-1]} {part}"
        elif re.search(r"\w", part):
            found.append(part)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceBatch:
    """Consecutive sentences: their numbers `texts`, their `documents`, and `positions` in the document; all `[r]`."""

    texts: Integers
    documents: Integers
    positions: Integers

    def __len__(self) -> int:
        return len(self.texts)


class SentenceBatches:
    """Batches of about `batch_sentences` consecutive sentences of whole documents.

    Documents with one sentence are omitted, because it has no neighbour. A document with more sentences than half a
    batch is split into equal parts, which are treated as documents. `texts` `[t]` are all sentences; `documents` and
    `positions` `[t]` are the number of a sentence's document and its place in it. A batch depends only on the seed, the
    epoch and its number.

    Raises:
        InvalidInput: no document has two sentences.
    """

    def __init__(self, documents: Sequence[str], *, batch_sentences: int, seed: int) -> None:
        split = [(number, found) for number, text in enumerate(documents) if len(found := sentences(text)) > 1]
        if not split:
            raise InvalidInput("no description has two sentences, so there are no neighbours to train on")
        self.texts = tuple(sentence for _, found in split for sentence in found)
        counts = [len(found) for _, found in split]
        self.documents = np.repeat([number for number, _ in split], counts).astype(np.int64)
        self.positions = np.concatenate([np.arange(count, dtype=np.int64) for count in counts])
        self._runs = _runs(counts, limit=batch_sentences // 2)
        self._sizes = np.array([len(run) for run in self._runs], dtype=np.int64)
        self._seed = seed
        self.batches_per_epoch = batches_of_groups(self._sizes, batch_sentences)

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[SentenceBatch]:
        """Yield the batches of epoch `number` (from 0), without the first `skip`."""
        shuffled = np.random.default_rng([self._seed, number]).permutation(len(self._runs))
        for runs in split_into_batches(shuffled, self._sizes, self.batches_per_epoch)[skip:]:
            rows = np.concatenate([self._runs[int(run)] for run in runs])
            yield SentenceBatch(texts=rows, documents=self.documents[rows], positions=self.positions[rows])


def _runs(counts: Sequence[int], *, limit: int) -> list[Integers]:
    """Return the rows of each document or, for a long one, of its equal parts."""
    runs: list[Integers] = []
    start = 0
    for count in counts:
        rows = np.arange(start, start + count, dtype=np.int64)
        runs += np.array_split(rows, min(-(-count // limit), count // 2))
        start += count
    return runs


def neighbours(documents: Tensor, positions: Tensor, *, context: int) -> tuple[Tensor, Tensor]:
    """Return (neighbours, others) of each sentence in a batch, bool `[r, r]` each.

    Neighbours are at most `context` positions apart in the same document; `documents` and `positions` are int64 `[r]`.
    A sentence is in neither mask of its own row, also if the batch contains it twice.
    """
    together = documents[:, None] == documents
    distance = (positions[:, None] - positions).abs()
    near = together & (distance > 0) & (distance <= context)
    return near, ~near & ~(together & (distance == 0))
