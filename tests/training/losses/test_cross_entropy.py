"""Cross-entropy is a mean over labelled rows, divided by the number of classes."""

import numpy as np
import pytest
import torch
from torch.nn import functional

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

pytestmark = pytest.mark.training


def reference(loss: str, logits: Floats, targets: Floats, known: Bools) -> float:
    """Eq. 1, and eq. 2 with a term for y = 0, by torch's sums divided by the number of classes and labelled rows."""
    rows, f, y, k = known.any(axis=1), tensor(logits), tensor(targets), tensor(known)
    if not rows.any():
        return 0.0
    if loss == "softmax":
        total = functional.cross_entropy(f[rows], y[rows], reduction="sum")
    else:
        total = functional.binary_cross_entropy_with_logits(f[k], y[k], reduction="sum")
    return float(total.item() / (logits.shape[1] * int(rows.sum())))


def single_label_case(seed: int) -> tuple[Floats, Floats, Bools]:
    random = np.random.default_rng(seed)
    rows, classes = int(random.integers(1, 9)), int(random.integers(2, 5))
    targets = np.eye(classes)[random.integers(0, classes, size=rows)]
    labelled = random.random(rows) < (0 if seed == 0 else 0.6)
    return random.normal(size=(rows, classes)) * 3, targets, np.repeat(labelled[:, None], classes, axis=1)


def multi_label_case(seed: int) -> tuple[Floats, Floats, Bools]:
    random = np.random.default_rng(seed)
    shape = (int(random.integers(1, 9)), int(random.integers(1, 5)))
    targets = random.integers(0, 2, size=shape).astype(float)
    return random.normal(size=shape) * 3, targets, random.random(shape) < (0 if seed == 0 else 0.5)


@pytest.mark.parametrize("seed", SEEDS)
def test_softmax_equals_the_equation(seed: int) -> None:
    case = single_label_case(seed)
    assert cross_entropy(*map(tensor, case)).item() == pytest.approx(reference("softmax", *case))


@pytest.mark.parametrize("seed", SEEDS)
def test_sigmoid_equals_the_equation(seed: int) -> None:
    case = multi_label_case(seed)
    assert binary_cross_entropy(*map(tensor, case)).item() == pytest.approx(reference("sigmoid", *case))


def test_what_is_not_known_changes_nothing() -> None:
    logits, targets, known = map(tensor, multi_label_case(5))
    garbled = torch.where(known, targets, float("nan"))
    assert torch.equal(binary_cross_entropy(logits, garbled, known), binary_cross_entropy(logits, targets, known))
    logits, targets, known = map(tensor, single_label_case(5))
    garbled = torch.where(known, targets, float("nan"))
    assert torch.equal(cross_entropy(logits, garbled, known), cross_entropy(logits, targets, known))


def test_the_corrected_equation_2_punishes_a_sure_wrong_yes() -> None:
    known, no = tensor([[True]]), tensor([[0.0]])
    assert binary_cross_entropy(tensor([[1000.0]]), no, known).item() == pytest.approx(1000)
    assert binary_cross_entropy(tensor([[-1000.0]]), no, known).item() == 0


def test_without_labels_the_loss_is_0_and_in_the_graph() -> None:
    known, targets = torch.zeros(2, 3, dtype=torch.bool), torch.ones(2, 3)
    for loss in (cross_entropy, binary_cross_entropy):
        assert_zero_with_zero_gradient(lambda logits, loss=loss: loss(logits, targets, known), torch.randn(2, 3))
        assert_zero_with_zero_gradient(
            lambda logits, loss=loss: loss(logits, targets[:0], known[:0]), torch.randn(0, 3)
        )


def test_huge_logits_have_finite_gradients() -> None:
    known, targets = torch.ones(2, 2, dtype=torch.bool), torch.eye(2)
    for loss in (cross_entropy, binary_cross_entropy):
        assert_finite_gradient(
            lambda logits, loss=loss: loss(logits, targets, known), tensor([[-1e30, 1e30], [1e30, -1e30]])
        )


def test_gradients_agree_with_finite_differences() -> None:
    logits, targets, known = map(tensor, single_label_case(3))
    assert_right_gradient(lambda logits: cross_entropy(logits, targets, known), logits)
    logits, targets, known = map(tensor, multi_label_case(3))
    assert_right_gradient(lambda logits: binary_cross_entropy(logits, targets, known), logits)


def test_half_precision_logits_are_computed_in_full() -> None:
    logits, targets, known = torch.randn(5, 3).bfloat16(), torch.eye(3)[[0, 1, 2, 0, 1]], torch.ones(5, 3).bool()
    for loss in (cross_entropy, binary_cross_entropy):
        assert torch.equal(loss(logits, targets, known), loss(logits.float(), targets, known))
