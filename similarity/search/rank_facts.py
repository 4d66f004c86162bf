"""The facts that moved the rank of a hit: same industry, size and country, each with its effect on the log-odds."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from similarity.company import Company
from similarity.index.attributes import AttributeSchema
from similarity.model.ranker import Ranker
from similarity.search.pair_features import UNKNOWN, CompanyFeatures, company_features, pair_features
from similarity.search.rank import Rank
from similarity.search.reranking import RankedAnchor

MIN_EFFECT = 0.005
"""Smaller effects are left out; effects are shown to two decimals."""


class Relation(StrEnum):
    """How the hit compares with the anchors. `MIXED`: not with all anchors in the same way."""

    SAME = "same"
    OTHER = "other"
    LARGER = "larger"
    SMALLER = "smaller"
    UNKNOWN = "unknown"
    MIXED = "mixed"


class RankFact(NamedTuple):
    """A fact that moved a hit up (`effect` > 0) or down.

    `field`: `industry`, `size` or `country`. `effect`: change of the log-odds of being a competitor, mean of the
    anchors by weight, compared with a hit of unknown industry, the same size and another country.
    """

    field: str
    relation: Relation
    effect: float


def rank_facts(
    ranker: Ranker, rank: Rank, anchors: Sequence[RankedAnchor], hits: Sequence[Company], schema: AttributeSchema
) -> list[tuple[RankFact, ...]]:
    """Return, for each hit, the facts that moved it, the largest effect first; free-text anchors have none."""
    found = [company_features(each, schema) for each in hits]
    weights = np.array([each.weight for each in anchors]) / sum(each.weight for each in anchors)
    compared = [_compared(ranker, rank, company_features(each.described, schema), found) for each in anchors]
    return [
        _facts([(float(weight), of_anchor[number]) for weight, of_anchor in zip(weights, compared, strict=True)])
        for number in range(len(hits))
    ]


def _compared(
    ranker: Ranker, rank: Rank, anchor: CompanyFeatures, hits: Sequence[CompanyFeatures]
) -> list[tuple[RankFact, ...]]:
    """Return the three facts of each hit beside one anchor, with effect 0 where a fact is unknown or has no weight."""
    features = pair_features(anchor, hits, np.zeros(len(hits)), neighbour_cosines=())
    comparable = ranker.comparable if rank is Rank.COMPARABLE else None
    business = comparable.slope * comparable.business if comparable else 1.0
    industry = business * ranker.same_industry * (features.same_industry - UNKNOWN)
    size = country = np.zeros(len(hits))
    if comparable:
        size = comparable.slope * (
            comparable.size_gap * features.size_gap + comparable.size_unknown * features.size_unknown
        )
        country = comparable.slope * comparable.same_country * features.same_country
    return [
        (
            RankFact(
                "industry", Relation.SAME if features.same_industry[number] == 1 else Relation.OTHER, float(effect)
            ),
            RankFact("size", _size_relation(anchor.size, hit.size), float(size[number])),
            RankFact("country", Relation.SAME, float(country[number])),
        )
        for number, (hit, effect) in enumerate(zip(hits, industry, strict=True))
    ]


def _size_relation(anchor: float | None, hit: float | None) -> Relation:
    if anchor is None or hit is None:
        return Relation.UNKNOWN
    return Relation.LARGER if hit > anchor else Relation.SMALLER if hit < anchor else Relation.SAME


def _facts(compared: Sequence[tuple[float, tuple[RankFact, ...]]]) -> tuple[RankFact, ...]:
    """Return the facts of one hit: effects added up by the weights of the anchors, without those that moved nothing."""
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
