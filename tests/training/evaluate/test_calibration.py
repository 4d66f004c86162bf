"""The mapping from cosine to probability: recovered where it is known, finite where pairs are separated."""

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.model.calibration import Calibration
from training.evaluate.calibration import (
    JudgedHits,
    assess,
    calibrate,
    fit_platt,
    judged_hits,
    out_of_fold,
    probabilities,
    stratum_weights,
)
from training.evaluate.corpus import Corpus

pytestmark = pytest.mark.training

TRUE = Calibration(slope=9.0, intercept=-6.0)


def drawn(pairs: int, *, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Cosines, and competitors drawn by the true mapping."""
    random = np.random.default_rng(seed)
    cosines = random.uniform(0.3, 0.95, size=pairs)
    return cosines, random.random(pairs) < probabilities(TRUE, cosines)


def grouped(pairs: int, anchors: int) -> JudgedHits:
    cosines, competitor = drawn(pairs)
    return JudgedHits(
        anchors=np.arange(pairs) % anchors,
        cosines=cosines,
        competitor=competitor,
        weights=np.full(pairs, 2.0),
        hits=2 * pairs,
    )


def test_the_form_is_the_one_that_the_service_applies() -> None:
    assert probabilities(Calibration(slope=2.0, intercept=-1.0), np.array([0.5, 1.0])) == pytest.approx(
        [0.5, 1 / (1 + np.exp(-1))]
    )
    assert probabilities(Calibration(slope=1e6, intercept=0.0), np.array([-1.0, 1.0])).tolist() == [0, 1]


def test_a_known_mapping_is_recovered() -> None:
    cosines, competitor = drawn(100_000)
    found = fit_platt(cosines, competitor, np.ones(len(cosines)))
    assert found.slope == pytest.approx(9, rel=0.03)
    assert found.intercept == pytest.approx(-6, rel=0.03)


def test_no_other_mapping_is_more_likely() -> None:
    cosines, competitor = drawn(80)
    weights = np.random.default_rng(1).uniform(0.5, 2, size=80)
    found = fit_platt(cosines, competitor, weights)
    positives, others = competitor.sum(), (~competitor).sum()
    targets = np.where(competitor, (positives + 1) / (positives + 2), 1 / (others + 2))

    def loss(slope: float, intercept: float) -> float:
        p = 1 / (1 + np.exp(-(slope * cosines + intercept)))
        return float(-(weights * (targets * np.log(p) + (1 - targets) * np.log(1 - p))).sum())

    best = loss(found.slope, found.intercept)
    for change in (1e-3, -1e-3):
        assert loss(found.slope + change, found.intercept) > best
        assert loss(found.slope, found.intercept + change) > best
        assert loss(found.slope + change, found.intercept - 0.6 * change) > best


def test_only_the_proportions_of_weights_count() -> None:
    cosines, competitor = drawn(200)
    weights = np.random.default_rng(2).uniform(0.5, 2, size=200)
    one, other = fit_platt(cosines, competitor, weights), fit_platt(cosines, competitor, 10 * weights)
    assert other.slope == pytest.approx(one.slope)
    assert other.intercept == pytest.approx(one.intercept)


def test_separated_pairs_have_a_finite_rising_mapping() -> None:
    found = fit_platt(np.array([0.2, 0.3, 0.8, 0.9]), np.array([False, False, True, True]), np.ones(4))
    p = probabilities(found, np.array([0.2, 0.9]))
    assert 0 < p[0] < 0.5 < p[1] < 1


def test_cosines_that_say_nothing_give_the_share() -> None:
    found = fit_platt(np.full(10, 0.5), np.arange(10) < 3, np.ones(10))
    # Platt's targets: (3 * 4/5 + 7 * 1/9) / 10.
    assert probabilities(found, np.array([0.5]))[0] == pytest.approx((3 * 4 / 5 + 7 / 9) / 10)


@pytest.mark.parametrize("competitor", [[True, True], [False, False]])
def test_one_kind_alone_is_refused(competitor: list[bool]) -> None:
    with pytest.raises(InvalidInput, match="needs both"):
        fit_platt(np.array([0.1, 0.2]), np.array(competitor), np.ones(2))


def test_the_judged_share_the_weight_of_all_served_of_like_cosine() -> None:
    served = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9])
    weights = stratum_weights(np.array([0.2, 0.7, 0.9]), served, strata=2)
    assert weights.tolist() == [4, 2, 2]


def test_a_stratum_without_judged_pairs_joins_its_neighbour() -> None:
    served = np.arange(1, 9) / 10
    assert stratum_weights(np.array([0.1, 0.8]), served, strata=4).tolist() == [6, 2]
    assert stratum_weights(np.array([0.8]), served, strata=4).tolist() == [8]
    assert stratum_weights(np.array([0.1]), served, strata=4).tolist() == [8]
    assert stratum_weights(np.array([0.5, 0.5]), np.full(6, 0.5)).tolist() == [3, 3]


def test_weights_make_up_for_judging_the_nearest_more_often() -> None:
    cosines, competitor = drawn(50_000)
    judged = np.random.default_rng(5).random(len(cosines)) < 0.02 + 0.3 * (cosines > 0.75)
    weights = stratum_weights(cosines[judged], cosines)
    assert weights.sum() == pytest.approx(len(cosines))
    assert competitor[judged].mean() > competitor.mean() + 0.1
    assert np.average(competitor[judged], weights=weights) == pytest.approx(competitor.mean(), abs=0.02)


def test_served_pairs_are_the_judged_ones_among_the_nearest_of_the_whole_corpus() -> None:
    radians = np.radians([0, 10, 20, 30, 40, 50])
    corpus = Corpus(
        ids=("a", "b", "c", "d", "e", "f"),
        vectors=np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32),
    )
    pairs = judged_hits(corpus, {"a": {"b": 0, "d": 2, "f": 2}, "f": {"e": 2, "c": 1}}, k=3)
    assert pairs.anchors.tolist() == [0, 0, 1, 1]
    assert pairs.cosines == pytest.approx(np.cos(np.radians([10, 30, 10, 30])))
    assert pairs.competitor.tolist() == [False, True, True, False]
    assert pairs.hits == 6
    assert pairs.weights.sum() == 6
    with pytest.raises(InvalidInput, match="has been judged"):
        judged_hits(corpus, {"a": {"f": 2}}, k=3)


def test_true_probabilities_have_the_error_of_chance() -> None:
    pairs = grouped(2_000, 100)
    right = assess(pairs, probabilities(TRUE, pairs.cosines), resamples=30)
    wrong = assess(pairs, np.full(2_000, 0.9), resamples=30)
    assert right.ece.mean < 2 * right.chance_ece
    assert wrong.ece.mean > 10 * wrong.chance_ece
    assert right.log_loss.upper < wrong.log_loss.lower
    assert right.brier.lower < right.brier.mean < right.brier.upper
    assert sum(each.pairs for each in right.table) == 2_000


def test_the_report_fits_on_all_and_judges_on_others() -> None:
    pairs = grouped(3_000, 60)
    report = calibrate(pairs, resamples=50)
    assert report.calibration == fit_platt(pairs.cosines, pairs.competitor, pairs.weights)
    assert (report.anchors, report.pairs, report.served) == (60, 3_000, 6_000)
    assert report.quality.ece.mean < 0.05


def test_no_anchor_is_predicted_from_its_own_pairs() -> None:
    # Each anchor has one cosine of its own and pairs of one kind: knowing them would give them away.
    anchors = np.repeat(np.arange(20), 5)
    pairs = JudgedHits(
        anchors=anchors,
        cosines=anchors / 20,
        competitor=anchors % 2 == 0,
        weights=np.ones(100),
        hits=100,
    )
    assert np.abs(out_of_fold(pairs, folds=20) - 0.5).max() < 0.3


def test_fewer_anchors_than_folds_is_refused() -> None:
    with pytest.raises(InvalidInput, match="5-fold cross-validation needs 5 anchors with judged hits, not 1"):
        calibrate(grouped(10, 1))
