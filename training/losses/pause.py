"""PAUSE loss: cross-entropy of the labelled pairs plus an annealed positive-unlabelled (PU) risk of all pairs.

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
"""How `positive_unlabelled` treats an estimated risk of the negatives that is below 0."""

Supervised: TypeAlias = Literal["softmax", "binary", "none"]
"""Loss on the labelled pairs: softmax cross-entropy (several classes), sigmoid cross-entropy (one class), or none."""

PRIOR_SUM_TOLERANCE = 2e-3
"""The allowed difference of the sum of the priors from 1, because they may be rounded to three decimals (3 × .333)."""


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
    """Return the mean over classes of the risk that is estimated from positive and unlabelled rows (eq. 3–10).

    A row is one pair, f its logit for a class, π the prior of the class. The sigmoid loss is ℓ(a, b) = σ(−ab). The
    estimates for each class are

        R_p⁺ = mean σ(−f) over the rows labelled with the class: the risk of the positives as positives
        R_p⁻ = mean σ(f) over the same rows: the risk of the positives as negatives
        R_u⁻ = mean σ(f) over the unlabelled rows: the risk of the unlabelled rows as negatives
        N = R_u⁻ − π R_p⁻: the risk of the negatives

    Rows labelled with another class are in none of the means. `correction` selects the risk of the class:

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
        known: `[n, C]`, bool: true for labelled entries, false for unlabelled ones.
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


def _corrected(positive_risk: Tensor, negative_risk: Tensor, correction: Correction) -> Tensor:
    """Return the corrected risk of each class, `[C]`; see `positive_unlabelled`."""
    if correction == "non-negative":
        return torch.where(negative_risk >= 0, positive_risk + negative_risk, -negative_risk)
    if correction == "clamped":
        return positive_risk + negative_risk.clamp(min=0)
    return positive_risk + negative_risk


def annealing(progress: float, alpha: float) -> float:
    """Return the annealing weight (t/T)^α of eq. 11; if α = 0, it is always 1.

    `progress`: t/T, where t is the optimiser step (from 1) and T the number of all steps.

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
    """Return the loss L_CE + w · L_PU with w = max_weight · (t/T)^α (eq. 11; in the paper max_weight is 1).

    `supervised` selects L_CE and must fit the labels:

    - "softmax": for two or more mutually exclusive classes. The priors of two classes are π and 1 − π;
    - "binary": for one class (C = 1) with labelled negatives;
    - "none": for one class (C = 1) without labelled negatives. The loss is max_weight · L_PU at every step. The weight
      is not annealed, because there is no supervised loss to balance.

    Args:
        logits: `[n, C]`.
        targets: `[n, C]`, 0 or 1.
        known: `[n, C]`, bool: true for labelled entries.
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
    """Return L_CE, the loss on the labelled pairs; 0 if `supervised` is "none"."""
    if supervised == "none":
        return at_least_float32(logits).new_zeros(())
    loss = cross_entropy if supervised == "softmax" else binary_cross_entropy
    return loss(logits, targets, known)


def check_priors(priors: Sequence[float], *, classes: int) -> None:
    """Check the priors of the classes; a prior is the share of its class among the unlabelled rows.

    Raises:
        InvalidInput: there is not one prior for each class, a prior is not between 0 and 1, or the priors of several
            classes do not sum to 1.

    >>> check_priors([0.2, 0.8], classes=2)
    """
    if len(priors) != classes:
        raise InvalidInput(f"{len(priors)} class priors for {classes} classes; give one prior for each class")
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
