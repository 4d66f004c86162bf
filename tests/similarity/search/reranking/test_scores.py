"""From features to probabilities: what the reading *comparable* adds to *business*."""

import numpy as np
import pytest

from similarity.model.ranker import ComparableWeights, Ranker
from similarity.search.reranking.pair_features import PairFeatures
from similarity.search.reranking.rank import Rank
from similarity.search.reranking.scores import logits

RANKER = Ranker(
    encoder_id="0" * 16,
    cosine=20.0,
    intercept=-15.0,
    comparable=ComparableWeights(
        business=0.5, size_gap=-1.0, size_unknown=-2.0, same_country=1.0, slope=1.5, intercept=-0.5
    ),
)


def features(*, sparsity: float) -> PairFeatures:
    """A near company far away and of another size, and a farther one that has the same facts."""
    zeros = np.zeros(2)
    return PairFeatures(
        cosine=np.array([0.8, 0.74]),
        shared_words=zeros,
        same_industry=zeros,
        sparsity=np.full(2, sparsity),
        size_gap=np.array([2.0, 0.0]),
        size_unknown=zeros,
        same_country=np.array([0.0, 1.0]),
    )


@pytest.mark.parametrize(("sparsity", "first"), [(0.0, 1), (0.1, 1), (0.35, 0)])
def test_facts_count_less_in_a_sparse_neighbourhood(sparsity: float, first: int) -> None:
    assert int(np.argmax(logits(RANKER, features(sparsity=sparsity), Rank.COMPARABLE))) == first


def test_where_facts_do_not_count_both_readings_agree() -> None:
    sparse = features(sparsity=0.4)
    assert logits(RANKER, sparse, Rank.COMPARABLE) == pytest.approx(logits(RANKER, sparse, Rank.BUSINESS))
