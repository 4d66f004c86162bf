"""STS regression: the cosine against a fifth of the score."""

import numpy as np
import pytest
import torch

from tests.training.losses.cases import (
    SEEDS,
    assert_finite_gradient,
    assert_right_gradient,
    assert_zero_with_zero_gradient,
    cosine,
    tensor,
)
from training.papers.paper_losses import sts_regression

pytestmark = pytest.mark.training


@pytest.mark.parametrize("seed", SEEDS)
def test_the_loss_equals_the_equation(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, 6))
    left, right, scores = random.normal(size=(rows, 3)), random.normal(size=(rows, 3)), random.uniform(0, 5, size=rows)
    expected = sum((cosine(u, v) - s / 5) ** 2 for u, v, s in zip(left, right, scores, strict=True)) / rows
    assert sts_regression(*map(tensor, (left, right, scores))).item() == pytest.approx(expected)


def test_without_pairs_the_loss_is_0_and_in_the_graph() -> None:
    assert_zero_with_zero_gradient(
        lambda u, v: sts_regression(u, v, torch.zeros(0)), torch.zeros(0, 3), torch.zeros(0, 3)
    )


def test_gradients_agree_with_finite_differences() -> None:
    torch.manual_seed(0)
    left, right = torch.randn(4, 3), torch.randn(4, 3)
    scores = tensor([0.0, 1.5, 3.0, 5.0])
    assert_right_gradient(lambda u, v: sts_regression(u, v, scores), left, right)
    assert_finite_gradient(lambda u, v: sts_regression(1e12 * u, 1e-6 * v, scores), left, right)
