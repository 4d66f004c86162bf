"""Pairs of sentences with a score of how alike they are (STS): to learn from, and to choose the best step by.

pairs = scored_pairs(read_sts(folder, "STSb-train"))
select = StsSelection(read_sts(folder, "STSb-dev"))
"""

import math

import numpy as np

from similarity.errors import InvalidInput
from similarity.text import text_hash
from training.data.pairs import ID_DIGITS, Pairs
from training.evaluate.encoding import Encode
from training.papers.sts import StsSet, evaluate_sts

HIGHEST_SCORE = 5.0


def scored_pairs(data: StsSet) -> Pairs:
    """The pairs of a set, in their order. They have no classes; the score of each, 0 to 5, is its gain.

    Raises:
        InvalidInput: a score is out of its range.
    """
    outside = np.flatnonzero((data.scores < 0) | (data.scores > HIGHEST_SCORE))
    if len(outside):
        row = int(outside[0])
        raise InvalidInput(
            f"{data.name}, row {row + 1}: the score {data.scores[row]:g} is not from 0 to {HIGHEST_SCORE:g}"
        )
    numbers = {text: number for number, text in enumerate(dict.fromkeys((*data.left, *data.right)))}
    left, right = (np.array([numbers[text] for text in side], dtype=np.int64) for side in (data.left, data.right))
    return Pairs(
        texts=tuple(numbers),
        ids=tuple(text_hash(text)[:ID_DIGITS] for text in numbers),
        left=left,
        right=right,
        classes=(),
        targets=np.zeros((len(left), 0), dtype=np.float32),
        known=np.zeros((len(left), 0), dtype=np.bool_),
        gains=data.scores.astype(np.float32),
        directed=False,
    )


class StsSelection:
    """Spearman's correlation x 100 of the cosines with the scores of a set, which must not be one of those reported."""

    def __init__(self, data: StsSet) -> None:
        self.data = data

    def __call__(self, encode: Encode) -> dict[str, float]:
        """The score of an encoder; one whose cosines are all equal has the worst."""
        found = evaluate_sts(encode, [self.data]).sets[self.data.name].pooled
        return {"spearman": found if math.isfinite(found) else -100.0}
