"""Distillation of similarities: the batch's cosines against the teachers'."""

import math

import numpy as np
import pytest
import torch

from tests.training.losses.cases import (
    SEEDS,
    Floats,
    assert_finite_gradient,
    assert_right_gradient,
    cosine,
    tensor,
)
from training.losses.distillation import distillation

pytestmark = pytest.mark.training


def reference(vectors: Floats, targets: Floats, temperature: float, scale_weight: float) -> float:
    order, scale = [], []
    texts = range(len(vectors))
    for i in texts:
        others = [j for j in texts if j != i]
        student = {j: cosine(vectors[i], vectors[j]) / temperature for j in others}
        teacher = {j: targets[i, j] / temperature for j in others}
        student_sum = sum(math.exp(value) for value in student.values())
        teacher_sum = sum(math.exp(value) for value in teacher.values())
        order.append(
            -sum(math.exp(teacher[j]) / teacher_sum * math.log(math.exp(student[j]) / student_sum) for j in others)
        )
        scale += [(student[j] - teacher[j]) ** 2 for j in others]
    return float(sum(order) / len(order) + scale_weight * sum(scale) / len(scale))


def random_case(seed: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng(seed)
    texts = int(random.integers(2, 7))
    seen = random.normal(size=(texts, 5))
    unit = seen / np.linalg.norm(seen, axis=1, keepdims=True)
    return random.normal(size=(texts, 3)), unit @ unit.T


@pytest.mark.parametrize("seed", SEEDS)
def test_the_loss_equals_the_equation(seed: int) -> None:
    vectors, targets = random_case(seed)
    found = distillation(tensor(vectors), tensor(targets), temperature=0.2, scale_weight=0.3)
    assert found.item() == pytest.approx(reference(vectors, targets, 0.2, 0.3))


@pytest.mark.parametrize("scale_weight", [0.0, 0.1])
def test_a_student_with_the_teachers_cosines_has_no_gradient(scale_weight: float) -> None:
    vectors = tensor(random_case(3)[0]).requires_grad_()
    unit = torch.nn.functional.normalize(vectors.detach(), dim=1)
    [gradient] = torch.autograd.grad(distillation(vectors, unit @ unit.T, scale_weight=scale_weight), [vectors])
    assert gradient.abs().max() < 1e-9


def test_gradients_agree_with_finite_differences() -> None:
    vectors, targets = map(tensor, random_case(2))
    assert_right_gradient(lambda v: distillation(v, targets, temperature=0.5), vectors)


def test_a_low_temperature_has_finite_gradients() -> None:
    vectors, targets = map(tensor, random_case(4))
    assert_finite_gradient(lambda v: distillation(v, targets, temperature=1e-3), vectors.float())
