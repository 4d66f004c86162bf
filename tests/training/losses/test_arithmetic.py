"""Full precision for every input, and means that never divide by zero."""

import pytest
import torch

from training.losses.arithmetic import at_least_float32, cosines, inner_products, log_sum_exp_where, mean_where

pytestmark = pytest.mark.training


def test_half_precision_is_at_least_float32_and_double_precision_is_kept() -> None:
    assert at_least_float32(torch.ones(1, dtype=torch.bfloat16)).dtype == torch.float32
    assert at_least_float32(torch.ones(1, dtype=torch.float16)).dtype == torch.float32
    assert at_least_float32(torch.ones(1, dtype=torch.int64)).dtype == torch.float32
    assert at_least_float32(torch.ones(1, dtype=torch.float64)).dtype == torch.float64


def test_autocast_rounds_no_similarity() -> None:
    torch.manual_seed(0)
    left, right = torch.randn(3, 8), torch.randn(4, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (left @ right.T).dtype == torch.bfloat16  # what autocast does elsewhere
        inside = inner_products(left, right), cosines(left, right)
    assert torch.equal(inside[0], inner_products(left, right))
    assert torch.equal(inside[1], cosines(left, right))


def test_a_cosine_ignores_length() -> None:
    left = torch.tensor([[3.0, 4.0]])
    right = torch.tensor([[30.0, 40.0], [-0.4, 0.3], [7.0, 0.0]])
    torch.testing.assert_close(cosines(left, right), torch.tensor([[1.0, 0.0, 0.6]]))


def test_only_what_is_under_the_mask_is_averaged() -> None:
    values = torch.tensor([[1.0, 2.0], [3.0, float("nan")]])
    mask = torch.tensor([[True, True], [True, False]])
    assert mean_where(values, mask).item() == 2.0
    assert mean_where(values, mask, dim=0).tolist() == [2.0, 2.0]
    assert mean_where(values, mask, dim=1).tolist() == [1.5, 3.0]


def test_the_mean_of_nothing_is_0() -> None:
    values = torch.tensor([[1.0, 2.0]])
    assert mean_where(values, torch.zeros(1, 2, dtype=torch.bool)).item() == 0
    assert mean_where(values[:0], torch.zeros(0, 2, dtype=torch.bool)).item() == 0


def test_a_logarithm_of_a_sum_of_nothing_has_a_finite_gradient() -> None:
    scores = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    value = log_sum_exp_where(scores, torch.tensor([[True, False], [False, False]]))
    assert value[0].item() == pytest.approx(1.0)
    (gradient,) = torch.autograd.grad(value.sum(), scores)
    assert gradient.tolist() == [[1.0, 0.0], [0.0, 0.0]]
