"""The bootstrap of a mean."""

from itertools import product

import numpy as np
import pytest

from similarity.generations.confidence_intervals import BLOCK_RESAMPLES, bootstrap_interval, resampled_means


def test_resampled_means_do_not_depend_on_how_many_are_asked_for() -> None:
    values = np.arange(7.0)
    few = resampled_means(values, seed=1, resamples=BLOCK_RESAMPLES)
    many = resampled_means(values, seed=1, resamples=BLOCK_RESAMPLES + 10)
    np.testing.assert_array_equal(many[:BLOCK_RESAMPLES], few)
    assert values.min() <= many.min() <= many.max() <= values.max()


def test_equal_values_leave_no_doubt() -> None:
    assert bootstrap_interval(np.full(9, 0.25), seed=0) == (0.25, 0.25)


def test_the_bounds_are_those_of_all_possible_resamples() -> None:
    values = np.array([-0.3, 0.1, 0.5, 0.2])
    means = [np.mean(drawn) for drawn in product(values, repeat=4)]
    lower, upper = bootstrap_interval(values, seed=3)
    assert lower == pytest.approx(np.percentile(means, 2.5), abs=0.01)
    assert upper == pytest.approx(np.percentile(means, 97.5), abs=0.01)
