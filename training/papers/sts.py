"""Semantic textual similarity (STS 2012-16, STS benchmark, SICK-R): the sets, their measure, and pairs to train on.

The measure is Spearman's correlation of the cosine with the score, times 100, over all pairs of a set (pooled). Some
papers, such as the one on supervised contrastive learning, report the mean over a year's subsets instead, which gives
other numbers; both are computed.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.text import text_hash
from training.data.pairs import ID_DIGITS, Pairs
from training.data.tab_separated import benchmark_rows
from training.evaluate.encoding import Encode, encode_all
from training.evaluate.ranks import spearman

YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")
SETS = (*YEARS, "STSb-test", "SICK-R-test")
HIGHEST_SCORE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StsSet:
    """Pairs of sentences with the score that people gave and the subset of each; all `[pairs]`."""

    name: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    scores: NDArray[np.float64]
    subsets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StsQuality:
    """Spearman x 100 over all pairs (`pooled`), and the mean over the subsets (of the years; of other sets, pooled)."""

    pooled: float
    subset_mean: float
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StsReport:
    """The quality of each set by name, and the averages over the sets."""

    sets: dict[str, StsQuality]

    @property
    def average(self) -> float:
        """The mean of the pooled correlations."""
        return float(np.mean([quality.pooled for quality in self.sets.values()]))

    @property
    def subset_average(self) -> float:
        """The mean of the subset means."""
        return float(np.mean([quality.subset_mean for quality in self.sets.values()]))


def read_sts(folder: Path, name: str) -> StsSet:
    """Return the set `name`, such as STS12 or STSb-dev; its columns are score, sentence1, sentence2 and subset.

    Raises:
        InvalidInput: there is no such file or column, or a score is not a number from 0 to 5.
    """
    rows = benchmark_rows(folder, name, ("score", "sentence1", "sentence2", "subset"))
    scores = np.array([_score(name, number, row[0]) for number, row in enumerate(rows, 1)])
    _, left, right, subsets = zip(*rows, strict=True)
    return StsSet(name=name, left=left, right=right, scores=scores, subsets=subsets)


def _score(name: str, number: int, text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not 0 <= score <= HIGHEST_SCORE:
        raise InvalidInput(f"{name}, row {number}: the score {text!r:.40} is not a number from 0 to {HIGHEST_SCORE:g}")
    return score


def without_pairs_of(data: StsSet, others: Sequence[StsSet]) -> StsSet:
    """Return the pairs of `data` that occur in none of the `others`, in either order; case and punctuation are ignored.

    Three quarters of STSb-dev are pairs of STS12-16.

    Raises:
        InvalidInput: no pair is left.
    """
    taken = {pair for one in others for pair in _comparable_pairs(one)}
    kept = [number for number, pair in enumerate(_comparable_pairs(data)) if pair not in taken]
    if not kept:
        raise InvalidInput(f"every pair of {data.name} is also in {', '.join(one.name for one in others)}")
    left, right, subsets = (tuple(side[n] for n in kept) for side in (data.left, data.right, data.subsets))
    return StsSet(name=data.name, left=left, right=right, scores=data.scores[kept], subsets=subsets)


def _comparable_pairs(data: StsSet) -> list[frozenset[str]]:
    """Return the two `comparable` texts of each pair."""
    return [frozenset(map(comparable, pair)) for pair in zip(data.left, data.right, strict=True)]


def comparable(text: str) -> str:
    """Return a text in lower case, without spaces and punctuation: equal for the same sentence of two sources."""
    return re.sub(r"\W", "", text.casefold())


def evaluate_sts(encode: Encode, sets: Sequence[StsSet]) -> StsReport:
    """Encode all sentences, equal ones once, and return the correlations; NaN if all scores or cosines are equal."""
    left = [text for one in sets for text in one.left]
    right = [text for one in sets for text in one.right]
    vectors = encode_all(encode, left + right)
    cosines = np.einsum("nd,nd->n", vectors[: len(left)], vectors[len(left) :], dtype=np.float64)
    parts = np.split(cosines, np.cumsum([len(one.scores) for one in sets])[:-1])
    return StsReport(sets={one.name: _quality(one, part) for one, part in zip(sets, parts, strict=True)})


def _quality(data: StsSet, cosines: NDArray[np.float64]) -> StsQuality:
    pooled, subset_of = 100 * spearman(cosines, data.scores), np.array(data.subsets)
    of_subsets = [
        100 * spearman(cosines[subset_of == subset], data.scores[subset_of == subset]) for subset in set(data.subsets)
    ]
    mean = float(np.mean(of_subsets)) if data.name in YEARS else pooled
    return StsQuality(pooled=pooled, subset_mean=mean, pairs=len(data.scores))


class StsSelection:
    """Checkpoint selection by Spearman's correlation x 100 on a set, which must not be one of the reported sets."""

    def __init__(self, data: StsSet) -> None:
        self.data = data

    def __call__(self, encode: Encode) -> dict[str, float]:
        """Return the score of an encoder; if all its cosines are equal, the lowest score."""
        found = evaluate_sts(encode, [self.data]).average
        return {"spearman": found if math.isfinite(found) else -100.0}


def scored_pairs(data: StsSet) -> Pairs:
    """Return the pairs of a set in their order. They have no classes; the score of a pair, 0 to 5, is its gain."""
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
