"""The facts that moved the rank of a hit: same industry, size and country, each with its effect on the log-odds."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from similarity.company import Company
from similarity.index.attributes import AttributeSchema
from similarity.model.ranker import Ranker
from similarity.search.reranking.pair_features import (
    UNKNOWN,
    CompanyFeatures,
    Described,
    Floats,
    company_features,
    pair_features,
)
from similarity.search.reranking.rank import Rank
from similarity.search.reranking.scores import RankedAnchor, logits

MIN_EFFECT = 0.005
"""Smaller effects are left out; effects are shown to two decimals."""


class Relation(StrEnum):
    """The relation of the hit to the anchors. `MIXED`: the anchors have different relations."""

    SAME = "same"
    OTHER = "other"
    LARGER = "larger"
    SMALLER = "smaller"
    UNKNOWN = "unknown"
    MIXED = "mixed"


class RankFact(NamedTuple):
    """A fact that moved a hit up (`effect` > 0) or down.

    `field`: `industry`, `size` or `country`. `effect`: change of the log-odds of being a competitor, compared with a
    hit of unknown industry, the same size and another country; the weighted mean of the anchors.
    """

    field: str
    relation: Relation
    effect: float


def rank_facts(
    ranker: Ranker,
    rank: Rank,
    anchors: Sequence[RankedAnchor],
    hits: Sequence[Company],
    schema: AttributeSchema,
    *,
    sparsities: Sequence[float],
) -> list[tuple[RankFact, ...]]:
    """Return, for each hit, the facts that moved it, the largest effect first; free-text anchors have none.

    `sparsities`: the feature `sparsity` of each anchor.
    """
    found = [_without_words(each, schema) for each in hits]
    weights = np.array([each.weight for each in anchors]) / sum(each.weight for each in anchors)
    compared = [
        _compared(ranker, rank, _without_words(each.described, schema), found, sparsity)
        for each, sparsity in zip(anchors, sparsities, strict=True)
    ]
    return [
        _facts([(float(weight), of_anchor[number]) for weight, of_anchor in zip(weights, compared, strict=True)])
        for number in range(len(hits))
    ]


def _without_words(described: Described, schema: AttributeSchema) -> CompanyFeatures:
    """Return the features without words, which are slow to compare and cancel out in each effect (a difference)."""
    return replace(company_features(described, schema), words=np.zeros(0, dtype=np.int64))


def _compared(
    ranker: Ranker, rank: Rank, anchor: CompanyFeatures, hits: Sequence[CompanyFeatures], sparsity: float
) -> list[tuple[RankFact, ...]]:
    """Return the three facts of each hit beside one anchor.

    The effect is 0 if the fact has no weight, or if an industry, a country or the size of the anchor is unknown.
    """
    zeros = np.zeros(len(hits))
    features = replace(pair_features(anchor, hits, zeros, neighbour_cosines=()), sparsity=zeros + sparsity)
    with_all = logits(ranker, features, rank)

    def effect(**without: Floats) -> Floats:
        return with_all - logits(ranker, replace(features, **without), rank)

    industry = effect(same_industry=zeros + UNKNOWN)
    size = effect(size_gap=zeros, size_unknown=zeros)
    country = effect(same_country=zeros)
    same = features.same_industry == 1
    return [
        (
            RankFact("industry", Relation.SAME if same[number] else Relation.OTHER, float(industry[number])),
            RankFact("size", _size_relation(anchor.size, hit.size), float(size[number])),
            RankFact("country", Relation.SAME, float(country[number])),
        )
        for number, hit in enumerate(hits)
    ]


def _size_relation(anchor: float | None, hit: float | None) -> Relation:
    if anchor is None or hit is None:
        return Relation.UNKNOWN
    return Relation.LARGER if hit > anchor else Relation.SMALLER if hit < anchor else Relation.SAME


def _facts(compared: Sequence[tuple[float, tuple[RankFact, ...]]]) -> tuple[RankFact, ...]:
    """Return the facts of one hit: the weighted sums of its effects, without those below MIN_EFFECT."""
    facts = []
    for of_field in zip(*(facts for _, facts in compared), strict=True):
        effect = sum(weight * fact.effect for (weight, _), fact in zip(compared, of_field, strict=True))
        relations = {fact.relation for fact in of_field if abs(fact.effect) >= MIN_EFFECT}
        if abs(effect) >= MIN_EFFECT:
            relation = relations.pop() if len(relations) == 1 and _all_moved(of_field) else Relation.MIXED
            facts.append(RankFact(of_field[0].field, relation, effect))
    return tuple(sorted(facts, key=lambda fact: -abs(fact.effect)))


def _all_moved(facts: Sequence[RankFact]) -> bool:
    return all(abs(fact.effect) >= MIN_EFFECT for fact in facts)
