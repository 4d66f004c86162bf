"""Decisions on pairs: tables of four pairs by hand, thresholds against trying them all."""

import math

import numpy as np
import pytest

from similarity.errors import InvalidInput
from training.evaluate.pairs import best_threshold, cosine_quality, head_quality

POSITIVE = np.array([True, False, True, False])


def test_the_table_by_hand() -> None:
    found = cosine_quality(np.array([0.9, 0.8, 0.4, 0.3]), POSITIVE, 0.35)
    assert found.accuracy == 3 / 4
    assert found.precision == pytest.approx(2 / 3)
    assert found.recall == 1
    assert found.f1 == pytest.approx(0.8)
    assert found.auc == 3 / 4
    assert (found.threshold, found.pairs) == (0.35, 4)


def test_a_cosine_at_the_threshold_is_a_competitor() -> None:
    assert cosine_quality(np.array([0.5]), np.array([True]), 0.5).recall == 1


def test_undefined_measures_are_nan() -> None:
    nothing_called = cosine_quality(np.array([0.1, 0.2]), np.array([True, False]), 0.9)
    assert math.isnan(nothing_called.precision)
    assert (nothing_called.recall, nothing_called.f1) == (0, 0)
    no_positives = cosine_quality(np.array([0.1, 0.2]), np.array([False, False]), 0.9)
    assert math.isnan(no_positives.recall)
    assert math.isnan(no_positives.f1)
    assert math.isnan(no_positives.auc)


def test_the_threshold_lies_between_the_kinds() -> None:
    assert best_threshold(np.array([0.9, 0.6, 0.4]), np.array([True, True, False])) == pytest.approx(0.5)


def test_calling_nothing_or_everything_a_competitor_can_be_best() -> None:
    scores = np.array([0.9, 0.8, 0.1])
    assert best_threshold(scores, np.array([False, False, True])) > 0.9
    assert best_threshold(scores, np.array([False, True, True])) <= 0.1


@pytest.mark.parametrize("seed", range(10))
def test_no_threshold_is_better_than_the_best(seed: int) -> None:
    random = np.random.default_rng(seed)
    scores, positive = random.integers(0, 9, size=30) / 10, random.random(30) < 0.3
    found = cosine_quality(scores, positive, best_threshold(scores, positive))
    others = [cosine_quality(scores, positive, each).accuracy for each in np.arange(-0.05, 1, 0.05)]
    assert found.accuracy == pytest.approx(max(others))


def test_neighbouring_floats_are_kept_apart() -> None:
    low = 0.5
    high = np.nextafter(low, 1)
    threshold = best_threshold(np.array([low, high]), np.array([False, True]))
    assert low < threshold <= high


def test_a_threshold_needs_both_kinds() -> None:
    with pytest.raises(InvalidInput, match="both kinds"):
        best_threshold(np.array([0.1, 0.2]), np.array([True, True]))


def test_the_head_decides_by_the_mean_of_both_orders() -> None:
    logits = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    swapped = np.array([[1.0, 0.0], [0.0, 3.0], [3.0, 0.0]])
    found = head_quality(logits, swapped, np.array([True, False, False]))
    # Log-odds 1, -1, 1/2.
    assert (found.accuracy, found.precision, found.recall, found.auc) == (2 / 3, 1 / 2, 1, 1)


def test_a_head_of_one_logit_decides_by_its_sign() -> None:
    logits = np.array([[0.4], [-0.2]])
    found = head_quality(logits, logits, np.array([True, False]))
    assert (found.accuracy, found.threshold) == (1, 0)
