"""Without negatives: figures by hand, and recovery of the truth where it is known."""

import math

import numpy as np
import pytest

from similarity.errors import InvalidInput
from training.evaluate.pairs import cosine_quality
from training.papers.positive_unlabelled import unlabelled_quality


def test_by_hand() -> None:
    # r = 3/4 of the positives and q = 1/2 of the pool are called; the prior is 1/4.
    found = unlabelled_quality(
        np.array([0.9, 0.8, 0.7, 0.1]), np.array([0.9, 0.6, 0.2, 0.1]), threshold=0.5, prior=0.25
    )
    assert (found.recall, found.called) == (3 / 4, 1 / 2)
    assert found.lee_liu == pytest.approx(9 / 8)
    assert found.precision == pytest.approx(0.25 * 0.75 / 0.5)
    assert found.f1 == pytest.approx(2 * 0.25 * 0.75 / (0.25 + 0.5))
    assert found.accuracy == pytest.approx(1 - 0.5 - 0.25 + 2 * 0.1875)
    # Positives against the pool: 3.5 + 3 + 3 + .5 of 16; corrected (.625 - .125) / .75.
    assert found.auc == pytest.approx((10 / 16 - 0.125) / 0.75)
    assert found.excess == 0


def test_with_the_right_prior_the_truth_is_recovered() -> None:
    random = np.random.default_rng(0)
    truth = random.random(200_000) < 0.2
    pool = random.normal(size=len(truth)) + 1.5 * truth
    labelled = random.normal(size=50_000) + 1.5
    true = cosine_quality(pool, truth, 1.0)
    found = unlabelled_quality(labelled, pool, threshold=1.0, prior=0.2)
    for name in ("recall", "precision", "f1", "accuracy", "auc"):
        assert getattr(found, name) == pytest.approx(getattr(true, name), abs=0.01)
    assert found.lee_liu == pytest.approx(true.precision * true.recall / 0.2, rel=0.02)


def test_the_criterion_ranks_thresholds_as_f1_does() -> None:
    random = np.random.default_rng(1)
    truth = random.random(100_000) < 0.2
    pool = random.normal(size=len(truth)) + 2 * truth
    labelled = random.normal(size=20_000) + 2
    thresholds = [-1.0, 0.0, 1.2, 3.0]
    criterion = [unlabelled_quality(labelled, pool, threshold=each, prior=0.2).lee_liu for each in thresholds]
    f1 = [cosine_quality(pool, truth, each).f1 for each in thresholds]
    assert np.argmax(criterion) == np.argmax(f1)


def test_a_prior_that_cannot_be_right_shows() -> None:
    found = unlabelled_quality(np.array([0.9]), np.array([0.9, 0.1, 0.1, 0.1]), threshold=0.5, prior=0.6)
    assert found.precision == 1
    assert found.excess == pytest.approx(0.35)


def test_nothing_called_has_no_precision() -> None:
    found = unlabelled_quality(np.array([0.1]), np.array([0.2]), threshold=0.5, prior=0.3)
    assert math.isnan(found.precision)
    assert math.isnan(found.lee_liu)
    assert (found.recall, found.f1, found.accuracy) == pytest.approx((0, 0, 0.7))


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, float("nan")])
def test_a_prior_outside_its_range_is_refused(prior: float) -> None:
    with pytest.raises(InvalidInput, match="class prior"):
        unlabelled_quality(np.array([0.1]), np.array([0.2]), threshold=0.5, prior=prior)


def test_an_empty_part_is_refused() -> None:
    with pytest.raises(InvalidInput, match="both parts"):
        unlabelled_quality(np.array([]), np.array([0.2]), threshold=0.5, prior=0.5)
