"""PAUSE: cross-entropy of the labelled pairs plus an annealed positive-unlabelled (PU) risk of all pairs.

Source: Cao et al., PAUSE: Positive and Annealed Unlabeled Sentence Embedding, EMNLP 2021,
https://arxiv.org/abs/2109.03155. Equation numbers are those of this paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from similarity.errors import InvalidInput
from training.losses.arithmetic import at_least_float32, mean_where
from training.losses.cross_entropy import binary_cross_entropy, cross_entropy

Correction: TypeAlias = Literal["non-negative", "clamped", "none"]
"""How `positive_unlabelled` treats a negative risk below 0."""

Supervised: TypeAlias = Literal["softmax", "binary", "none"]
"""Loss on the labelled pairs: softmax cross-entropy (several classes), sigmoid cross-entropy (one class), or none."""

# Priors may be rounded to three decimals (3 × .333), so their sum may differ from 1 by this much.
PRIOR_SUM_TOLERANCE = 2e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class PositiveUnlabelledRisk:
    """The positive-unlabelled risk of a batch (`loss`, eq. 10).

    `contributed` (bool `[C]`) is false for a class that has no positives or no unlabelled rows in the batch.
    """

    loss: Tensor
    contributed: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseLoss:
    """`loss` = `cross_entropy` + `weight` · `risk.loss`; `cross_entropy` is 0 if `supervised` is "none"."""

    loss: Tensor
    cross_entropy: Tensor
    weight: float
    risk: PositiveUnlabelledRisk


def positive_unlabelled(
    logits: Tensor, targets: Tensor, known: Tensor, *, priors: Tensor, correction: Correction = "non-negative"
) -> PositiveUnlabelledRisk:
    """Mean over classes of the risk estimated from positive and unlabelled rows (eq. 3–10).

    The loss is the sigmoid loss ℓ(a, b) = σ(−ab). For each class, R_p⁺ = mean σ(−f) and R_p⁻ = mean σ(f) over the rows
    labelled with the class, R_u⁻ = mean σ(f) over the unlabelled rows, and N = R_u⁻ − π R_p⁻. Rows labelled with
    another class are in none of the means. `correction` selects the risk of the class:

    - "non-negative" (eq. 8): π R_p⁺ + N if N ≥ 0, otherwise −N. Minimising −N increases N until it is no longer
      negative, which counteracts overfitting (after nnPU: Kiryo et al., NeurIPS 2017);
    - "clamped": π R_p⁺ + max(N, 0);
    - "none" (uPU): π R_p⁺ + N.

    If a class has no positives or no unlabelled rows in the batch, its risk is 0; the mean is still over all C
    classes. Without unlabelled rows, minimising −N = π R_p⁻ would lower the logits of the positives; without
    positives, R_u⁻ alone would treat every unlabelled row as a negative.

    Args:
        logits: `[n, C]`.
        targets: `[n, C]`, 0 or 1.
        known: `[n, C]`, bool; an entry that is not known is unlabelled.
        priors: `[C]`, share of each class among the unlabelled rows (see `check_priors`).

    >>> logits, known = torch.zeros(2, 1), torch.tensor([[True], [False]])
    >>> positive_unlabelled(logits, torch.ones(2, 1), known, priors=torch.tensor([0.2])).loss.item()  # .2/2 + .8/2
    0.5
    """
    logits = at_least_float32(logits)
    priors = priors.to(logits)
    positive, unlabelled = known & (targets > 0.5), ~known
    loss_as_negative, loss_as_positive = torch.sigmoid(logits), torch.sigmoid(-logits)
    positive_risk = priors * mean_where(loss_as_positive, positive, dim=0)
    negative_risk = mean_where(loss_as_negative, unlabelled, dim=0) - priors * mean_where(
        loss_as_negative, positive, dim=0
    )
    contributed = positive.any(dim=0) & unlabelled.any(dim=0)
    risk = _corrected(positive_risk, negative_risk, correction)
    return PositiveUnlabelledRisk(loss=torch.where(contributed, risk, 0).mean(), contributed=contributed)


def _corrected(positive: Tensor, negative: Tensor, correction: Correction) -> Tensor:
    if correction == "non-negative":
        return torch.where(negative >= 0, positive + negative, -negative)
    if correction == "clamped":
        return positive + negative.clamp(min=0)
    return positive + negative


def annealing(progress: float, alpha: float) -> float:
    """Return the annealing weight (t/T)^α of eq. 11; `progress` is t/T: step t (from 1) of T optimiser steps.

    If α = 0, the weight is always 1.

    >>> annealing(0.5, 3)
    0.125
    """
    return float(progress**alpha)


def pause(
    logits: Tensor,
    targets: Tensor,
    known: Tensor,
    *,
    priors: Tensor,
    progress: float,
    alpha: float = 3.0,
    max_weight: float = 1.0,
    supervised: Supervised = "softmax",
    correction: Correction = "non-negative",
) -> PauseLoss:
    """Return L_CE + w · L_PU with w = max_weight · (t/T)^α (eq. 11; in the paper max_weight is 1).

    Choose `supervised` by the labels:

    - "softmax": mutually exclusive classes, two or more (for two the priors are π and 1 − π);
    - "binary": one logit (C = 1) with labelled negatives;
    - "none": only positives are labelled (C = 1). Then the loss is max_weight · L_PU at every step. The weight is not
      annealed, because there is no supervised loss to balance.

    Args:
        logits: `[n, C]`.
        targets: `[n, C]`, 0 or 1.
        known: `[n, C]`, bool.
        priors: `[C]`, share of each class among the unlabelled rows.
        progress: t/T, from 0 to 1.

    >>> known = torch.tensor([[True, True], [False, False]])
    >>> targets, priors = torch.tensor([[1, 0], [0, 0]]), torch.tensor([0.2, 0.8])
    >>> value = pause(torch.zeros(2, 2), targets, known, priors=priors, progress=0.5)
    >>> round(value.cross_entropy.item(), 4), value.weight, value.risk.contributed.tolist()
    (0.3466, 0.125, [True, False])
    """
    risk = positive_unlabelled(logits, targets, known, priors=priors, correction=correction)
    supervision = _supervision(logits, targets, known, supervised)
    weight = max_weight * (1.0 if supervised == "none" else annealing(progress, alpha))
    return PauseLoss(loss=supervision + weight * risk.loss, cross_entropy=supervision, weight=weight, risk=risk)


def _supervision(logits: Tensor, targets: Tensor, known: Tensor, supervised: Supervised) -> Tensor:
    if supervised == "none":
        return at_least_float32(logits).new_zeros(())
    loss = cross_entropy if supervised == "softmax" else binary_cross_entropy
    return loss(logits, targets, known)


def check_priors(priors: Sequence[float], *, classes: int) -> None:
    """Check the class priors; a prior is the share of its class among the unlabelled rows.

    Raises:
        InvalidInput: their number is not that of the classes, one is not between 0 and 1, or those of several
            mutually exclusive classes do not sum to 1.

    >>> check_priors([0.2, 0.8], classes=2)
    """
    if len(priors) != classes:
        raise InvalidInput(f"{len(priors)} class priors for {classes} classes; give one for each class")
    for number, prior in enumerate(priors):
        if not 0 < prior < 1:
            raise InvalidInput(
                f"the prior of class {number} is {prior}; give the share of the class among the unlabelled pairs, "
                "above 0 and below 1"
            )
    total = sum(priors)
    if classes > 1 and abs(total - 1) > PRIOR_SUM_TOLERANCE:
        raise InvalidInput(
            f"the class priors sum to {total:.4g}; the priors of mutually exclusive classes must sum to 1"
        )
