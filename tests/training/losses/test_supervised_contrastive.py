"""Supervised contrastive: un-normalised products, all positives in the denominator."""

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

    from training.losses.supervised_contrastive import sample_entries, supervised_contrastive

pytestmark = pytest.mark.training


def reference(table: Table, temperature: float) -> float:
    losses = []
    for i, u in enumerate(table.anchors):
        if not table.positives[i].any():
            continue
        score = {j: math.exp(u @ v / temperature) for j, v in enumerate(table.candidates)}
        total = sum(value for j, value in score.items() if table.positives[i, j] or table.negatives[i, j])
        shares = [math.log(value / total) for j, value in score.items() if table.positives[i, j]]
        losses.append(-sum(shares) / len(shares))
    return sum(losses) / len(losses) if losses else 0.0


def test_worked_by_hand() -> None:
    anchors, candidates = tensor([[1.0], [5.0]]), tensor([[math.log(2)], [math.log(3)], [0.0], [9.0]])
    positives = tensor([[True, True, False, False], [False] * 4])
    negatives = tensor([[False, False, True, False], [True] * 4])
    # exp(u·v) is 2 and 3 for the positives, 1 for the negative; the fourth is neither, the second anchor has
    # no positive: −½ (log 2/6 + log 3/6) = ½ log 6
    loss = supervised_contrastive(anchors, candidates, positives, negatives, temperature=1.0)
    assert loss.item() == pytest.approx(math.log(6) / 2)
    half = supervised_contrastive(anchors, candidates / 2, positives, negatives, temperature=0.5)
    assert half.item() == pytest.approx(math.log(6) / 2)


@pytest.mark.parametrize("temperature", [1.0, 0.3])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_loss_equals_the_equation(seed: int, temperature: float) -> None:
    table = random_table(seed)
    loss = supervised_contrastive(*table.tensors(), temperature=temperature)
    assert loss.item() == pytest.approx(reference(table, temperature))


def test_longer_vectors_change_the_loss() -> None:
    anchors, candidates, *masks = random_table(2).tensors()
    one = supervised_contrastive(anchors, candidates, *masks, temperature=1.0)
    assert one.item() != pytest.approx(supervised_contrastive(2 * anchors, candidates, *masks, temperature=1.0).item())


def test_the_order_of_candidates_changes_nothing() -> None:
    anchors, candidates, positives, negatives = random_table(6).tensors()
    order = torch.arange(len(candidates)).flip(0)
    shuffled = supervised_contrastive(anchors, candidates[order], positives[:, order], negatives[:, order])
    assert shuffled.item() == pytest.approx(supervised_contrastive(anchors, candidates, positives, negatives).item())


def test_without_a_positive_the_loss_is_0_and_in_the_graph() -> None:
    anchors, candidates, _, negatives = random_table(3).tensors()
    nothing = torch.zeros_like(negatives)
    for mask in (negatives, nothing):
        assert_zero_with_zero_gradient(
            lambda u, v, m=mask: supervised_contrastive(u, v, nothing, m), anchors, candidates
        )
    assert_zero_with_zero_gradient(
        lambda u, v: supervised_contrastive(u, v, nothing[:0, :0], nothing[:0, :0]), anchors[:0], candidates[:0]
    )


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_gradients_agree_with_finite_differences(seed: int) -> None:
    anchors, candidates, *masks = random_table(seed).tensors()
    assert_right_gradient(lambda u, v: supervised_contrastive(u, v, *masks, temperature=0.5), anchors, candidates)


def test_long_vectors_have_finite_gradients() -> None:
    anchors, candidates, *masks = random_table(4).tensors()
    assert_finite_gradient(
        lambda u, v: supervised_contrastive(u, v, *masks, temperature=0.1),
        1e4 * anchors.float(),
        1e4 * candidates.float(),
    )


def test_a_draw_keeps_so_many_of_each_row_and_invents_none() -> None:
    mask = tensor([[True] * 6, [True, False, True, False, False, False], [False] * 6])
    drawn = sample_entries(mask, 3, torch.Generator().manual_seed(0))
    assert drawn.sum(dim=1).tolist() == [3, 2, 0]
    assert not (drawn & ~mask).any()


def test_a_draw_is_the_generators_and_every_entry_has_its_chance() -> None:
    mask = torch.ones(1, 4, dtype=torch.bool)
    assert torch.equal(
        sample_entries(mask, 1, torch.Generator().manual_seed(7)),
        sample_entries(mask, 1, torch.Generator().manual_seed(7)),
    )
    generator = torch.Generator().manual_seed(0)
    counts = sum(sample_entries(mask, 1, generator).long() for _ in range(400))
    # 100 expected, standard deviation 8.7
    assert counts.min() > 60
    assert counts.max() < 140


def test_a_draw_of_all_leaves_mask_and_generator_alone() -> None:
    mask, generator = random_table(5).tensors()[2], torch.Generator().manual_seed(0)
    before = generator.get_state()
    assert sample_entries(mask, None, generator) is mask
    assert torch.equal(before, generator.get_state())
    assert sample_entries(mask[:, :0], 3, generator).shape == (len(mask), 0)
