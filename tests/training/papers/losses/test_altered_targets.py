"""Altered targets: the mean neighbour against all candidates, each sentence once."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest

from tests.training.losses.cases import (
    SEEDS,
    Table,
    assert_right_gradient,
    assert_zero_with_zero_gradient,
    random_table,
    tensor,
)

with suppress(ModuleNotFoundError):  # without torch these tests are only counted
    import torch

    from training.papers.losses.altered_targets import altered_targets
    from training.papers.losses.quick_thoughts import quick_thoughts
    from training.papers.neighbours import neighbours

pytestmark = pytest.mark.training


def reference(table: Table) -> float:
    losses = []
    for i, u in enumerate(table.anchors):
        if table.positives[i].any():
            candidates = table.candidates[table.positives[i] | table.negatives[i]]
            mean_neighbour = table.candidates[table.positives[i]].mean(axis=0)
            losses.append(-u @ mean_neighbour + math.log(sum(math.exp(u @ g) for g in candidates)))
    return sum(losses) / len(losses) if losses else 0.0


def test_worked_by_hand() -> None:
    # As in test_quick_thoughts, but each of the three sentences counts once.
    left, right = torch.ones(3, 1), tensor([[0.0], [math.log(2)], [math.log(3)]])
    near = neighbours(torch.zeros(3, dtype=torch.int64), torch.arange(3), context=1)
    expected = -(math.log(2 / 5) + (math.log(1 / 4) + math.log(3 / 4)) / 2 + math.log(2 / 3)) / 3
    assert altered_targets(left, right, near.positives, near.negatives).item() == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_loss_equals_the_equation(seed: int) -> None:
    table = random_table(seed)
    assert altered_targets(*table.tensors()).item() == pytest.approx(reference(table))


def test_with_one_neighbour_each_it_is_quick_thoughts() -> None:
    torch.manual_seed(0)
    left, right = torch.randn(6, 4), torch.randn(6, 4)
    near = neighbours(torch.arange(6) // 2, torch.arange(6) % 2, context=1)
    assert near.positives.sum(dim=1).tolist() == [1] * 6
    one = altered_targets(left, right, near.positives, near.negatives)
    assert one.item() == pytest.approx(quick_thoughts(left, right, near.positives, near.negatives).item())


def test_without_neighbours_the_loss_is_0_and_in_the_graph() -> None:
    left, right, _, negatives = random_table(3).tensors()
    nothing = torch.zeros_like(negatives)
    for mask in (negatives, nothing):
        assert_zero_with_zero_gradient(lambda u, g, m=mask: altered_targets(u, g, nothing, m), left, right)


def test_gradients_agree_with_finite_differences() -> None:
    left, right, *masks = random_table(2).tensors()
    assert_right_gradient(lambda u, g: altered_targets(u, g, *masks), left, right)
