"""Gains for unlabelled pairs from weak labels of their companies, such as industries."""

from collections.abc import Mapping

import numpy as np

from similarity.generations.judgements import GAINS
from training.data.pairs import Pairs

RELATED = 1


def with_shared_values(pairs: Pairs, value_of: Mapping[str, str]) -> Pairs:
    """The pairs, those without a gain now with that of related companies if both companies have the same value, else 0.

    Pairs of which one company has no value stay without a gain.
    """
    values = np.array([value_of.get(company, "") for company in pairs.ids])
    left, right = values[pairs.left], values[pairs.right]
    rows = np.flatnonzero(~np.isfinite(pairs.gains) & (left != "") & (right != ""))
    return pairs.with_gains(rows, np.where(left[rows] == right[rows], GAINS[RELATED], 0).astype(np.float32))
