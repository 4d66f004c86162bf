"""PAUSE by its equations, with our corrections: rows of other classes, empty parts, annealing."""

import math

import numpy as np
import pytest
import torch

from similarity.errors import InvalidInput
from tests.training.losses.cases import (
    SEEDS,
    Bools,
    Floats,
    assert_finite_gradient,
    assert_right_gradient,
    assert_zero_with_zero_gradient,
    tensor,
)
from training.losses.cross_entropy import binary_cross_entropy, cross_entropy
from training.losses.pause import Correction, annealing, check_priors, pause, positive_unlabelled

pytestmark = pytest.mark.training

CORRECTIONS: tuple[Correction, ...] = ("non-negative", "clamped", "none")
LN3, LN9 = math.log(3), math.log(9)


def sigmoid_loss(a: float, b: int) -> float:
    """ℓ(a, b) = 1 / (1 + exp(ab)), without overflow."""
    return 1 / (1 + math.exp(min(a * b, 700)))


def reference(logits: Floats, targets: Floats, known: Bools, priors: Floats, correction: str) -> float:
    """Eq. 8–10, class by class and row by row."""
    rows, classes = logits.shape
    total = 0.0
    for c in range(classes):
        positives = [logits[i, c] for i in range(rows) if known[i, c] and targets[i, c] == 1]
        unlabelled = [logits[i, c] for i in range(rows) if not known[i, c]]
        if not positives or not unlabelled:
            continue
        positive_risk = sum(sigmoid_loss(f, +1) for f in positives) / len(positives)
        taken_for_negative = sum(sigmoid_loss(f, -1) for f in positives) / len(positives)
        negative_risk = sum(sigmoid_loss(f, -1) for f in unlabelled) / len(unlabelled) - priors[c] * taken_for_negative
        if correction == "non-negative":
            # The printed form: an indicator times the positive risk, plus a maximum.
            total += (negative_risk >= 0) * priors[c] * positive_risk + max(negative_risk, -negative_risk)
        elif correction == "clamped":
            total += priors[c] * positive_risk + max(negative_risk, 0)
        else:
            total += priors[c] * positive_risk + negative_risk
    return float(total / classes)


def random_case(seed: int) -> tuple[Floats, Floats, Bools, Floats]:
    """Single-label for even seeds, multi-label with single known entries for odd ones."""
    random = np.random.default_rng(seed)
    rows, classes = int(random.integers(1, 12)), int(random.integers(1, 5))
    logits = random.normal(size=(rows, classes)) * 3 - 2
    if seed % 2 == 0:
        targets = np.eye(classes)[random.integers(0, classes, size=rows)]
        known = np.repeat(random.random((rows, 1)) < 0.5, classes, axis=1)
    else:
        targets = random.integers(0, 2, size=(rows, classes)).astype(float)
        known = random.random((rows, classes)) < 0.5
    return logits, targets, known, random.uniform(0.1, 0.9, size=classes)


def one_class(positives: list[float], unlabelled: list[float]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    logits = tensor([*positives, *unlabelled])[:, None]
    known = tensor([True] * len(positives) + [False] * len(unlabelled))[:, None]
    return logits, known.float(), known


@pytest.mark.parametrize(("correction", "expected"), [("non-negative", 0.275), ("clamped", 0.125), ("none", -0.15)])
def test_a_negative_risk_below_zero_worked_by_hand(correction: Correction, expected: float) -> None:
    # σ(f) is 3/4 for the positive, 1/10 for the unlabelled: π R_p⁺ = 1/8, N = 1/10 − 1/2 · 3/4 = −.275
    risk = positive_unlabelled(*one_class([LN3], [-LN9]), priors=tensor([0.5]), correction=correction)
    assert risk.loss.item() == pytest.approx(expected)


def test_a_negative_risk_of_exactly_zero_keeps_the_positive_part() -> None:
    # σ(−1000) is 0, so N = 0 and R = π R_p⁺ = π
    risk = positive_unlabelled(*one_class([-1000.0], [-1000.0]), priors=tensor([0.3]))
    assert risk.loss.item() == pytest.approx(0.3)


def test_below_zero_only_the_reversed_negative_risk_has_a_gradient() -> None:
    logits, targets, known = one_class([LN3], [-LN9])
    logits.requires_grad_()
    loss = positive_unlabelled(logits, targets, known, priors=tensor([0.5])).loss
    (gradient,) = torch.autograd.grad(loss, logits)
    # −N = π σ(f_p) − σ(f_u); σ' = σ(1 − σ): ½ · 3/16 for the positive, −9/100 for the unlabelled
    assert gradient.flatten().tolist() == pytest.approx([3 / 32, -0.09])


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_risk_equals_the_equations(seed: int, correction: Correction) -> None:
    logits, targets, known, priors = random_case(seed)
    risk = positive_unlabelled(*map(tensor, (logits, targets, known)), priors=tensor(priors), correction=correction)
    assert risk.loss.item() == pytest.approx(reference(logits, targets, known, priors, correction))


def test_a_class_without_positives_contributes_nothing_and_is_still_divided_by() -> None:
    logits, targets, known = one_class([LN3], [0.0, LN3])
    two = torch.cat([logits, torch.full_like(logits, 5.0)], dim=1)
    targets = torch.cat([targets, torch.zeros_like(targets)], dim=1)
    risk = positive_unlabelled(two, targets, known.expand(3, 2), priors=tensor([0.25, 0.75]))
    assert risk.loss.item() == pytest.approx(1 / 2 / 2)
    assert risk.contributed.tolist() == [True, False]


def test_all_unlabelled_or_all_labelled_is_0_and_in_the_graph() -> None:
    priors, targets = tensor([0.2, 0.3, 0.5]), torch.eye(3)
    for known in (torch.zeros(3, 3).bool(), torch.ones(3, 3).bool()):
        assert_zero_with_zero_gradient(
            lambda logits, known=known: positive_unlabelled(logits, targets, known, priors=priors).loss,
            torch.randn(3, 3),
        )
    assert_zero_with_zero_gradient(
        lambda logits: positive_unlabelled(logits, targets[:0], targets[:0].bool(), priors=priors).loss,
        torch.randn(0, 3),
    )


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_gradients_agree_with_finite_differences(correction: Correction) -> None:
    for seed in (2, 3):
        logits, targets, known, priors = map(tensor, random_case(seed))
        assert_right_gradient(
            lambda logits, t=targets, k=known, p=priors: (
                positive_unlabelled(logits, t, k, priors=p, correction=correction).loss
            ),
            logits,
        )


def test_huge_logits_have_finite_gradients() -> None:
    targets, known = torch.eye(2)[[0, 1, 0, 1]], tensor([[True, True]] * 2 + [[False, False]] * 2)
    logits = tensor([[1e30, -1e30], [-1e30, 1e30], [1e30, 1e30], [-1e30, 0.0]])
    assert_finite_gradient(
        lambda logits: pause(logits, targets, known, priors=tensor([0.2, 0.8]), progress=1.0).loss, logits
    )


def test_the_weight_is_an_eighth_at_half_time_and_1_at_the_end() -> None:
    assert annealing(0.5, 3) == 0.125
    assert annealing(1.0, 3) == 1.0
    assert annealing(0.794, 3) == pytest.approx(0.5, abs=1e-3)  # no early stop before this
    assert annealing(1 / 1000, 0) == 1.0


@pytest.mark.parametrize(
    ("progress", "alpha", "max_weight", "weight"), [(0.5, 3, 1, 0.125), (0.5, 0, 1, 1), (0.5, 2, 8, 2)]
)
def test_the_loss_is_cross_entropy_plus_the_weighted_risk(
    progress: float, alpha: float, max_weight: float, weight: float
) -> None:
    logits, targets, known, priors = map(tensor, random_case(4))
    assert logits.shape[1] > 1
    whole = pause(logits, targets, known, priors=priors, progress=progress, alpha=alpha, max_weight=max_weight)
    supervision = cross_entropy(logits, targets, known)
    risk = positive_unlabelled(logits, targets, known, priors=priors).loss
    assert whole.weight == weight
    assert torch.equal(whole.cross_entropy, supervision)
    assert torch.equal(whole.loss, supervision + weight * risk)


def test_one_class_with_negatives_takes_binary_cross_entropy() -> None:
    logits = tensor([[LN3], [0.0], [0.0], [LN3]])
    targets, known = tensor([[1.0], [0.0], [0.0], [0.0]]), tensor([[True], [True], [False], [False]])
    whole = pause(logits, targets, known, priors=tensor([0.25]), progress=0.5, supervised="binary")
    # The labelled negative is in the cross-entropy, (.287682 + .693147) / 2, and not in the risk, 1/2 as above.
    assert whole.cross_entropy.item() == pytest.approx(0.490415, abs=1e-6)
    assert whole.risk.loss.item() == pytest.approx(0.5)
    assert whole.loss.item() == pytest.approx(0.490415 + 0.125 * 0.5, abs=1e-6)
    assert torch.equal(whole.cross_entropy, binary_cross_entropy(logits, targets, known))


def test_positives_only_are_learned_from_by_the_risk_alone_without_annealing() -> None:
    batch = one_class([LN3], [0.0, LN3])
    for progress in (0.001, 1.0):
        whole = pause(*batch, priors=tensor([0.25]), progress=progress, supervised="none")
        assert whole.loss.item() == pytest.approx(0.5)
        assert whole.weight == 1
        assert whole.cross_entropy.item() == 0


def test_half_precision_logits_are_computed_in_full() -> None:
    logits, targets, known, priors = map(tensor, random_case(4))
    half = pause(logits.bfloat16(), targets, known, priors=priors, progress=1.0).loss
    assert half.dtype == torch.float32
    full = pause(logits.bfloat16().float(), targets.float(), known, priors=priors.float(), progress=1.0).loss
    torch.testing.assert_close(half, full)


@pytest.mark.parametrize(("priors", "classes"), [((0.2,), 1), ((0.2, 0.8), 2), ((0.333, 0.333, 0.333), 3)])
def test_priors_that_are_shares_are_accepted(priors: tuple[float, ...], classes: int) -> None:
    check_priors(priors, classes=classes)


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ((0.5,), "1 class priors for 2 classes"),
        ((0.0, 1.0), "prior of class 0 is 0.0"),
        ((0.2, 1.2), "prior of class 1 is 1.2"),
        ((float("nan"), 0.5), "prior of class 0 is nan"),
        ((0.2, 0.7), "sum to 0.9;"),
    ],
)
def test_priors_that_cannot_be_are_refused(priors: tuple[float, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        check_priors(priors, classes=2)
