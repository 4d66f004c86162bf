"""Classification of pairs as in PAUSE's Table 5: grade 2 against the rest; accuracy, precision and recall.

There are two classifiers. The pair head predicts the class with the higher logit, averaged over both orders of the
pair, because being a competitor is symmetric. The cosine, which the search uses, is compared with a threshold that is
chosen on the selection split, never on the evaluated pairs.
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

    `threshold` is for the score: a cosine or, for the head, the log-odds of the positive class.
    """

    accuracy: float
    precision: float
    recall: float
    f1: float
    auc: float
    threshold: float
    pairs: int


def cosine_quality(cosines: Floats, positive: Flags, threshold: float) -> PairQuality:
    """Return the quality of predicting competitors at a cosine of `threshold` or more (see `best_threshold`)."""
    return _quality(cosines >= threshold, cosines, positive, threshold)


def head_quality(logits: Floats, swapped: Floats, positive: Flags) -> PairQuality:
    """Return the quality of the pair head, which predicts the class with the higher logit, averaged over both orders.

    `logits` and `swapped` are `[n, C]`, of the pairs and of the pairs with their sides swapped. The first class is the
    competitor's; if it is the only one (C = 1), a pair with a logit above 0 is predicted to be a competitor.
    """
    mean = (logits.astype(np.float64) + swapped) / 2
    odds = mean[:, 0] - mean[:, 1:].sum(axis=1)
    return _quality(odds > 0, odds, positive, 0.0)


def best_threshold(scores: Floats, positive: Flags) -> float:
    """Return the threshold of highest accuracy on the selection split, `scores` and `positive` `[n]`.

    It lies halfway between two scores, at the lowest score, or just above the highest. Of equally good thresholds, the
    highest is returned.

    Raises:
        InvalidInput: there is no positive or no other pair.
    """
    if not positive.any() or positive.all():
        raise InvalidInput("a threshold needs pairs of both kinds; choose it on a split with competitors and others")
    values, place = np.unique(scores.astype(np.float64), return_inverse=True)
    middles = (values[1:] + values[:-1]) / 2
    # Entry i: pairs from the i-th lowest score up are predicted positive. The last entry: no pair is.
    thresholds = [values[0], *np.where(middles > values[:-1], middles, values[1:]), np.nextafter(values[-1], np.inf)]
    # Raising the threshold past a score loses its positives and gains its negatives.
    gained = np.bincount(place, weights=np.where(positive, -1, 1))
    correct = positive.sum() + np.concatenate([[0], np.cumsum(gained)])
    return float(thresholds[np.flatnonzero(correct == correct.max())[-1]])


def _quality(called: Flags, scores: Floats, positive: Flags, threshold: float) -> PairQuality:
    hits, claims, positives = int((called & positive).sum()), int(called.sum()), int(positive.sum())
    return PairQuality(
        accuracy=float((called == positive).mean()),
        precision=hits / claims if claims else float("nan"),
        recall=hits / positives if positives else float("nan"),
        f1=2 * hits / (claims + positives) if claims + positives else float("nan"),
        auc=auc(scores, positive),
        threshold=threshold,
        pairs=len(positive),
    )
