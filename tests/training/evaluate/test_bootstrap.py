"""The bootstrap against distributions that can be written down: two anchors have four resamples."""

import math

import numpy as np
import pytest

from similarity.errors import InvalidInput
from training.evaluate.bootstrap import mean_interval, paired_difference, statistic_interval

NAN = float("nan")


def test_two_anchors_have_three_means() -> None:
    # 0 and 1 give means 0, 1/2, 1 with chances 1/4, 1/2, 1/4.
    found = mean_interval(np.array([0.0, 1.0]))
    assert (found.mean, found.lower, found.upper, found.anchors) == (0.5, 0.0, 1.0, 2)


def test_the_interval_of_many_anchors_is_that_of_the_normal_law() -> None:
    values = np.random.default_rng(3).normal(size=400)
    found = mean_interval(values)
    half = 1.96 * values.std() / math.sqrt(400)
    assert found.lower == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert found.upper == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_two_differences_have_three_means() -> None:
    # Differences 2 and -1: means 2, 1/2, -1 with chances 1/4, 1/2, 1/4.
    found = paired_difference(np.array([2.0, 0.0]), np.array([0.0, 1.0]))
    assert found.mean == 0.5
    assert (found.lower, found.upper) == (-1, 2)


def test_pairing_removes_the_difficulty_of_anchors() -> None:
    hard = np.random.default_rng(0).normal(size=100)
    found = paired_difference(hard + 0.1, hard)
    assert found.lower == pytest.approx(0.1)
    assert found.upper == pytest.approx(0.1)


def test_values_that_are_not_defined_are_left_out() -> None:
    assert mean_interval(np.array([NAN, 0.4])).anchors == 1
    found = paired_difference(np.array([NAN, 1.0, 1.0]), np.array([0.0, NAN, 0.5]))
    assert (found.mean, found.anchors) == (0.5, 1)


def test_nothing_to_resample_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no anchor has a value"):
        mean_interval(np.array([NAN]))
    with pytest.raises(InvalidInput, match="no pair to resample"):
        statistic_interval(len, np.array([], dtype=np.int64))


def test_methods_on_other_anchors_are_refused() -> None:
    with pytest.raises(InvalidInput, match="2 and 3 values"):
        paired_difference(np.zeros(2), np.zeros(3))


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.arange(10.0)
    assert mean_interval(values, seed=4) == mean_interval(values, seed=4)
    assert mean_interval(values, seed=4, resamples=50) != mean_interval(values, seed=5, resamples=50)


def test_a_statistic_is_resampled_by_anchor_and_not_by_pair() -> None:
    # Two anchors of 50 equal pairs each: the mean is 0, 1/2 or 1 if whole anchors are drawn.
    values, groups = np.repeat([0.0, 1.0], 50), np.repeat([7, 3], 50)
    seen: set[float] = set()

    def mean(rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> float:
        seen.add(float(values[rows].mean()))
        return float(values[rows].mean())

    found = statistic_interval(mean, groups, resamples=200)
    assert seen == {0.0, 0.5, 1.0}
    assert (found.mean, found.lower, found.upper, found.anchors) == (0.5, 0.0, 1.0, 2)


def test_a_statistic_of_anchors_of_one_pair_is_the_plain_bootstrap() -> None:
    values = np.random.default_rng(2).normal(size=60)
    plain = mean_interval(values)
    found = statistic_interval(lambda rows: float(values[rows].mean()), np.arange(60), resamples=4_000)
    assert found.lower == pytest.approx(plain.lower, abs=0.03)
    assert found.upper == pytest.approx(plain.upper, abs=0.03)
