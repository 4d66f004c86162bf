"""Semantic textual similarity: STS 2012-16, STS benchmark and SICK-R, the paper's Table 1.

The figure is Spearman's correlation of the cosine with the score, times 100, over all pairs of a set
pooled. Some papers (supervised contrastive learning among them) average the correlations of a year's
subsets instead, which gives other numbers; both are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.evaluate.encoding import Encode, Progress, encode_all
from training.evaluate.ranks import spearman
from training.papers.tsv import read_columns

YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")
SETS = (*YEARS, "STSb-test", "SICK-R-test")


@dataclass(frozen=True, slots=True, kw_only=True)
class StsSet:
    """Pairs of sentences with the score that people gave, and the subset each is from; all `[pairs]`."""

    name: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    scores: NDArray[np.float64]
    subsets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StsQuality:
    """Spearman x 100: over all pairs `pooled`, of each subset, and the plain mean of those (of the years only)."""

    pooled: float
    subset_mean: float
    subsets: dict[str, float]
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StsReport:
    """The quality of each set by name, and the averages over the sets."""

    sets: dict[str, StsQuality]

    @property
    def average(self) -> float:
        """The mean of the pooled figures."""
        return float(np.mean([quality.pooled for quality in self.sets.values()]))

    @property
    def subset_average(self) -> float:
        """The mean of the subset means."""
        return float(np.mean([quality.subset_mean for quality in self.sets.values()]))


def read_sts(folder: Path, name: str) -> StsSet:
    """The set `name`, such as STS12 or STSb-dev: columns score, sentence1, sentence2, subset.

    Raises:
        InvalidInput: no such file, a column is missing, or a score is no number.
    """
    rows = read_columns(folder, name, ("score", "sentence1", "sentence2", "subset"))
    scores = [_score(name, number, row[0]) for number, row in enumerate(rows, 1)]
    _, left, right, subsets = zip(*rows, strict=True)
    return StsSet(name=name, left=left, right=right, scores=np.array(scores), subsets=subsets)


def evaluate_sts(encode: Encode, sets: Sequence[StsSet], *, progress: Progress | None = None) -> StsReport:
    """Encodes all sentences, equal ones once, and correlates."""
    left = [text for one in sets for text in one.left]
    right = [text for one in sets for text in one.right]
    vectors = encode_all(encode, left + right, progress=progress)
    cosines = np.einsum("nd,nd->n", vectors[: len(left)], vectors[len(left) :], dtype=np.float64)
    parts = np.split(cosines, np.cumsum([len(one.scores) for one in sets])[:-1])
    return StsReport(sets={one.name: correlate(one, part) for one, part in zip(sets, parts, strict=True)})


def correlate(data: StsSet, cosines: NDArray[np.float64]) -> StsQuality:
    """The figures of one set for the cosines `[pairs]` of its pairs. NaN where all scores or cosines are equal."""
    pooled = 100 * spearman(cosines, data.scores)
    names = np.array(data.subsets)
    subsets = {
        name: 100 * spearman(cosines[names == name], data.scores[names == name]) for name in dict.fromkeys(data.subsets)
    }
    # The other sets are always pooled, whatever their subset column says.
    mean = float(np.mean(list(subsets.values()))) if data.name in YEARS else pooled
    return StsQuality(pooled=pooled, subset_mean=mean, subsets=subsets, pairs=len(data.scores))


def _score(name: str, number: int, text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = float("nan")
    if not np.isfinite(score):
        raise InvalidInput(f"{name}, row {number}: the score {text!r:.40} is not a number")
    return score
