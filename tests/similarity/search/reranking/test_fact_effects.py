"""The facts that moved a rank: their effects are those that the second stage adds to the logit."""

import numpy as np
import pytest

from similarity.index.attributes import parse_schema
from similarity.model.ranker import ComparableWeights, Ranker
from similarity.search.reranking.fact_effects import rank_facts
from similarity.search.reranking.pair_features import DENSE, company_features, pair_features
from similarity.search.reranking.rank import Rank
from similarity.search.reranking.scores import RankedAnchor, logits
from tests.factories import make_company

SCHEMA = parse_schema(["size:ordinal=small,mid,large"], size="size")
RANKER = Ranker(
    encoder_id="e" * 16,
    cosine=10.0,
    same_industry=2.0,
    intercept=-5.0,
    comparable=ComparableWeights(
        business=0.5, size_gap=-1.0, size_unknown=-2.0, same_country=0.5, slope=2.0, intercept=0.0
    ),
)
ANCHOR = make_company("anchor", industry="Brewing", country="Peru", attributes={"size": "mid"})
VECTOR = np.ones(1, dtype=np.float32)


@pytest.mark.parametrize(
    ("rank", "fields", "facts"),
    [
        (Rank.BUSINESS, {"industry": "brewing", "country": "Peru"}, [("industry", "same", 1.0)]),
        (Rank.BUSINESS, {"industry": "Steel"}, [("industry", "other", -1.0)]),
        (Rank.BUSINESS, {}, []),
        (
            Rank.COMPARABLE,
            {"industry": "Brewing", "country": "peru", "attributes": {"size": "small"}},
            [("size", "smaller", -2.0), ("industry", "same", 1.0), ("country", "same", 1.0)],
        ),
        (Rank.COMPARABLE, {"attributes": {"size": "large"}}, [("size", "larger", -1.0)]),
        (Rank.COMPARABLE, {"attributes": {"size": "mid"}}, []),
        (Rank.COMPARABLE, {}, [("size", "unknown", -4.0)]),
    ],
)
def test_each_fact_has_the_effect_that_it_has_on_the_logit(
    rank: Rank, fields: dict[str, object], facts: list[tuple[str, str, float]]
) -> None:
    hit, plain = make_company("hit", **fields), make_company("hit", attributes={"size": "mid"})
    dense = [DENSE] * 10
    (found,) = rank_facts(
        RANKER, rank, [RankedAnchor(described=ANCHOR, vector=VECTOR)], [hit], SCHEMA, sparsities=[0.0]
    )
    assert [(fact.field, fact.relation.value, round(fact.effect, 6)) for fact in found] == facts
    both = pair_features(
        company_features(ANCHOR, SCHEMA),
        [company_features(each, SCHEMA) for each in (hit, plain)],
        np.zeros(2),
        neighbour_cosines=dense,
    )
    of_hit, of_plain = logits(RANKER, both, rank)
    assert sum(fact.effect for fact in found) == pytest.approx(of_hit - of_plain)


def test_effects_of_several_anchors_are_averaged_by_weight_and_free_text_has_none() -> None:
    anchors = [
        RankedAnchor(described=ANCHOR, vector=VECTOR, weight=3.0),
        RankedAnchor(described="a steel mill", vector=VECTOR),
    ]
    hit = make_company("hit", industry="Brewing")
    (found,) = rank_facts(RANKER, Rank.BUSINESS, anchors, [hit], SCHEMA, sparsities=[0.0, 0.0])
    assert [(fact.field, fact.relation.value, fact.effect) for fact in found] == [("industry", "mixed", 0.75)]


def test_facts_move_less_where_neighbours_are_sparse() -> None:
    hit = make_company("hit", attributes={"size": "small"})
    anchors = [RankedAnchor(described=ANCHOR, vector=VECTOR)]
    effects = [
        found[0].effect
        for sparsity in (0.0, 0.2, 0.5)
        if (found := rank_facts(RANKER, Rank.COMPARABLE, anchors, [hit], SCHEMA, sparsities=[sparsity])[0])
    ]
    assert effects == [pytest.approx(-2.0), pytest.approx(-0.6)]
