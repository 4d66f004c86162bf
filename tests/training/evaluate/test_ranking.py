"""The order of an anchor's candidates: each measure by hand, ties by trying all orders, bad input by message."""

import math
from collections.abc import Sequence
from itertools import pairwise, permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.evaluate.ranking import (
    RankedAnchor,
    encode_anchors,
    measure,
    precision,
    rank,
    reciprocal_rank,
    without_seen,
)


def angles(texts: Sequence[str]) -> NDArray[np.float32]:
    """Each text is its own angle in degrees."""
    radians = np.radians([float(text) for text in texts])
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def anchor(scores: list[float], grades: list[int]) -> RankedAnchor:
    return RankedAnchor(anchor="a", scores=np.array(scores), grades=np.array(grades))


@pytest.mark.parametrize(
    ("scores", "positive", "depth", "expected"),
    [
        ([0.9, 0.8, 0.1], [True, False, True], 2, 1 / 2),
        ([0.9, 0.8, 0.1], [True, False, True], 10, 2 / 10),
        ([0.5, 0.5], [True, False], 1, 1 / 2),
        ([0.9, 0.5, 0.5, 0.5], [False, True, True, False], 2, (2 / 3) / 2),
        ([0.9], [False], 10, 0.0),
    ],
)
def test_precision_is_the_share_of_competitors_among_the_first(
    scores: list[float], positive: list[bool], depth: int, expected: float
) -> None:
    assert precision(np.array(scores), np.array(positive), depth) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("scores", "positive", "expected"),
    [
        ([0.9, 0.8, 0.1], [False, False, True], 1 / 3),
        ([0.9, 0.8, 0.1], [True, False, True], 1.0),
        ([0.5, 0.5, 0.5], [True, False, False], (1 + 1 / 2 + 1 / 3) / 3),
        ([0.9, 0.5, 0.5, 0.5], [False, True, True, False], 2 / 3 * 1 / 2 + 1 / 3 * 1 / 3),
        ([0.9, 0.8], [False, False], 0.0),
    ],
)
def test_reciprocal_rank_is_that_of_the_first_competitor(
    scores: list[float], positive: list[bool], expected: float
) -> None:
    assert reciprocal_rank(np.array(scores), np.array(positive)) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(8))
def test_ties_count_as_the_mean_over_all_their_orders(seed: int) -> None:
    random = np.random.default_rng(seed)
    scores, positive = random.integers(0, 3, size=6) / 2, random.random(6) < 0.4
    first, ranks = [], []
    for order in permutations(range(6)):
        if any(scores[a] < scores[b] for a, b in pairwise(order)):
            continue
        found = positive[list(order)]
        first.append(found[:3].mean())
        ranks.append(1 / (1 + int(found.argmax())) if found.any() else 0.0)
    assert precision(scores, positive, 3) == pytest.approx(np.mean(first))
    assert reciprocal_rank(scores, positive) == pytest.approx(np.mean(ranks))


def test_every_anchor_keeps_its_values_and_the_auc_is_over_all_pairs() -> None:
    judgements = {"a": {"near": 2, "far": 0}, "b": {"near": 0, "far": 2}}
    found = rank(angles, judgements, {"a": "0", "b": "10", "near": "20", "far": "80"})
    second = math.log2(2) / math.log2(3)
    assert found.anchors == ("a", "b")
    assert found.ndcg == pytest.approx([1, second])
    assert found.precision == pytest.approx([0.1, 0.1])
    assert found.reciprocal_rank == pytest.approx([1, 1 / 2])
    # cos 20 and cos 70 are competitors', cos 80 and cos 10 are not: one of four pairs in order, and one more.
    assert found.auc == pytest.approx(2 / 4)
    assert found.pairs == 4
    assert found.means()["ndcg10"] == pytest.approx((1 + second) / 2)


def test_equal_vectors_tie_wherever_they_stand() -> None:
    random = np.random.default_rng(1)
    rows = random.normal(size=(3, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    texts = {"a": "0", **{f"c{n}": f"1{n}" for n in range(20)}}
    judgements = {"a": {f"c{n}": n % 3 for n in range(20)}}
    [one] = encode_anchors(lambda of: np.stack([rows[int(text[0])] for text in of]), judgements, texts)
    assert len(set(one.scores.tolist())) == 1


def test_an_anchor_without_competitors_counts_as_nothing_and_has_no_auc() -> None:
    found = measure([anchor([0.5, 0.4], [0, 0])])
    assert (found.ndcg[0], found.precision[0], found.reciprocal_rank[0]) == (0, 0, 0)
    assert math.isnan(found.auc)


def test_no_anchor_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        rank(angles, {}, {})


def test_a_judged_company_without_text_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"1 judged companies have no text, the first is c\b"):
        encode_anchors(angles, {"a": {"c": 2}}, {"a": "0"})


def test_an_encoder_that_makes_no_numbers_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not finite"):
        rank(lambda texts: np.full((len(texts), 2), np.nan, dtype=np.float32), {"a": {"b": 2}}, {"a": "0", "b": "1"})


def test_the_strict_judgements_have_no_candidate_that_training_has_seen() -> None:
    judgements = {"a": {"b": 2, "c": 0}, "d": {"c": 1}}
    assert without_seen(judgements, {"c"}) == {"a": {"b": 2}}
    assert without_seen(judgements, ()) == judgements
