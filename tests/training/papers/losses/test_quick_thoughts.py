"""QuickThoughts finds the neighbours of a sentence among all others."""

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

    from training.papers.losses.quick_thoughts import quick_thoughts
    from training.papers.neighbours import neighbours

pytestmark = pytest.mark.training


def reference(table: Table) -> float:
    surprises = []
    for i, u in enumerate(table.anchors):
        score = [math.exp(u @ g) for g in table.candidates]
        total = sum(value for j, value in enumerate(score) if table.positives[i, j] or table.negatives[i, j])
        surprises += [-math.log(value / total) for j, value in enumerate(score) if table.positives[i, j]]
    return sum(surprises) / len(surprises) if surprises else 0.0


def test_worked_by_hand() -> None:
    # Three sentences in a row, context 1; exp(u·g) is 1, 2, 3 for them, and the sentence itself is no candidate:
    # first: {2, 3}, neighbour 2/5; middle: {1, 3}, neighbours 1/4 and 3/4; last: {1, 2}, neighbour 2/3
    left, right = torch.ones(3, 1), tensor([[0.0], [math.log(2)], [math.log(3)]])
    near = neighbours(torch.zeros(3, dtype=torch.int64), torch.arange(3), context=1)
    expected = -(math.log(2 / 5) + math.log(1 / 4) + math.log(3 / 4) + math.log(2 / 3)) / 4
    assert quick_thoughts(left, right, near.positives, near.negatives).item() == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_loss_equals_the_equation(seed: int) -> None:
    table = random_table(seed)
    assert quick_thoughts(*table.tensors()).item() == pytest.approx(reference(table))


def test_the_sentence_itself_changes_nothing() -> None:
    torch.manual_seed(0)
    left, right = torch.randn(4, 3), torch.randn(4, 3)
    near = neighbours(tensor([0, 0, 1, 1]), tensor([0, 1, 0, 1]), context=1)
    one = quick_thoughts(left[:1], right, near.positives[:1], near.negatives[:1])
    right[0] += 100  # the first sentence as a candidate
    assert torch.equal(one, quick_thoughts(left[:1], right, near.positives[:1], near.negatives[:1]))


def test_without_neighbours_the_loss_is_0_and_in_the_graph() -> None:
    near = neighbours(torch.arange(3), torch.zeros(3, dtype=torch.int64), context=4)
    vectors = torch.randn(3, 2)
    assert_zero_with_zero_gradient(lambda u, g: quick_thoughts(u, g, near.positives, near.negatives), vectors, vectors)


def test_gradients_agree_with_finite_differences() -> None:
    left, right, *masks = random_table(2).tensors()
    assert_right_gradient(lambda u, g: quick_thoughts(u, g, *masks), left, right)


def test_long_vectors_have_finite_gradients() -> None:
    left, right, *masks = random_table(4).tensors()
    assert_finite_gradient(lambda u, g: quick_thoughts(u, g, *masks), 1e5 * left.float(), 1e5 * right.float())
