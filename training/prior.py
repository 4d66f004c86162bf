"""The class prior: the share of competitors among the unlabelled pairs.

    python -m training.prior --pairs FILE [FILE ...] [--companies FILE] [--bundle models/<id>]
        [--known SHARE]

PAUSE needs it. If pairs were selected at random for labelling, training uses the shares of the labels. If competitors
were selected for labelling, these shares are biased, and the prior is estimated from the cosines of labelled
competitors and of unlabelled pairs: the probability that a pair is labelled is modelled as c · σ(a + b · cosine), and
c, a and b are fitted together by maximum likelihood (the "joint" method of Teisseyre, Mielniczuk and Łazęcka,
"Different strategies of fitting logistic regression for positive and unlabelled data", ICCS 2020). With p labelled
competitors and u unlabelled pairs, the prior of the pool is p (1 − c) / (u c).

The estimate assumes that (1) the labelled competitors are a random sample of all competitors, and (2) the share of
competitors is a logistic function of the cosine. The data cannot show whether this is true, and the interval does not
include this uncertainty. See decision 11 in docs/decisions/README.md.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from similarity.bundle import ModelBundle, seed_folder
from similarity.encoder import TextEncoder
from similarity.errors import InvalidInput
from training.console import refusing, say
from training.data.labels import COMPETITOR_CLASSES
from training.data.pairs import Pairs, read_pairs
from training.options import SEVERAL

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.int64]

MIN_PAIRS = 30
CELLS = 400
RESAMPLES = 200
INTERVAL = (0.025, 0.975)
# An interval wider than this determines little more than the order of magnitude.
WIDE = 0.2
BOUNDS = ((-12.0, 12.0), (-40.0, 40.0), (0.0, 40.0))  # bounds of the logit of c, of a and of b


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorEstimate:
    """The share of competitors in the pool, with the 95 % bootstrap interval over anchors (0 to 1 for one anchor)."""

    prior: float
    lower: float
    upper: float


def estimate_prior(
    scores: NDArray[np.floating], positive: Flags, *, anchors: Integers, seed: int, resamples: int = RESAMPLES
) -> PriorEstimate:
    """Return the share of competitors among the pairs that are not `positive`, estimated from their scores (cosines).

    `scores`, `positive` and `anchors` are `[n]`, of the labelled competitors and the unlabelled pairs, without the
    labelled negatives. The pairs of one anchor are resampled together.

    Raises:
        InvalidInput: there are too few pairs of either kind, or the mean score of labelled competitors is not higher
            than the mean score of the pool.
    """
    if positive.sum() < MIN_PAIRS or (~positive).sum() < MIN_PAIRS:
        raise InvalidInput(
            f"{int(positive.sum())} labelled competitors and {int((~positive).sum())} unlabelled pairs are too few to "
            f"estimate a prior from (at least {MIN_PAIRS} each); label 100 pairs drawn at random instead"
        )
    if not scores[positive].mean() > scores[~positive].mean():
        raise InvalidInput(
            "labelled competitors have no higher cosines than the unlabelled pairs, so they give no estimate; "
            "label 100 pairs drawn at random and use their shares"
        )
    cell, centres = score_cells(scores)

    def fitted(weights: Floats) -> float:
        positives, unlabelled = (
            np.bincount(cell[mask], weights[mask], minlength=CELLS).astype(np.float64) for mask in (positive, ~positive)
        )
        return fit(centres, positives, unlabelled)

    _, anchor = np.unique(anchors, return_inverse=True)
    random = np.random.default_rng(seed)
    prior = fitted(np.ones(len(scores)))
    drawn = []
    for _ in range(resamples):
        picked = np.bincount(random.integers(anchor.max() + 1, size=anchor.max() + 1), minlength=anchor.max() + 1)
        weights = picked[anchor].astype(np.float64)
        if weights[positive].any() and weights[~positive].any():
            drawn.append(fitted(weights))
    # All resamples of one anchor are equal, which says nothing about the uncertainty.
    lower, upper = np.quantile(drawn, INTERVAL) if drawn and anchor.max() > 0 else (0.0, 1.0)
    return PriorEstimate(prior=prior, lower=float(lower), upper=float(upper))


def fit(scores: Floats, positives: Floats, unlabelled: Floats) -> float:
    """Return the maximum-likelihood prior of the pool.

    `positives` and `unlabelled` `[cells]` are the numbers of labelled competitors and of unlabelled pairs in each cell
    of a histogram, `scores` `[cells]` its standardised centres.
    """
    optima = [
        minimize(
            likelihood_loss,
            [logit, -1.0, 1.0],
            args=(scores, positives, unlabelled),
            jac=True,
            method="L-BFGS-B",
            bounds=BOUNDS,
        )
        for logit in (-2.0, 0.0, 2.0)  # the likelihood may have several local maxima
    ]
    best = min(optima, key=lambda each: float(each.fun))
    # (1 - c) / c of c = sigmoid(x) is exp(-x).
    return float(min(positives.sum() / unlabelled.sum() * np.exp(-best.x[0]), 1.0))


def likelihood_loss(values: Floats, scores: Floats, positives: Floats, unlabelled: Floats) -> tuple[float, Floats]:
    """Return the mean negative log-likelihood of (logit of c, a, b), and its gradient."""
    total = positives.sum() + unlabelled.sum()
    c = expit(values[0])
    sigmoid = expit(values[1] + values[2] * scores)
    probability = np.clip(c * sigmoid, 1e-12, 1 - 1e-12)
    loss = -(positives * np.log(probability) + unlabelled * np.log1p(-probability)).sum() / total
    # Derivatives of the loss with respect to the probability, and to a + b * score.
    d_probability = (unlabelled / (1 - probability) - positives / probability) / total
    d_linear = d_probability * c * sigmoid * (1 - sigmoid)
    gradient = [(d_probability * sigmoid).sum() * c * (1 - c), d_linear.sum(), (d_linear * scores).sum()]
    return float(loss), np.array(gradient)


def score_cells(scores: NDArray[np.floating]) -> tuple[Integers, Floats]:
    """Return the histogram cell of each score, and the standardised centres of the cells."""
    values = scores.astype(np.float64)
    edges = np.linspace(values.min(), values.max(), CELLS + 1)
    cell = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, CELLS - 1)
    middles = (edges[1:] + edges[:-1]) / 2
    return cell.astype(np.int64), (middles - values.mean()) / values.std()


def pool_prior(prior: float, *, positives: int, negatives: int, unlabelled: int) -> float:
    """Return the share of competitors in the unlabelled pool; `prior` is their share in all pairs before labelling.

    If only competitors were labelled, a share s of them, this is (π − πs) / (1 − πs) for the prior π.

    Raises:
        InvalidInput: by the prior, no competitor or no other company is left in the unlabelled pool.
    """
    total = positives + negatives + unlabelled
    left = prior * total - positives
    if not 0 < left < unlabelled:
        raise InvalidInput(
            f"the share {prior} of {total:,} pairs leaves {left:,.0f} competitors for {unlabelled:,} unlabelled pairs: "
            f"it must be between {positives / total:.4f} and {(positives + unlabelled) / total:.4f} (--known)"
        )
    return left / unlabelled


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the prior with its interval, and the option to pass to training.train."""
    parser = argparse.ArgumentParser(description="Estimate the share of competitors among the unlabelled pairs.")
    parser.add_argument("--pairs", type=Path, **SEVERAL, required=True, help="files of pairs, read as one")
    parser.add_argument("--companies", type=Path, help="JSONL file of the companies that the pairs name")
    parser.add_argument("--bundle", type=Path, help="folder of the encoder's bundle (default: the one that ships)")
    parser.add_argument("--known", type=float, help="share of competitors among all pairs before labelling, if known")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap resamples (default: 0)")
    options = parser.parse_args(arguments)
    with refusing():
        _report(options)


def _report(options: argparse.Namespace) -> None:
    encoder = TextEncoder(ModelBundle.load(options.bundle or seed_folder()))
    pairs = read_pairs(options.pairs, companies=options.companies, text_settings=encoder.text_settings)
    positive, negative, pool = label_masks(pairs)
    positives, negatives, unlabelled = (int(mask.sum()) for mask in (positive, negative, pool))
    say(
        f"{len(pairs):,} pairs: {positives:,} labelled competitors, {negatives:,} labelled others, "
        f"{unlabelled:,} unlabelled"
    )
    share = "share of competitors among the unlabelled pairs"
    if options.known is not None:
        known = pool_prior(options.known, positives=positives, negatives=negatives, unlabelled=unlabelled)
        say(f"{share}: {known:.3g}\n{priors_option(known, pairs)}")
        return
    used = np.flatnonzero(positive | pool)
    vectors = encoder.encode(pairs.texts)
    cosines = np.einsum("nd,nd->n", vectors[pairs.left[used]], vectors[pairs.right[used]])
    found = estimate_prior(cosines, positive[used], anchors=pairs.left[used], seed=options.seed)
    say(f"{share}: {found.prior:.3g} ({found.lower:.3g} to {found.upper:.3g})")
    if not 1 <= found.prior * unlabelled <= unlabelled - 1:  # all or none of the pool: the fit has reached a bound
        raise InvalidInput(
            "the cosines do not determine the prior; label 100 pairs drawn at random and use their shares"
        )
    if found.upper - found.lower > WIDE:
        say("The interval is wide; labelling 100 pairs drawn at random gives a better estimate.")
    elif found.upper > 1 - WIDE:
        say("The estimate is unusually high; check it with the labels of 100 pairs drawn at random.")
    if negatives:
        say(
            "If pairs were selected at random for labelling, omit --priors: training uses the share of the labels, "
            f"{positives / (positives + negatives):.3f}.\nIf competitors were selected for labelling, train with"
        )
    say(priors_option(found.prior, pairs))


def label_masks(pairs: Pairs) -> tuple[Flags, Flags, Flags]:
    """Return masks (labelled competitors, labelled others, unlabelled), each bool `[n]`.

    Raises:
        InvalidInput: these are no competitor pairs, or none is unlabelled.
    """
    if not set(pairs.classes) <= set(COMPETITOR_CLASSES):
        raise InvalidInput(
            f"the prior is estimated for competitors, not for the classes {', '.join(pairs.classes)}; label pairs "
            "drawn at random and use their shares"
        )
    positive = pairs.known[:, 0] & (pairs.targets[:, 0] > 0)
    pool = ~pairs.labelled
    if not pool.any():
        raise InvalidInput("no pair is unlabelled, so there is no prior to estimate; see python -m training.generate")
    return positive, pairs.labelled & ~positive, pool


def priors_option(prior: float, pairs: Pairs) -> str:
    """Return the option for training: one prior, or one for each of two classes, which sum to 1."""
    values = [prior] if len(pairs.classes) == 1 else [prior, 1 - prior]
    return "  --priors " + " ".join(map(_share_text, values))


def _share_text(share: float) -> str:
    """Return the share as text, with three significant digits of it or of its complement; it never becomes 0 or 1."""
    return f"{share:.3g}" if share <= 0.5 else f"{1 - float(f'{1 - share:.3g}'):.9g}"


if __name__ == "__main__":
    main()
