"""PAUSE: cross-entropy of the labelled pairs plus an annealed positive-unlabelled risk of all pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from similarity.errors import InvalidInput
from training.losses.arithmetic import mean_where, widened
from training.losses.cross_entropy import binary_cross_entropy, cross_entropy

Correction: TypeAlias = Literal["non-negative", "clamped", "none"]
"""The treatment of a negative risk below zero: see `positive_unlabelled`."""

Supervised: TypeAlias = Literal["softmax", "binary", "none"]
"""The part on labels: classes that exclude each other, separate classes, or no such part."""

# Priors given with three decimals, such as .333 for three classes, still sum to 1.
ROUNDING = 2e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlabelledRisk:
    """The positive-unlabelled risk of a batch.

    `loss` is the scalar of eq. 10. For the log, detached and per class `[C]`: `positive` is π R_p⁺ and
    `negative` N = R_u⁻ − π R_p⁻ before any correction; both are 0 where `contributed` (bool) is false,
    that is where the batch lacks positives of the class or unlabelled rows.
    """

    loss: Tensor
    positive: Tensor
    negative: Tensor
    contributed: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseLoss:
    """`loss` = `cross_entropy` + `weight` · `risk.loss`; without a supervised part `cross_entropy` is 0."""

    loss: Tensor
    cross_entropy: Tensor
    weight: float
    risk: UnlabelledRisk


def positive_unlabelled(
    logits: Tensor, targets: Tensor, known: Tensor, *, priors: Tensor, correction: Correction = "non-negative"
) -> UnlabelledRisk:
    """PAUSE, eq. 3–10: the mean over classes of the risk that positives and unlabelled rows imply.

    With the sigmoid loss, for each class: R_p⁺ = mean σ(−f) and R_p⁻ = mean σ(f) over the rows labelled
    with it, R_u⁻ = mean σ(f) over the unlabelled rows, N = R_u⁻ − π R_p⁻. Rows labelled with another
    class enter none of the means. The risk of the class is, by `correction`:

    - "non-negative" (eq. 8): π R_p⁺ + N if N ≥ 0, else −N alone, which climbs back out of overfitting;
    - "clamped": π R_p⁺ + max(N, 0);
    - "none" (uPU): π R_p⁺ + N.

    A class without positives or without unlabelled rows in the batch contributes 0 and is still divided
    by C: a zero in place of one missing mean would push the positives down.

    Args:
        logits: `[n, C]`.
        targets: `[n, C]`, 0 or 1.
        known: `[n, C]`, bool; an entry that is not known is unlabelled.
        priors: `[C]`, share of each class among the unlabelled rows (see `check_priors`).

    Raises:
        ValueError: there is no such correction.
    """
    logits = widened(logits)
    priors = priors.to(logits)
    positive, unlabelled = known & (targets > 0.5), ~known
    says_yes, says_no = torch.sigmoid(logits), torch.sigmoid(-logits)
    positive_risk = priors * mean_where(says_no, positive, dim=0)
    negative_risk = mean_where(says_yes, unlabelled, dim=0) - priors * mean_where(says_yes, positive, dim=0)
    contributed = positive.any(dim=0) & unlabelled.any(dim=0)
    risk = _corrected(positive_risk, negative_risk, correction)
    return UnlabelledRisk(
        loss=torch.where(contributed, risk, 0).mean(),
        positive=torch.where(contributed, positive_risk, 0).detach(),
        negative=torch.where(contributed, negative_risk, 0).detach(),
        contributed=contributed,
    )


def _corrected(positive: Tensor, negative: Tensor, correction: Correction) -> Tensor:
    if correction == "non-negative":
        return torch.where(negative >= 0, positive + negative, -negative)
    if correction == "clamped":
        return positive + negative.clamp(min=0)
    if correction == "none":
        return positive + negative
    raise ValueError(f"there is no correction {correction!r}; choose one of {', '.join(get_args(Correction))}")


def annealing(progress: float, alpha: float) -> float:
    """(t/T)^α of eq. 11: `progress` is t/T, the share of all optimiser steps done with this one; α = 0 is constant 1.

    Raises:
        ValueError: the progress is not from 0 to 1, or alpha is negative.
    """
    if not 0 <= progress <= 1:
        raise ValueError(f"progress is {progress}; give step / all steps, from 0 to 1")
    if not alpha >= 0:
        raise ValueError(f"alpha is {alpha}; give 0 for a constant weight, or more (3 in the paper)")
    return float(progress**alpha)


def pause(
    logits: Tensor,
    targets: Tensor,
    known: Tensor,
    *,
    priors: Tensor,
    progress: float,
    alpha: float = 3.0,
    scale: float = 1.0,
    supervised: Supervised = "softmax",
    correction: Correction = "non-negative",
) -> PauseLoss:
    """PAUSE, eq. 11: L_CE + w · L_PU with w = scale · (t/T)^α; the paper's scale is 1.

    Which `supervised` part belongs to which data:

    - "softmax": classes that exclude each other, also two of them (priors π and 1 − π);
    - "binary": multi-label, or one logit (C = 1) where negatives are labelled too;
    - "none": only positives are labelled (C = 1). Then the loss is L_PU alone, and the weight is
      `scale` from the first step: with nothing beside it there is nothing to anneal.

    Args:
        logits: `[n, C]`.
        targets: `[n, C]`, 0 or 1.
        known: `[n, C]`, bool.
        priors: `[C]`, share of each class among the unlabelled rows.
        progress: t/T, from 0 to 1.

    Raises:
        ValueError: a setting is unknown or out of range, or the softmax has one class only.
    """
    risk = positive_unlabelled(logits, targets, known, priors=priors, correction=correction)
    supervision = _supervision(logits, targets, known, supervised)
    weight = scale * (1.0 if supervised == "none" else annealing(progress, alpha))
    return PauseLoss(loss=supervision + weight * risk.loss, cross_entropy=supervision, weight=weight, risk=risk)


def _supervision(logits: Tensor, targets: Tensor, known: Tensor, supervised: Supervised) -> Tensor:
    if supervised == "softmax":
        if logits.shape[1] < 2:
            raise ValueError(
                "a softmax over one class is always 1; use 'binary', or 'none' if there are only positives"
            )
        return cross_entropy(logits, targets, known)
    if supervised == "binary":
        return binary_cross_entropy(logits, targets, known)
    if supervised == "none":
        return widened(logits).new_zeros(())
    raise ValueError(f"there is no supervised part {supervised!r}; choose one of {', '.join(get_args(Supervised))}")


def check_priors(priors: Sequence[float], *, classes: int, single_label: bool) -> None:
    """Class priors are shares of the unlabelled rows, one for each class.

    Raises:
        InvalidInput: their number is wrong, one is not between 0 and 1, or those of several classes that
            exclude each other do not sum to 1.
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
    if single_label and classes > 1 and abs(total - 1) > ROUNDING:
        raise InvalidInput(f"the class priors sum to {total:.4g}; those of classes that exclude each other sum to 1")
