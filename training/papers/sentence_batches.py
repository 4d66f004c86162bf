"""Descriptions as sentences, and batches of neighbouring sentences (QuickThoughts, IS-BERT).

batches = SentenceBatches(descriptions, batch_sentences=400, seed=0)
for batch in batches.epoch(0): ...   # batch.texts are indices into batches.texts
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from similarity.errors import InvalidInput
from similarity.preparation.sentences import split_sentences
from training.data.batch_composition import batches_of_groups, split_into_batches
from training.data.batches import Integers

# The number of a list's item, and words with a full stop after which a sentence often goes on with a
# capital or a number; those that profiles are full of (Inc., Ltd., Dr.) similarity.preparation.sentences knows.
_ABBREVIATION = re.compile(
    r"^\W*\d{1,2}\.$|(?:^|[\s(\"“])(?:e\.g|i\.e|vs|cf|approx|est|incl|excl|Mrs|Ms|Prof|Jr|Sr|Messrs|Bros|Pty|Pte|Sdn|PT|"
    r"Mt|Mfg|Sci|Ave|Blvd|Rs|Nos|Ph\.D|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.$",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """The sentences of `text`, in order; none is empty. "Inc.", "U.S." and "e.g." end none."""
    found: list[str] = []
    for part in split_sentences(" ".join(text.split())):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] = f"{found[-1]} {part}"
        elif re.search(r"\w", part):
            found.append(part)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceBatch:
    """Sentences of descriptions, in their order: `texts`, `documents` and `positions` are `[r]`."""

    texts: Integers
    documents: Integers
    positions: Integers

    def __len__(self) -> int:
        return len(self.texts)


class SentenceBatches:
    """Batches of about `batch_sentences` consecutive sentences of whole documents.

    Documents with one sentence are left out: it has no neighbour. One with more than half a batch's
    sentences is cut into equal parts, each treated as whole. `texts` `[t]` are the sentences that the
    batches number; `documents` and `positions` `[t]`, and of a batch `[r]`, are indices into the
    documents given and sentences within. The content of a batch depends on seed, epoch and its number alone.

    Raises:
        InvalidInput: no document has two sentences, or a batch could not hold two.
    """

    def __init__(self, documents: Sequence[str], *, batch_sentences: int, seed: int) -> None:
        if batch_sentences < 4:
            raise InvalidInput(f"batch_sentences is {batch_sentences}; give 4 or more, two documents of two sentences")
        split = [(number, found) for number, text in enumerate(documents) if len(found := sentences(text)) > 1]
        if not split:
            raise InvalidInput("no description has two sentences; there are no neighbours to learn from")
        self.texts = tuple(sentence for _, found in split for sentence in found)
        counts = [len(found) for _, found in split]
        self.documents = np.repeat([number for number, _ in split], counts).astype(np.int64)
        self.positions = np.concatenate([np.arange(count, dtype=np.int64) for count in counts])
        self._runs = _runs(counts, limit=batch_sentences // 2)
        self._sizes = np.array([len(run) for run in self._runs], dtype=np.int64)
        self._seed = seed
        self._batches = batches_of_groups(self._sizes, batch_sentences)

    @property
    def batches_per_epoch(self) -> int:
        """The same for every epoch."""
        return self._batches

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[SentenceBatch]:
        """The batches of epoch `number` (from 0), without the first `skip` of them."""
        shuffled = np.random.default_rng([self._seed, number]).permutation(len(self._runs))
        for runs in split_into_batches(shuffled, self._sizes, self._batches)[skip:]:
            rows = np.concatenate([self._runs[int(run)] for run in runs])
            yield SentenceBatch(texts=rows, documents=self.documents[rows], positions=self.positions[rows])


def _runs(counts: Sequence[int], *, limit: int) -> list[Integers]:
    """Rows of consecutive sentences: a document each, or an equal part of a long one."""
    runs: list[Integers] = []
    start = 0
    for count in counts:
        rows = np.arange(start, start + count, dtype=np.int64)
        runs += np.array_split(rows, min(-(-count // limit), count // 2))
        start += count
    return runs
