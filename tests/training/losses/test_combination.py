"""A combination is an interpolation."""

import pytest
import torch

from tests.training.losses.cases import tensor
from training.losses.combination import combination

pytestmark = pytest.mark.training


@pytest.mark.parametrize(("share", "expected"), [(0.3, 0.7 * 2 + 0.3 * 5), (0.0, 2.0), (1.0, 5.0)])
def test_worked_by_hand(share: float, expected: float) -> None:
    assert combination(tensor(2.0), tensor(5.0), share=share).item() == pytest.approx(expected)


def test_gradients_are_shared_out() -> None:
    pair, contrastive = tensor(2.0).requires_grad_(), tensor(5.0).requires_grad_()
    gradients = torch.autograd.grad(combination(pair, contrastive, share=0.3), (pair, contrastive))
    assert [gradient.item() for gradient in gradients] == pytest.approx([0.7, 0.3])


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        combination(tensor(1.0), tensor(1.0), share=share)
