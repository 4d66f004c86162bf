"""Probabilities against outcomes, by hand."""

import math

import numpy as np
import pytest

from similarity.errors import InvalidInput
from training.evaluate.reliability import brier, calibration_error, chance_error, log_loss, reliability

ONES = np.ones(4)
PREDICTED = np.array([0.2, 0.4, 0.6, 0.8])
POSITIVE = np.array([False, True, False, True])


def test_bins_hold_equally_many_pairs() -> None:
    low, high = reliability(PREDICTED, POSITIVE, ONES, bins=2)
    assert (low.lower, low.upper, low.pairs, low.share) == (0.2, 0.4, 2, 0.5)
    assert (low.predicted, low.observed) == pytest.approx((0.3, 0.5))
    assert (high.predicted, high.observed) == pytest.approx((0.7, 0.5))


def test_a_pair_counts_as_often_as_its_weight_says() -> None:
    low, high = reliability(PREDICTED, POSITIVE, np.array([3.0, 1.0, 1.0, 1.0]), bins=2)
    assert low.predicted == pytest.approx((3 * 0.2 + 0.4) / 4)
    assert low.observed == pytest.approx(1 / 4)
    assert (low.share, high.share) == pytest.approx((4 / 6, 2 / 6))


def test_equal_probabilities_stay_together() -> None:
    [only] = reliability(np.full(4, 0.5), POSITIVE, ONES)
    assert (only.pairs, only.predicted, only.observed) == (4, 0.5, 0.5)


def test_the_calibration_error_is_the_mean_distance() -> None:
    assert calibration_error(PREDICTED, POSITIVE, ONES, bins=2) == pytest.approx(0.2)
    assert calibration_error(PREDICTED, POSITIVE, ONES, bins=4) == pytest.approx((0.2 + 0.6 + 0.6 + 0.2) / 4)
    assert calibration_error(np.array([0.0, 1.0]), np.array([False, True]), np.ones(2)) == 0


def test_brier_and_log_loss() -> None:
    assert brier(PREDICTED, POSITIVE, ONES) == pytest.approx((0.04 + 0.36 + 0.36 + 0.04) / 4)
    expected = -(math.log(0.8) + math.log(0.4) + math.log(0.4) + math.log(0.8)) / 4
    assert log_loss(PREDICTED, POSITIVE, ONES) == pytest.approx(expected)
    weighted = -(3 * math.log(0.8) + math.log(0.4)) / 4
    assert log_loss(PREDICTED[:2], POSITIVE[:2], np.array([3.0, 1.0])) == pytest.approx(weighted)


def test_a_certain_mistake_has_a_finite_log_loss() -> None:
    assert log_loss(np.array([1.0]), np.array([False]), np.ones(1)) == pytest.approx(6 * math.log(10))


def test_chance_alone_explains_the_error_of_true_probabilities() -> None:
    random = np.random.default_rng(0)
    predicted = random.random(500)
    errors = [calibration_error(predicted, random.random(500) < predicted, np.ones(500)) for _ in range(60)]
    assert chance_error(predicted, np.ones(500)) == pytest.approx(np.mean(errors), rel=0.1)
    wrong = calibration_error(predicted, random.random(500) < predicted**3, np.ones(500))
    assert wrong > 3 * chance_error(predicted, np.ones(500))


@pytest.mark.parametrize("probabilities", [[], [1.1], [-0.1], [float("nan")]])
def test_a_value_that_is_no_probability_is_refused(probabilities: list[float]) -> None:
    values = np.array(probabilities)
    with pytest.raises(InvalidInput, match="probability"):
        brier(values, np.zeros(len(values), dtype=bool), np.ones(len(values)))
