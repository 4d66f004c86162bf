"""Classification of pairs as in PAUSE's Table 5: grade 2 against the rest; accuracy, precision and recall.

There are two classifiers. The pair head takes the class with the highest logit, averaged over both orders of the pair,
because being a competitor is symmetric. The cosine, which the search uses, is compared with a threshold that is chosen
on the selection split, never on the evaluated pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.evaluate.ranks import auc

Floats = NDArray[np.floating]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairQuality:
    """Shares from 0 to 1. `precision` is NaN if no pair is predicted positive, `recall` if no pair is positive.

    `threshold` is that of the score (a cosine; for the head, the log-odds of the positive class).
    """

    accuracy: float
    precision: float
    recall: float
    f1: float
    auc: float
    threshold: float
    pairs: int
    positives: int


def cosine_quality(cosines: Floats, positive: Flags, threshold: float) -> PairQuality:
    """Return the quality of predicting competitors at a cosine of `threshold` or more (see `best_threshold`)."""
    return _quality(cosines >= threshold, cosines, positive, threshold)


def head_quality(logits: Floats, swapped: Floats, positive: Flags, *, positive_class: int = 1) -> PairQuality:
    """Return the quality of the pair head, which predicts the class with the highest logit, averaged over both orders.

    `logits` and `swapped` are `[n, C]`, of the pairs as they stand and with the two companies swapped.
    With C = 1 a positive logit decides; otherwise class `positive_class` is the competitor's.

    Raises:
        InvalidInput: the shapes do not fit each other.
    """
    if logits.shape != swapped.shape or logits.ndim != 2 or len(logits) != len(positive):
        raise InvalidInput(
            f"logits are {list(logits.shape)} and {list(swapped.shape)} for {len(positive)} pairs; give both orders "
            "of every pair as [pairs, classes]"
        )
    mean = (logits.astype(np.float64) + swapped) / 2
    if mean.shape[1] == 1:
        return _quality(mean[:, 0] > 0, mean[:, 0], positive, 0.0)
    others = np.delete(mean, positive_class, axis=1)
    odds = mean[:, positive_class] - np.logaddexp.reduce(others, axis=1)
    return _quality(mean.argmax(axis=1) == positive_class, odds, positive, float("nan") if others.shape[1] > 1 else 0.0)


def best_threshold(scores: Floats, positive: Flags, *, measure: str = "accuracy") -> float:
    """The threshold of highest accuracy (or "f1") on the selection split, `scores` and `positive` `[n]`.

    It lies halfway between two scores; of equally good ones the highest is taken.

    Raises:
        InvalidInput: there is no positive or no other pair, or the `measure` is unknown.
    """
    if measure not in {"accuracy", "f1"}:
        raise InvalidInput(f"a threshold cannot be chosen by {measure!r}; use accuracy or f1")
    if not positive.any() or positive.all():
        raise InvalidInput("a threshold needs pairs of both kinds; choose it on a split with competitors and others")
    values, places = np.unique(scores.astype(np.float64), return_inverse=True)
    # Entry i of what follows: the pairs from the i-th lowest score up are called positive; the last: none is.
    middles = (values[1:] + values[:-1]) / 2
    thresholds = np.concatenate([values[:1], np.where(middles > values[:-1], middles, values[1:]), [np.inf]])
    thresholds[-1] = np.nextafter(values[-1], np.inf)
    hits, called = (
        np.append(np.cumsum(np.bincount(places, weights=weights)[::-1])[::-1], 0)
        for weights in (positive.astype(np.float64), np.ones(len(places)))
    )
    positives = int(positive.sum())
    accuracy = (2 * hits - called - positives) / len(places) + 1
    reached = 2 * hits / (called + positives) if measure == "f1" else accuracy
    return float(thresholds[np.flatnonzero(reached >= reached.max() - 1e-12)[-1]])


def _quality(called: Flags, scores: Floats, positive: Flags, threshold: float) -> PairQuality:
    if not len(positive):
        raise InvalidInput("there is no pair to judge; give at least one")
    hits, claims, positives = int((called & positive).sum()), int(called.sum()), int(positive.sum())
    return PairQuality(
        accuracy=float((called == positive).mean()),
        precision=hits / claims if claims else float("nan"),
        recall=hits / positives if positives else float("nan"),
        f1=2 * hits / (claims + positives) if claims + positives else float("nan"),
        auc=auc(scores, positive),
        threshold=threshold,
        pairs=len(positive),
        positives=positives,
    )
