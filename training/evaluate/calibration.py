"""From a cosine to the probability of a competitor, as a bundle's manifest stores it and the service applies it.

The form is Platt's: P = sigmoid(slope · cosine + intercept). It must be fitted on the
pairs that it is applied to: the 50 companies that a search of the **whole corpus** returns for an anchor.
Judged pools are another mixture (random companies of the industry, lexical neighbours) and would give
wrong probabilities.

**Unjudged companies.** About one in nine of the 50 served companies has been judged. The others are not
counted as negatives: we assume that they are competitors as often as judged served companies of about the
same cosine. So within each tenth of the served cosines the judged pairs share the weight of all served
ones. This is right if, at a given cosine, being judged is independent of being a competitor. Judged
candidates were drawn from the neighbours by plain text and by words; only judging served pairs drawn at
random would test the assumption.

The fit uses held-out anchors of the training split. Isotonic regression, which can take any rising form,
is fitted beside it on the same folds of anchors: if it is clearly better, a sigmoid is the wrong form for
this encoder.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from similarity.generations.judgements import COMPETITOR, Judgements
from similarity.model.calibration import Calibration
from training.evaluate.bootstrap import Interval, statistic_interval
from training.evaluate.corpus import Corpus, serve
from training.evaluate.reliability import ReliabilityBin, brier, calibration_error, chance_error, log_loss, reliability

SERVED = 50
STRATA = 10
FOLDS = 5
NEWTON_STEPS = 100
# Every resample computes all measures, so 500 instead of the usual number.
RESAMPLES = 500

Floats: TypeAlias = NDArray[np.float64]
Mapped: TypeAlias = Callable[[Floats], Floats]
"""cosines `[n]` -> probabilities `[n]`"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPairs:
    """Served pairs that are judged, all `[pairs]`: number of the anchor, cosine, whether a competitor, weight.

    `served` is how many pairs were served, judged or not; the weights add up to it.
    """

    anchors: NDArray[np.int64]
    cosines: Floats
    competitor: NDArray[np.bool_]
    weights: Floats
    served: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationQuality:
    """How good probabilities are on some pairs; lower is better. Intervals are over anchors.

    `chance_ece` is what `ece` would be if the probabilities were right. A resample adds chance of its
    own, so the interval of `ece` lies too high; it says how uncertain, not how large.
    """

    ece: Interval
    chance_ece: float
    brier: Interval
    log_loss: Interval
    table: list[ReliabilityBin]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """The mapping fitted on all pairs, and what it and isotonic regression reach on anchors left out of the fit.

    `isotonic_gain` is the log loss of Platt's form minus isotonic's: above 0 where isotonic is better.
    """

    calibration: Calibration
    platt: CalibrationQuality
    isotonic: CalibrationQuality
    isotonic_gain: Interval
    anchors: int
    pairs: int
    served: int


def served_pairs(corpus: Corpus, judgements: Judgements, *, k: int = SERVED) -> ServedPairs:
    """The judged pairs among the `k` companies that each anchor is served from the whole corpus.

    Raises:
        InvalidInput: an anchor is not in the corpus, or nothing that is served has been judged.
    """
    served = serve(corpus, list(judgements), k=k)
    judged = [
        (number, place, grades[corpus.ids[row]])
        for number, grades in enumerate(judgements.values())
        for place, row in enumerate(served.rows[number])
        if corpus.ids[row] in grades
    ]
    if not judged:
        raise InvalidInput(f"none of the {k} companies served for any anchor has been judged; judge some of them")
    anchors, places, found = np.array(judged, dtype=np.int64).T
    cosines = served.cosines[anchors, places].astype(np.float64)
    return ServedPairs(
        anchors=anchors,
        cosines=cosines,
        competitor=found == COMPETITOR,
        weights=served_weights(cosines, served.cosines.astype(np.float64).ravel()),
        served=served.cosines.size,
    )


def served_weights(judged: Floats, served: Floats, *, strata: int = STRATA) -> Floats:
    """The number of `served` cosines `[m]` that each of the `judged` ones `[n]` represents; adds up to m.

    Served cosines are cut into `strata` equal parts; one in which nothing was judged joins the next
    lower one (the lowest: the next higher).
    """
    edges = np.unique(np.quantile(served, np.arange(1, strata) / strata))
    judged_in = np.bincount(np.searchsorted(edges, judged, side="right"), minlength=len(edges) + 1)
    joined = np.maximum(np.cumsum(judged_in > 0) - 1, 0)
    of_served = np.bincount(joined[np.searchsorted(edges, served, side="right")], minlength=joined[-1] + 1)
    of_judged = np.bincount(joined[np.searchsorted(edges, judged, side="right")], minlength=joined[-1] + 1)
    weights: Floats = (of_served / of_judged)[joined[np.searchsorted(edges, judged, side="right")]]
    return weights


def fit_platt(cosines: Floats, positive: NDArray[np.bool_], weights: Floats) -> Calibration:
    """The slope and intercept of highest likelihood, by Newton's method, for pairs `[n]`.

    Targets are Platt's (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2) instead of 1 and 0, so that pairs that a threshold
    separates have a finite slope (Platt 1999; Lin, Lin and Weng, Machine Learning 68, 2007). Weights count
    in proportion: with twice the weights nothing changes.

    Raises:
        InvalidInput: there are not both competitors and others.
    """
    positives = int(positive.sum())
    others = len(positive) - positives
    if not positives or not others:
        raise InvalidInput(
            f"{positives} competitors and {others} others were judged among the served; a calibration needs both, so "
            "judge more of what is served"
        )
    targets = np.where(positive, (positives + 1) / (positives + 2), 1 / (others + 2))
    weights = weights / weights.mean()
    middle, spread = cosines.mean(), cosines.std() or 1.0
    features = np.stack([(cosines - middle) / spread, np.ones(len(cosines))], axis=1)
    mean = np.average(targets, weights=weights)
    found = np.array([0.0, np.log(mean / (1 - mean))])
    for _ in range(NEWTON_STEPS):
        predicted = _sigmoid(features @ found)
        gradient = features.T @ (weights * (targets - predicted))
        curvature = (features * (weights * predicted * (1 - predicted))[:, None]).T @ features
        # A little added to the diagonal: where all cosines are equal there is no slope to be found.
        step = np.linalg.solve(curvature + 1e-9 * np.eye(2), gradient)
        before = _likelihood(features @ found, targets, weights)
        while _likelihood(features @ (found + step), targets, weights) < before - 1e-12 * abs(before):
            step = step / 2
        found = found + step
        if np.abs(step).max() < 1e-10:
            break
    slope = float(found[0] / spread)
    return Calibration(slope=slope, intercept=float(found[1] - slope * middle))


def probabilities(calibration: Calibration, cosines: Floats) -> Floats:
    """P(competitor) of cosines `[n]`, as the service computes it before it rounds."""
    return _sigmoid(calibration.slope * cosines + calibration.intercept)


def fit_isotonic(cosines: Floats, positive: NDArray[np.bool_], weights: Floats) -> Mapped:
    """The rising step-wise mapping of least squares, kept away from 0 and 1 as Platt's targets are."""
    from sklearn.isotonic import IsotonicRegression

    margin = 1 / (len(cosines) + 2)
    fitted = IsotonicRegression(y_min=margin, y_max=1 - margin, out_of_bounds="clip")
    fitted.fit(cosines, positive.astype(np.float64), sample_weight=weights)

    def mapped(values: Floats) -> Floats:
        predicted: Floats = np.asarray(fitted.predict(values), dtype=np.float64)
        return predicted

    return mapped


def calibrate(pairs: ServedPairs, *, seed: int = 0, resamples: int = RESAMPLES) -> CalibrationReport:
    """Fits the mapping, and judges it on anchors that it was not fitted on, FOLDS times.

    Raises:
        InvalidInput: there are fewer anchors than folds, or a fit lacks competitors or others.
    """
    platt, isotonic = out_of_fold(pairs, seed=seed)
    gains = statistic_interval(
        lambda rows: (
            log_loss(platt[rows], pairs.competitor[rows], pairs.weights[rows])
            - log_loss(isotonic[rows], pairs.competitor[rows], pairs.weights[rows])
        ),
        pairs.anchors,
        seed=seed,
        resamples=resamples,
    )
    return CalibrationReport(
        calibration=fit_platt(pairs.cosines, pairs.competitor, pairs.weights),
        platt=assess(pairs, platt, seed=seed, resamples=resamples),
        isotonic=assess(pairs, isotonic, seed=seed, resamples=resamples),
        isotonic_gain=gains,
        anchors=len(np.unique(pairs.anchors)),
        pairs=len(pairs.cosines),
        served=pairs.served,
    )


def out_of_fold(pairs: ServedPairs, *, folds: int = FOLDS, seed: int = 0) -> tuple[Floats, Floats]:
    """Probabilities `[pairs]` by Platt's form and by isotonic regression, each fitted on the other folds' anchors."""
    anchors = np.unique(pairs.anchors)
    if not 2 <= folds <= len(anchors):
        raise InvalidInput(f"{len(anchors)} anchors with judged pairs make no {folds} folds; judge more anchors")
    order = np.random.default_rng(seed).permutation(len(anchors))
    fold_of = (order % folds)[np.searchsorted(anchors, pairs.anchors)]
    platt, isotonic = np.empty(len(fold_of)), np.empty(len(fold_of))
    for fold in range(folds):
        held, rest = fold_of == fold, fold_of != fold
        known = (pairs.cosines[rest], pairs.competitor[rest], pairs.weights[rest])
        platt[held] = probabilities(fit_platt(*known), pairs.cosines[held])
        isotonic[held] = fit_isotonic(*known)(pairs.cosines[held])
    return platt, isotonic


def assess(pairs: ServedPairs, predicted: Floats, *, seed: int = 0, resamples: int = RESAMPLES) -> CalibrationQuality:
    """How good the probabilities `predicted` `[pairs]` are, with intervals over anchors."""

    def interval(measure: Callable[[Floats, NDArray[np.bool_], Floats], float]) -> Interval:
        return statistic_interval(
            lambda rows: measure(predicted[rows], pairs.competitor[rows], pairs.weights[rows]),
            pairs.anchors,
            seed=seed,
            resamples=resamples,
        )

    return CalibrationQuality(
        ece=interval(calibration_error),
        chance_ece=chance_error(predicted, pairs.weights, seed=seed),
        brier=interval(brier),
        log_loss=interval(log_loss),
        table=reliability(predicted, pairs.competitor, pairs.weights),
    )


def _sigmoid(logits: Floats) -> Floats:
    # tanh saturates where exp would overflow.
    found: Floats = 0.5 * (1 + np.tanh(logits / 2))
    return found


def _likelihood(logits: Floats, targets: Floats, weights: Floats) -> float:
    return float((weights * (targets * logits - np.logaddexp(0, logits))).sum())
