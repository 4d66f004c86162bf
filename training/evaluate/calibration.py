"""Fits the calibrator that maps a cosine to the probability that a hit is a competitor, and cross-validates it.

The calibrator is Platt's: P = sigmoid(slope · cosine + intercept). The manifest of a bundle stores it. It is fitted on
the distribution it is used on: the top 50 hits of each anchor in the whole corpus. The judged candidate pools have
another distribution (random companies of the same industry, lexical neighbours); a fit on them would be biased.

**Unjudged hits.** About one in nine of the 50 hits has been judged. The others are not counted as negatives. Hits are
divided into deciles of cosine, and in each decile the weights of the judged hits sum to the number of all hits
(post-stratification). This is unbiased if, at a given cosine, being judged is independent of being a competitor.
Judged candidates were selected among neighbours by plain text and by words, so the assumption is untested; a test
needs judgements of randomly selected hits.

The fit uses anchors that were not trained on.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from similarity.errors import InvalidInput
from similarity.generations.relevance_labels import COMPETITOR, RelevanceLabels
from similarity.model.calibration import Calibration
from training.evaluate.bootstrap import Interval, statistic_interval
from training.evaluate.corpus import Corpus, nearest_companies
from training.evaluate.reliability import ReliabilityBin, brier, calibration_error, chance_error, log_loss, reliability

HITS_PER_ANCHOR = 50
STRATA = 10
FOLDS = 5
# Each of the three measures has resamples of its own, so fewer than usual.
RESAMPLES = 500

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedHits:
    """The judged hits, all arrays `[pairs]`: number of the anchor, cosine, whether a competitor, weight.

    `hits` is the number of all hits, judged or not; the weights sum to it.
    """

    anchors: NDArray[np.int64]
    cosines: Floats
    competitor: NDArray[np.bool_]
    weights: Floats
    hits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationQuality:
    """The errors of probabilities on some pairs; lower is better. Intervals are over anchors.

    `chance_ece` is the expected ECE of perfectly calibrated probabilities on a sample of this size. Resampling adds
    noise, so the interval of `ece` is biased upwards: use its width, not its position.
    """

    ece: Interval
    chance_ece: float
    brier: Interval
    log_loss: Interval
    table: list[ReliabilityBin]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """The calibration fitted on all pairs, and its cross-validated quality; `served` counts all hits, judged or not."""

    calibration: Calibration
    quality: CalibrationQuality
    anchors: int
    pairs: int
    served: int


def judged_hits(corpus: Corpus, judgements: RelevanceLabels, *, k: int = HITS_PER_ANCHOR) -> JudgedHits:
    """Return the judged companies among the top `k` hits of each anchor in the whole corpus.

    Raises:
        InvalidInput: an anchor is not in the corpus, or none of the hits has been judged.
    """
    rows, cosines = nearest_companies(corpus, list(judgements), k=k)
    hits = cosines.astype(np.float64)
    judged = [
        (number, rank, grades[corpus.ids[row]])
        for number, grades in enumerate(judgements.values())
        for rank, row in enumerate(rows[number])
        if corpus.ids[row] in grades
    ]
    if not judged:
        raise InvalidInput(f"none of the top {k} hits of any anchor has been judged; judge some of them")
    anchors, ranks, grade_of = np.array(judged, dtype=np.int64).T
    return JudgedHits(
        anchors=anchors,
        cosines=hits[anchors, ranks],
        competitor=grade_of == COMPETITOR,
        weights=stratum_weights(hits[anchors, ranks], hits.ravel()),
        hits=hits.size,
    )


def stratum_weights(judged: Floats, hits: Floats, *, strata: int = STRATA) -> Floats:
    """Return the weight of each judged hit: the hits in its stratum divided by the judged hits in its stratum.

    `judged` `[n]` and `hits` `[m]` are cosines; the weights sum to m. Strata are quantiles of `hits`. A stratum without
    a judged hit is merged into the next lower one (the lowest into the next higher).
    """
    edges = np.unique(np.quantile(hits, np.arange(1, strata) / strata))
    judged_strata = np.searchsorted(edges, judged, side="right")
    judged_per_stratum = np.bincount(judged_strata, minlength=len(edges) + 1)
    merged_stratum = np.maximum(np.cumsum(judged_per_stratum > 0) - 1, 0)
    hits_per_merged = np.bincount(
        merged_stratum[np.searchsorted(edges, hits, side="right")], minlength=merged_stratum[-1] + 1
    )
    judged_per_merged = np.bincount(merged_stratum[judged_strata], minlength=merged_stratum[-1] + 1)
    weights: Floats = (hits_per_merged / judged_per_merged)[merged_stratum[judged_strata]]
    return weights


def fit_platt(cosines: Floats, positive: NDArray[np.bool_], weights: Floats) -> Calibration:
    """Return the maximum-likelihood slope and intercept for pairs `[n]`.

    The targets are Platt's (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2) instead of 1 and 0, so that the slope is finite even if a
    threshold separates the pairs (Platt 1999; Lin, Lin and Weng, Machine Learning 68, 2007); n₊ and n₋ are unweighted
    counts. Only relative weights matter: multiplying all weights by a constant does not change the fit.

    Raises:
        InvalidInput: the judged hits are all competitors, or none is.
    """
    positives = int(positive.sum())
    others = len(positive) - positives
    if not positives or not others:
        raise InvalidInput(
            f"the judged hits are {positives} competitors and {others} others; a calibration needs both, so judge more "
            "hits"
        )
    targets = np.where(positive, (positives + 1) / (positives + 2), 1 / (others + 2))
    shares = weights / weights.sum()
    mean_cosine, cosine_std = cosines.mean(), cosines.std() or 1.0
    features = np.stack([(cosines - mean_cosine) / cosine_std, np.ones(len(cosines))], axis=1)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        logits = features @ parameters
        value = -(shares * (targets * logits - np.logaddexp(0, logits))).sum()
        return float(value), features.T @ (shares * (expit(logits) - targets))

    parameters = minimize(loss, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    slope = float(parameters[0] / cosine_std)
    return Calibration(slope=slope, intercept=float(parameters[1] - slope * mean_cosine))


def probabilities(calibration: Calibration, cosines: Floats) -> Floats:
    """Return P(competitor) of cosines `[n]`, as the service computes it before rounding."""
    found: Floats = expit(calibration.slope * cosines + calibration.intercept)
    return found


def calibrate(pairs: JudgedHits, *, seed: int = 0, resamples: int = RESAMPLES) -> CalibrationReport:
    """Fit the calibration on all pairs and measure it by FOLDS-fold cross-validation over anchors.

    Raises:
        InvalidInput: there are fewer anchors than folds, or in a fit the hits are all competitors, or none is.
    """
    return CalibrationReport(
        calibration=fit_platt(pairs.cosines, pairs.competitor, pairs.weights),
        quality=assess(pairs, out_of_fold(pairs, seed=seed), seed=seed, resamples=resamples),
        anchors=len(np.unique(pairs.anchors)),
        pairs=len(pairs.cosines),
        served=pairs.hits,
    )


def out_of_fold(pairs: JudgedHits, *, folds: int = FOLDS, seed: int = 0) -> Floats:
    """Return probabilities `[pairs]`, each predicted by a fit on the anchors of the other folds."""
    anchors = np.unique(pairs.anchors)
    if len(anchors) < folds:
        raise InvalidInput(
            f"{folds}-fold cross-validation needs {folds} anchors with judged hits, not {len(anchors)}; judge more"
        )
    order = np.random.default_rng(seed).permutation(len(anchors))
    fold_of = (order % folds)[np.searchsorted(anchors, pairs.anchors)]
    predicted = np.empty(len(fold_of))
    for fold in range(folds):
        held_out, rest = fold_of == fold, fold_of != fold
        fitted = fit_platt(pairs.cosines[rest], pairs.competitor[rest], pairs.weights[rest])
        predicted[held_out] = probabilities(fitted, pairs.cosines[held_out])
    return predicted


def assess(pairs: JudgedHits, predicted: Floats, *, seed: int = 0, resamples: int = RESAMPLES) -> CalibrationQuality:
    """Return the errors of the probabilities `predicted` `[pairs]`, with intervals over anchors."""

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
