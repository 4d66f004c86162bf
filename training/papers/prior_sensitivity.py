"""Plots how much the choice of the class prior matters, before anything is trained for hours.

    python -m training.papers.prior_sensitivity --pairs FILE [FILE ...] [--companies FILE] [--bundle models/<id>]
        --plot FILE.png [--labelled FILE]

For each assumed prior a linear classifier on the encoder's frozen vectors is fitted with the non-negative
positive-unlabelled risk (the one that PAUSE adds), on four fifths of the anchors. On the others it is judged by
r²/q, which needs no prior (r is the recall, q the share of the pool that is called positive: Lee and Liu, ICML
2003), and by its accuracy where there are pairs labelled both ways. The misfit of the prior to the cosines stands
beside it.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from similarity.bundle import ModelBundle, seed_folder
from similarity.encoder import TextEncoder
from training.console import refusing, say
from training.data.pairs import Pairs, read_pairs
from training.evaluate.plots import COLOURS, save
from training.losses.pause import positive_unlabelled
from training.prior import (
    BOUNDS,
    LOGITS,
    Counts,
    Flags,
    Integers,
    PriorEstimate,
    counts_in_cells,
    estimate_of_pairs,
    likelihood_loss,
    parts,
    score_cells,
)

Floats: TypeAlias = NDArray[np.float64]
Vectors: TypeAlias = NDArray[np.float32]

PRIORS = tuple(round(0.05 * step, 2) for step in range(1, 13))
MOST_PAIRS = 4_000
STEPS, LEARNING_RATE = 150, 0.02
HELD_OUT = 0.2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Examples:
    """Pairs labelled both ways: their features float32 `[m, f]`, and whether they are competitors, bool `[m]`."""

    features: Vectors
    positive: Flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """By assumed prior: `misfit` (0 is the best of them), `lee_liu` (NaN where nothing is called positive), `accuracy`.

    `accuracy` is empty where no pairs were labelled both ways.
    """

    priors: tuple[float, ...]
    misfit: tuple[float, ...]
    lee_liu: tuple[float, ...]
    accuracy: tuple[float, ...]


def pair_features(vectors: Vectors, left: Integers, right: Integers) -> Vectors:
    """The cosine, |u - v| and u * v of pairs of unit vectors, float32 `[n, 2 d + 1]`."""
    one, other = vectors[left], vectors[right]
    product = one * other
    found: Vectors = np.concatenate([product.sum(axis=1, keepdims=True), np.abs(one - other), product], axis=1)
    return found


def labelled_examples(
    path: Path | None, pairs: Pairs, encoder: TextEncoder, *, companies: Path | None
) -> Examples | None:
    """The labelled pairs of a file, without those whose anchor is one of `pairs`; None of no file."""
    if path is None:
        return None
    found = read_pairs(path, companies=companies, text_settings=encoder.text_settings)
    anchors = set(pairs.anchors)
    found = found.subset(found.labelled & np.array([found.ids[left] not in anchors for left in found.left], dtype=bool))
    features = pair_features(encoder.encode(found.texts), found.left, found.right)
    return Examples(features=features, positive=found.targets[:, 0] > 0)


def sensitivity(
    pairs: Pairs,
    vectors: Vectors,
    estimate: PriorEstimate,
    *,
    check: Examples | None,
    seed: int,
    priors: Sequence[float] = PRIORS,
) -> Sensitivity:
    """Fits and judges one classifier for each prior. `vectors` are those of the texts of `pairs`, unit rows."""
    positive, _, pool = parts(pairs)
    random = np.random.default_rng(seed)
    used = np.flatnonzero(positive | pool)
    cosines = np.einsum("nd,nd->n", vectors[pairs.left[used]], vectors[pairs.right[used]])
    counts = score_counts(cosines, positive[used])
    best = misfit(counts, min(max(estimate.prior, 1e-4), 1 - 1e-4))
    anchors = random.permutation(np.unique(pairs.left[used]))
    outside = np.isin(pairs.left[used], anchors[: max(1, round(HELD_OUT * len(anchors)))])
    inside, judged = _some(used[~outside], positive, random), used[outside]
    features = pair_features(vectors, pairs.left[inside], pairs.right[inside])
    mean, spread = features.mean(axis=0), features.std(axis=0) + 1e-6
    shown = (pair_features(vectors, pairs.left[judged], pairs.right[judged]) - mean) / spread
    lee_liu, accuracy = [], []
    for prior in priors:
        weights, bias = linear_classifier((features - mean) / spread, positive[inside], prior=prior)
        scores = shown @ weights + bias
        recall, called = ((scores[rows] >= 0).mean() for rows in (positive[judged], pool[judged]))
        lee_liu.append(float(recall**2 / called) if called else float("nan"))
        if check is not None:
            called = (check.features - mean) / spread @ weights + bias >= 0
            accuracy.append(float((called == check.positive).mean()))
    return Sensitivity(
        priors=tuple(priors),
        misfit=tuple(max(0.0, misfit(counts, prior) - best) for prior in priors),
        lee_liu=tuple(lee_liu),
        accuracy=tuple(accuracy),
    )


def linear_classifier(features: Vectors, positive: Flags, *, prior: float) -> tuple[Vectors, float]:
    """Weights `[f]` and bias of least non-negative risk, of standardised features; all but `positive` is the pool."""
    rows = torch.from_numpy(features)
    targets = torch.from_numpy(positive)[:, None]
    layer = torch.nn.Linear(rows.shape[1], 1)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimiser = torch.optim.AdamW(layer.parameters(), lr=LEARNING_RATE / rows.shape[1] ** 0.5, weight_decay=1.0)
    for _ in range(STEPS):
        optimiser.zero_grad()
        risk = positive_unlabelled(layer(rows), targets.float(), targets, priors=torch.tensor([prior]))
        risk.loss.backward()
        optimiser.step()
    return layer.weight.detach().numpy()[0], float(layer.bias.detach())


def plot_sensitivity(curve: Sensitivity, estimate: PriorEstimate, picture: Path) -> None:
    """Draws the measures by assumed prior; the estimate is a line, its interval a band."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(curve.priors, curve.misfit, color=COLOURS[0], marker="o")
    above.axhline(3.84, color="0.6", linestyle="--", linewidth=1)
    above.annotate("95 %, were pairs independent", (curve.priors[-1], 3.84), ha="right", va="bottom", color="0.4")
    above.set(ylabel="misfit to the cosines", ylim=(0, max(8.0, 1.1 * min(max(curve.misfit), 60.0))))
    below.plot(curve.priors, curve.lee_liu, color=COLOURS[1], marker="s", label="r²/q on held-out anchors")
    below.set(xlabel="assumed share of competitors in the pool", ylabel="r²/q")
    if curve.accuracy:
        second = below.twinx()
        second.plot(curve.priors, curve.accuracy, color=COLOURS[2], marker="^", label="accuracy on labelled pairs")
        second.set_ylabel("accuracy")
        second.legend(frameon=False, loc="lower right")
    below.legend(frameon=False, loc="lower left")
    for axes in (above, below):
        axes.axvspan(estimate.lower, estimate.upper, color="0.9", zorder=0)
        axes.axvline(estimate.prior, color="0.4", linewidth=1)
        axes.spines["top"].set_visible(False)
    above.set_title(f"estimate {estimate.prior:.3f} ({estimate.lower:.3f} to {estimate.upper:.3f})")
    save(figure, picture)


def _some(rows: Integers, positive: Flags, random: np.random.Generator) -> Integers:
    """At most MOST_PAIRS pairs, labelled competitors and pool in their proportion."""
    if len(rows) <= MOST_PAIRS:
        return rows
    share = MOST_PAIRS / len(rows)
    kinds = [rows[positive[rows]], rows[~positive[rows]]]
    return np.concatenate([random.choice(kind, max(1, round(share * len(kind))), replace=False) for kind in kinds])


def misfit(counts: Counts, prior: float) -> float:
    """Minus twice the log-likelihood of the best curve for this prior; its excess over the lowest is chi-squared."""
    from scipy.optimize import minimize

    logit = float(np.clip(np.log(counts.positives.sum() / (counts.unlabelled.sum() * prior)), *LOGITS))
    found = minimize(
        lambda values: _without_first(likelihood_loss(np.array([logit, *values]), counts)),
        [-1.0, 1.0],
        jac=True,
        method="L-BFGS-B",
        bounds=BOUNDS[1:],
    )
    return float(2 * found.fun * (counts.positives.sum() + counts.unlabelled.sum()))


def _without_first(loss: tuple[float, Floats]) -> tuple[float, Floats]:
    return loss[0], loss[1][1:]


def score_counts(scores: NDArray[np.floating], positive: Flags) -> Counts:
    """Labelled competitors and unlabelled pairs by score; `scores` and `positive` are `[n]`."""
    cell, centres = score_cells(scores)
    return counts_in_cells(centres, cell, positive, np.ones(len(scores)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Estimate the prior, and plot how other priors would fit."""
    parser = argparse.ArgumentParser(description="Plot how much the choice of the class prior matters.")
    add = parser.add_argument
    add("--pairs", type=Path, nargs="+", required=True, help="files of pairs, read as one")
    add("--companies", type=Path, help="JSONL file of the companies that the pairs name")
    add("--bundle", type=Path, help="folder of the encoder's bundle (default: the one that ships)")
    add("--plot", type=Path, required=True, help="PNG file to write")
    add("--labelled", type=Path, help="pairs of other anchors, labelled both ways, for the accuracy")
    add("--seed", type=int, default=0, help="of the resamples (default: 0)")
    options = parser.parse_args(arguments)
    with refusing():
        encoder = TextEncoder(ModelBundle.load(options.bundle or seed_folder()))
        pairs = read_pairs(options.pairs, companies=options.companies, text_settings=encoder.text_settings)
        vectors = encoder.encode(pairs.texts)
        estimate = estimate_of_pairs(pairs, vectors, seed=options.seed)
        check = labelled_examples(options.labelled, pairs, encoder, companies=options.companies)
        curve = sensitivity(pairs, vectors, estimate, check=check, seed=options.seed)
        plot_sensitivity(curve, estimate, options.plot)
        say(f"plot: {options.plot}")


if __name__ == "__main__":
    main()
