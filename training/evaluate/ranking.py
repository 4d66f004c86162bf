"""Ranking measures for each judged anchor, with its candidates ordered by cosine.

The means over anchors measure a method; the values by anchor are used to compare two methods
(`training.evaluate.bootstrap`). Measures of tied candidates are expectations over random orders, because equal vectors
must not look like a good ranking.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.generations.gate import labelled_companies
from similarity.generations.relevance_labels import COMPETITOR, NDCG_DEPTH, RelevanceLabels, ndcg
from training.evaluate.encoding import Encode, Texts, encode_all
from training.evaluate.ranks import auc

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedAnchor:
    """One anchor's candidates, in the order of the judgements: cosines and grades, both `[candidates]`."""

    anchor: str
    scores: Floats
    grades: NDArray[np.int64]

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Bool `[candidates]`: competitors (grade 2)."""
        competitors: NDArray[np.bool_] = self.grades == COMPETITOR
        return competitors


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingMeasures:
    """Measures of each anchor's ranking, `[anchors]` in the order of `anchors`, and of all pairs; higher is better.

    `precision` is P@10: the number of competitors in the first ten ranks divided by ten, even if there are fewer
    candidates. `reciprocal_rank` is for the first competitor. Both are 0 for an anchor without a competitor.
    `auc` and `pairs`, their number, are over all anchors, so `auc` needs scores that are comparable across anchors.
    """

    anchors: tuple[str, ...]
    ndcg: Floats
    precision: Floats
    reciprocal_rank: Floats
    auc: float
    pairs: int

    def means(self) -> dict[str, float]:
        """Return the means over anchors, and `auc`, by name."""
        return {
            "ndcg10": float(self.ndcg.mean()),
            "p10": float(self.precision.mean()),
            "mrr": float(self.reciprocal_rank.mean()),
            "auc": self.auc,
        }


def rank(encode: Encode, judgements: RelevanceLabels, texts: Texts) -> RankingMeasures:
    """Encode the judged companies and measure the ranking of each anchor's candidates by cosine.

    Raises:
        InvalidInput: there are no judgements, or a judged company has no text.
    """
    return measure(encode_anchors(encode, judgements, texts))


def encode_anchors(encode: Encode, judgements: RelevanceLabels, texts: Texts) -> list[RankedAnchor]:
    """Encode each judged company once, and return its candidates' cosines by anchor; errors as in `rank`."""
    companies = sorted(labelled_companies(judgements))
    if not companies:
        raise InvalidInput("there are no judgements to measure by; pass a file with at least one")
    missing = [company for company in companies if company not in texts]
    if missing:
        raise InvalidInput(
            f"{len(missing):,} judged companies have no text, the first is {missing[0]}; pass the file of companies "
            "that the judgements were made on"
        )
    vectors = dict(zip(companies, encode_all(encode, [texts[company] for company in companies]), strict=True))
    return [
        RankedAnchor(
            anchor=anchor,
            # In a matrix product, the rounding depends on the row; equal vectors must have equal scores.
            scores=(np.stack([vectors[other] for other in grades]) * vectors[anchor].astype(np.float64)).sum(axis=1),
            grades=np.array(list(grades.values()), dtype=np.int64),
        )
        for anchor, grades in judgements.items()
    ]


def measure(ranked: Sequence[RankedAnchor]) -> RankingMeasures:
    """Return all measures of ranked anchors, at least one."""
    return RankingMeasures(
        anchors=tuple(one.anchor for one in ranked),
        ndcg=np.array([ndcg(one.scores, one.grades) for one in ranked]),
        precision=np.array([precision(one.scores, one.positive) for one in ranked]),
        reciprocal_rank=np.array([reciprocal_rank(one.scores, one.positive) for one in ranked]),
        auc=auc(*pooled(ranked)),
        pairs=sum(len(one.scores) for one in ranked),
    )


def pooled(ranked: Sequence[RankedAnchor]) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the scores of all pairs and whether they are competitors, both `[pairs]`."""
    return np.concatenate([one.scores for one in ranked]), np.concatenate([one.positive for one in ranked])


def precision(scores: Floats, positive: NDArray[np.bool_], depth: int = NDCG_DEPTH) -> float:
    """Return the number of positives in the first `depth` ranks divided by `depth`, even if there are fewer scores."""
    _, place, ties = np.unique(-scores, return_inverse=True, return_counts=True)
    shared = np.bincount(place, weights=positive) / ties
    return float(np.repeat(shared, ties)[:depth].sum()) / depth


def reciprocal_rank(scores: Floats, positive: NDArray[np.bool_]) -> float:
    """Return 1 / rank of the first positive, in expectation over random orders of equal scores; 0 without one."""
    if not positive.any():
        return 0.0
    best = scores[positive].max()
    before = int((scores > best).sum())
    tied = int((scores == best).sum())
    positives = int(positive[scores == best].sum())
    orders = comb(tied, positives)
    # The first tied positive is at place p if all other tied positives follow it.
    return sum(
        comb(tied - place, positives - 1) / orders / (before + place) for place in range(1, tied - positives + 2)
    )


def without_seen(judgements: RelevanceLabels, seen: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the judgements without candidates seen in training, and without anchors that have no other candidates."""
    kept = {
        anchor: {candidate: grade for candidate, grade in grades.items() if candidate not in seen}
        for anchor, grades in judgements.items()
    }
    return {anchor: grades for anchor, grades in kept.items() if grades}
