"""How good decisions are where only some positives are known and nobody labelled a negative.

Accuracy and precision cannot be counted then; what can be said:

- the recall r, over held-out labelled positives, if those were labelled at random among all positives;
- the share q of the unlabelled pool that is called positive;
- r² / q, which is precision · recall / P(positive): it grows with F1² and needs no class prior, so it
  ranks methods and thresholds (Lee and Liu, "Learning with Positive and Unlabeled Examples Using
  Weighted Logistic Regression", ICML 2003, section 4);
- with the prior π, the share of positives in the pool: precision = π r / q and what follows from it, and
  AUC = (AUC of positives against unlabelled − π/2) / (1 − π) (Jain, White and Radivojac, "Recovering
  True Classifier Performance in Positive-Unlabeled Learning", AAAI 2017).

All that needs π is as wrong as π is. `excess` says when π cannot be right.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from similarity.errors import InvalidInput
from training.evaluate.ranks import auc


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlabelledQuality:
    """Measured: `recall`, `called` (share q of the pool called positive), `lee_liu` (r²/q; NaN where q is 0).

    Estimated with the prior, within 0 to 1: `precision` (NaN where q is 0), `f1`, `accuracy`, `auc`.
    `excess` is π r − q where that is above 0: more positives than decisions, so π is too high, or the
    labelled positives are easier than the pool's.
    """

    recall: float
    called: float
    lee_liu: float
    precision: float
    f1: float
    accuracy: float
    auc: float
    excess: float


def unlabelled_quality(
    positives: NDArray[np.floating], pool: NDArray[np.floating], *, threshold: float, prior: float
) -> UnlabelledQuality:
    """Measures of scores at a threshold: `positives` `[p]` of held-out labelled pairs, `pool` `[u]` of unlabelled ones.

    `prior` is the share of positives in this very pool, not in the population from which some were
    labelled and taken away.

    Raises:
        InvalidInput: either part is empty, or the prior is not between 0 and 1.
    """
    if not len(positives) or not len(pool):
        raise InvalidInput(
            f"there are {len(positives)} labelled positives and {len(pool)} unlabelled pairs; both parts are needed"
        )
    if not 0 < prior < 1:
        raise InvalidInput(f"the class prior is {prior}; give the positive share of the pool, between 0 and 1")
    recall, called = float((positives >= threshold).mean()), float((pool >= threshold).mean())
    hits = min(prior * recall, called)
    scores = np.concatenate([positives, pool])
    against_pool = auc(scores, np.arange(len(scores)) < len(positives))
    return UnlabelledQuality(
        recall=recall,
        called=called,
        lee_liu=recall**2 / called if called else float("nan"),
        precision=hits / called if called else float("nan"),
        f1=2 * hits / (prior + called),
        accuracy=float(np.clip(1 - called - prior + 2 * hits, 0, 1)),
        auc=float(np.clip((against_pool - prior / 2) / (1 - prior), 0, 1)),
        excess=max(0.0, prior * recall - called),
    )
