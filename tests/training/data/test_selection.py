"""Checkpoint selection, worked by hand on vectors in a plane."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.data.pairs import Pairs
from training.data.selection import Selection

pytestmark = pytest.mark.training

ANGLES = {"a": 0, "near": 10, "middle": 40, "far": 80}


def encode(texts: Sequence[str]) -> NDArray[np.float32]:
    radians = np.radians([ANGLES[text] for text in texts])
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def selection(targets: list[float], *, known: list[bool], gains: list[float]) -> dict[str, float]:
    """The scores of `encode` on company a's pairs with near, middle and far."""
    pairs = Pairs(
        texts=tuple(ANGLES),
        ids=tuple(ANGLES),
        left=np.zeros(3, dtype=np.int64),
        right=np.arange(1, 4, dtype=np.int64),
        classes=("competitor",),
        targets=np.array(targets, dtype=np.float32)[:, None],
        known=np.array(known)[:, None],
        gains=np.array(gains, dtype=np.float32),
        directed=False,
    )
    return Selection(pairs)(encode)


def test_an_order_of_graded_candidates_is_scored_by_ndcg_first() -> None:
    scores = selection([0, 1, 0], known=[True] * 3, gains=[0, 3, 1])
    # Gains 0, 3, 1 in the order of cosines; the best order is 3, 1, 0.
    best = 3 / np.log2(2) + 1 / np.log2(3)
    assert scores["ndcg10"] == pytest.approx((3 / np.log2(3) + 1 / np.log2(4)) / best)
    # The competitor is above one of two others.
    assert scores["auc"] == pytest.approx(0.5)
    assert next(iter(scores)) == "ndcg10"


def test_too_few_candidates_for_an_order_leave_the_auc() -> None:
    scores = selection([1, 0, 0], known=[True, True, False], gains=[3, 0, float("nan")])
    assert scores == {"auc": 1.0}


def test_unlabelled_pairs_count_as_negatives_where_only_positives_are_labelled() -> None:
    scores = selection([0, 1, 0], known=[False, True, False], gains=[float("nan"), 3, float("nan")])
    assert scores == {"auc": pytest.approx(0.5)}


def test_an_order_of_equal_gains_decides_nothing() -> None:
    pairs = Pairs(
        texts=tuple(ANGLES),
        ids=tuple(ANGLES),
        left=np.array([0, 0, 0, 1], dtype=np.int64),
        right=np.array([1, 2, 3, 2], dtype=np.int64),
        classes=("competitor",),
        targets=np.ones((4, 1), dtype=np.float32),
        known=np.array([[True], [True], [True], [False]]),
        gains=np.array([3, 3, 3, np.nan], dtype=np.float32),
        directed=False,
    )
    # The unlabelled pair, 30 degrees apart, is above two of the three positives, 10, 40 and 80 degrees apart.
    assert Selection(pairs)(encode) == {"auc": pytest.approx(1 / 3)}


def test_positives_alone_cannot_select_a_checkpoint() -> None:
    with pytest.raises(InvalidInput, match=r"training\.generate"):
        selection([1, 1, 1], known=[True] * 3, gains=[3, 3, 3])
