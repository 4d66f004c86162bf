"""Computes probabilities from the features of pairs and the weights of a ranker (no I/O); see docs/ranking.md."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from similarity.company import Vector
from similarity.model.ranker import ComparableWeights, Ranker
from similarity.preparation.language import UNDECIDED
from similarity.search.reranking.pair_features import Described, Floats, PairFeatures
from similarity.search.reranking.rank import Rank

FACTS_FADE = 3.5
"""The slope with which the weight of facts falls with `sparsity`: at 0.29 they do not count any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedAnchor:
    """An anchor or a negative of a query. `weight`: relative to the other anchors. `language`: of its text."""

    described: Described
    vector: Vector
    weight: float = 1.0
    language: str = UNDECIDED


def business_logits(ranker: Ranker, features: PairFeatures) -> Floats:
    """Return the logit of P(competitor) by what the companies do, `[candidates]`."""
    return (
        ranker.cosine * features.cosine
        + ranker.shared_words * features.shared_words
        + ranker.same_industry * features.same_industry
        + ranker.sparsity * features.sparsity
        + ranker.intercept
    )


def density(features: PairFeatures) -> Floats:
    """Return how much the facts count in the reading *comparable*, 0 to 1, `[candidates]`.

    In a small corpus only a few candidates are of the same business, and facts would lift others above them.
    """
    return np.asarray(np.maximum(0.0, 1.0 - FACTS_FADE * features.sparsity))


def comparable_scores(weights: ComparableWeights, business: Floats, features: PairFeatures) -> Floats:
    """Return the scores of the reading *comparable*, `[candidates]`; `business`: the logits of *business*."""
    facts = (
        weights.size_gap * features.size_gap
        + weights.size_unknown * features.size_unknown
        + weights.same_country * features.same_country
    )
    return np.asarray(weights.business * business + density(features) * facts)


def logits(ranker: Ranker, features: PairFeatures, rank: Rank) -> Floats:
    """Return the logit of P(competitor), `[candidates]`. A ranker without weights for *comparable* has only *business*.

    The less the facts count, the nearer the logit of *comparable* is to that of *business*.
    """
    business = business_logits(ranker, features)
    if rank is not Rank.COMPARABLE or ranker.comparable is None:
        return business
    weights, share = ranker.comparable, density(features)
    slope = share * weights.slope + (1 - share) / weights.business
    return slope * comparable_scores(weights, business, features) + share * weights.intercept


def combined(anchors: Sequence[Floats], weights: Sequence[float], negatives: Sequence[Floats] = ()) -> Floats:
    """Return the probability of being a competitor of the anchors and of none of the negatives, `[candidates]`.

    `anchors`, `negatives`: the logits of each, `[candidates]`. The logits of the anchors are averaged by weight: a
    company that is far from one anchor loses more than it can gain at another. The negatives count as independent:
    P = P(anchors) * product of (1 - P(negative)).
    """
    probability = sigmoid(np.average(np.array(anchors), axis=0, weights=weights))
    for logit in negatives:
        probability = probability * sigmoid(-logit)
    return probability


def in_order(probabilities: Floats, cosines: Floats, ids: Sequence[str], *, head: int) -> tuple[list[int], Floats]:
    """Return the final order of candidates as their numbers, and their probabilities in that order.

    The first `head` are ordered by probability (ties by cosine, then id). The others keep their order behind them, and
    none has a higher probability than one before it.
    """
    first = sorted(range(head), key=lambda each: (-probabilities[each], -cosines[each], ids[each]))
    order = [*first, *range(head, len(ids))]
    return order, np.concatenate([probabilities[first], np.minimum.accumulate(probabilities[order])[head:]])


def knows_only_cosine(ranker: Ranker) -> bool:
    """Return whether the cosine is the only weighted feature of *business* that differs between candidates."""
    return not (ranker.shared_words or ranker.same_industry)


def sigmoid(logit: Floats) -> Floats:
    """Return the probabilities of logits."""
    # tanh saturates where exp would overflow.
    return np.asarray(0.5 * (1 + np.tanh(logit / 2)))
