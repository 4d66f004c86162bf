"""The block loss compares two mean vectors."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest

from tests.training.losses.cases import (
    SEEDS,
    Table,
    assert_finite_gradient,
    assert_right_gradient,
    assert_zero_with_zero_gradient,
    random_table,
    tensor,
)

with suppress(ModuleNotFoundError):  # without torch these tests are only counted
    import torch

    from training.papers.losses.block import block_loss
    from training.papers.neighbours import neighbours

pytestmark = pytest.mark.training


def reference(table: Table) -> float:
    losses = []
    for i, u in enumerate(table.anchors):
        if table.positives[i].any() and table.negatives[i].any():
            near = table.candidates[table.positives[i]].mean(axis=0)
            far = table.candidates[table.negatives[i]].mean(axis=0)
            losses.append(math.log(1 + math.exp(-u @ (near - far))))
    return sum(losses) / len(losses) if losses else 0.0


def test_worked_by_hand() -> None:
    # Three sentences in a row, context 1, u·g = 0, log 2, log 3. The middle one has no others.
    # first: log(1 + exp(log 3 − log 2)) = log 5/2; last: log(1 + exp(0 − log 2)) = log 3/2
    left, right = torch.ones(3, 1), tensor([[0.0], [math.log(2)], [math.log(3)]])
    near = neighbours(torch.zeros(3, dtype=torch.int64), torch.arange(3), context=1)
    expected = (math.log(5 / 2) + math.log(3 / 2)) / 2
    assert block_loss(left, right, near.positives, near.negatives).item() == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_loss_equals_the_equation(seed: int) -> None:
    table = random_table(seed)
    assert block_loss(*table.tensors()).item() == pytest.approx(reference(table))


def test_without_both_blocks_the_loss_is_0_and_in_the_graph() -> None:
    left, right, positives, negatives = random_table(3).tensors()
    nothing = torch.zeros_like(negatives)
    for masks in ((positives, nothing), (nothing, negatives), (nothing, nothing)):
        assert_zero_with_zero_gradient(lambda u, g, m=masks: block_loss(u, g, *m), left, right)


def test_gradients_agree_with_finite_differences() -> None:
    left, right, *masks = random_table(2).tensors()
    assert_right_gradient(lambda u, g: block_loss(u, g, *masks), left, right)


def test_long_vectors_have_finite_gradients() -> None:
    left, right, *masks = random_table(4).tensors()
    assert_finite_gradient(lambda u, g: block_loss(u, g, *masks), 1e5 * left.float(), 1e5 * right.float())
