"""Cross-entropy is a mean over labelled rows, divided by the number of classes."""

import math

import numpy as np
import pytest
import torch

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


def softmax_reference(logits: Floats, targets: Floats, known: Bools) -> float:
    """Eq. 1, entry by entry."""
    total, rows, classes = 0.0, 0, logits.shape[1]
    for f, y, k in zip(logits, targets, known, strict=True):
        if not k.any():
            continue
        rows += 1
        top = max(f)
        normaliser = top + math.log(sum(math.exp(value - top) for value in f))
        for c in range(classes):
            if y[c] == 1:
                total -= f[c] - normaliser
    return total / (classes * rows) if rows else 0.0


def binary_reference(logits: Floats, targets: Floats, known: Bools) -> float:
    """Eq. 2 with a term for y = 0, entry by entry."""
    total, rows, classes = 0.0, 0, logits.shape[1]
    for f, y, k in zip(logits, targets, known, strict=True):
        rows += bool(k.any())
        for c in range(classes):
            if k[c]:
                probability = 1 / (1 + math.exp(-f[c]))
                total -= y[c] * math.log(probability) + (1 - y[c]) * math.log(1 - probability)
    return total / (classes * rows) if rows else 0.0


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


def test_softmax_worked_by_hand() -> None:
    logits = tensor([[0.0, math.log(3)], [0.0, 0.0], [5.0, -5.0]])
    targets = tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    known = tensor([[True, True], [True, True], [False, False]])
    # softmax of the first row is 1/4, 3/4; of the second 1/2, 1/2; the third has no label.
    # (−log 3/4 − log 1/2) / (2 classes · 2 rows) = (.287682 + .693147) / 4
    assert cross_entropy(logits, targets, known).item() == pytest.approx(0.245207, abs=1e-6)


def test_sigmoid_worked_by_hand() -> None:
    logits, targets = tensor([[math.log(3), 0.0]]), tensor([[1.0, 0.0]])
    # σ is 3/4 and 1/2: (−log 3/4 − log(1 − 1/2)) / (2 classes · 1 row) = (.287682 + .693147) / 2
    assert binary_cross_entropy(logits, targets, tensor([[True, True]])).item() == pytest.approx(0.490415, abs=1e-6)
    # The second entry is not known: .287682 / 2
    assert binary_cross_entropy(logits, targets, tensor([[True, False]])).item() == pytest.approx(0.143841, abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_softmax_equals_the_equation(seed: int) -> None:
    case = single_label_case(seed)
    assert cross_entropy(*map(tensor, case)).item() == pytest.approx(softmax_reference(*case))


@pytest.mark.parametrize("seed", SEEDS)
def test_sigmoid_equals_the_equation(seed: int) -> None:
    case = multi_label_case(seed)
    assert binary_cross_entropy(*map(tensor, case)).item() == pytest.approx(binary_reference(*case))


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
