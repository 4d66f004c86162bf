"""Distillation: cosines follow a teacher, in order or in value."""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
import pytest

from tests.training.losses.cases import (
    SEEDS,
    Bools,
    Floats,
    Table,
    assert_finite_gradient,
    assert_right_gradient,
    assert_zero_with_zero_gradient,
    cosine,
    random_table,
    tensor,
)

with suppress(ModuleNotFoundError):  # without torch these tests are only counted
    import torch

    from training.losses.distil import distil_ranking, distil_scores

pytestmark = pytest.mark.training

# Cosines 1, 1/2 and −1 at a temperature of 1 / log 9: exp gives 9, 3, 1/9.
ANCHOR = [[1.0, 0.0]]
CANDIDATES = [[1.0, 0.0], [1.0, math.sqrt(3)], [-1.0, 0.0]]
TEMPERATURE = 1 / math.log(9)


def ranking_reference(
    table: Table, teacher: Floats, scored: Bools, temperature: float, teacher_temperature: float
) -> float:
    losses = []
    for i, u in enumerate(table.anchors):
        listed = [j for j in range(len(table.candidates)) if scored[i, j]]
        if len(listed) < 2:
            continue
        wanted = [math.exp(teacher[i, j] / teacher_temperature) for j in listed]
        got = [math.exp(cosine(u, table.candidates[j]) / temperature) for j in listed]
        losses.append(
            sum(
                p / sum(wanted) * math.log((p / sum(wanted)) / (q / sum(got))) for p, q in zip(wanted, got, strict=True)
            )
        )
    return sum(losses) / len(losses) if losses else 0.0


def random_teacher(seed: int) -> tuple[Table, Floats, Bools]:
    table = random_table(seed)
    teacher = np.random.default_rng(seed).normal(size=table.positives.shape)
    return table, teacher, table.positives | table.negatives


def test_a_ranking_worked_by_hand() -> None:
    # The teacher finds both equal: p = ½, ½; the student q = 9/12, 3/12; the third is not scored.
    # ½ log(½ / ¾) + ½ log(½ / ¼) = ½ log 4/3
    loss = distil_ranking(
        tensor(ANCHOR),
        tensor(CANDIDATES),
        tensor([[2.0, 2.0, float("nan")]]),
        tensor([[True, True, False]]),
        temperature=TEMPERATURE,
    )
    assert loss.item() == pytest.approx(math.log(4 / 3) / 2)


def test_scores_worked_by_hand() -> None:
    # Cosines 1 and ½ against ½ and ½: (¼ + 0) / 2
    loss = distil_scores(
        tensor(ANCHOR), tensor(CANDIDATES), tensor([[0.5, 0.5, float("nan")]]), tensor([[True, True, False]])
    )
    assert loss.item() == pytest.approx(0.125)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_ranking_equals_the_equation(seed: int) -> None:
    table, teacher, scored = random_teacher(seed)
    inputs = (tensor(table.anchors), tensor(table.candidates), tensor(teacher), tensor(scored))
    loss = distil_ranking(*inputs, temperature=0.2, teacher_temperature=0.5)
    assert loss.item() == pytest.approx(ranking_reference(table, teacher, scored, 0.2, 0.5))


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_equal_the_equation(seed: int) -> None:
    table, teacher, scored = random_teacher(seed)
    squares = [
        (cosine(table.anchors[i], table.candidates[j]) - teacher[i, j]) ** 2
        for i, j in zip(*scored.nonzero(), strict=True)
    ]
    loss = distil_scores(tensor(table.anchors), tensor(table.candidates), tensor(teacher), tensor(scored))
    assert loss.item() == pytest.approx(np.mean(squares) if squares else 0)


def test_a_student_that_agrees_with_its_teacher_has_nothing_to_learn() -> None:
    scored = torch.ones(1, 3, dtype=torch.bool)
    loss = distil_ranking(
        tensor(ANCHOR), tensor(CANDIDATES), tensor([[1.0, 0.5, -1.0]]), scored, temperature=0.1, teacher_temperature=0.1
    )
    assert loss.item() == pytest.approx(0, abs=1e-6)


def test_the_teacher_gets_no_gradient() -> None:
    anchors, teacher = tensor(ANCHOR).requires_grad_(), tensor([[0.3, 0.2, 0.1]]).requires_grad_()
    scored = torch.ones(1, 3, dtype=torch.bool)
    for loss in (distil_ranking, distil_scores):
        value = loss(anchors, tensor(CANDIDATES), teacher, scored)
        assert torch.autograd.grad(value, (anchors, teacher), allow_unused=True)[1] is None


def test_without_scores_the_loss_is_0_and_in_the_graph() -> None:
    teacher, nothing = torch.ones(1, 3), torch.zeros(1, 3, dtype=torch.bool)
    one = tensor([[True, False, False]])
    vectors = tensor(ANCHOR), tensor(CANDIDATES)
    assert_zero_with_zero_gradient(lambda u, v: distil_scores(u, v, teacher, nothing), *vectors)
    for scored in (nothing, one):  # with one candidate there is nothing to order
        assert_zero_with_zero_gradient(lambda u, v, s=scored: distil_ranking(u, v, teacher, s), *vectors)


def test_gradients_agree_with_finite_differences() -> None:
    table, teacher, scored = random_teacher(2)
    vectors = tensor(table.anchors), tensor(table.candidates)
    fixed = tensor(teacher), tensor(scored)
    assert_right_gradient(lambda u, v: distil_ranking(u, v, *fixed, temperature=0.5), *vectors)
    assert_right_gradient(lambda u, v: distil_scores(u, v, *fixed), *vectors)
    assert_finite_gradient(lambda u, v: distil_ranking(u, v, 1e6 * fixed[0], fixed[1], temperature=1e-4), *vectors)
