"""In-batch contrastive: scaled cosines, one positive at a time."""

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
    cosine,
    random_table,
    tensor,
)

with suppress(ModuleNotFoundError):  # without torch these tests are only counted
    import torch

    from training.losses.in_batch import in_batch_contrastive

pytestmark = pytest.mark.training


def reference(table: Table, scale: float) -> float:
    losses = []
    for i, u in enumerate(table.anchors):
        score = [math.exp(scale * cosine(u, v)) for v in table.candidates]
        against = sum(value for j, value in enumerate(score) if table.negatives[i, j])
        own = [-math.log(value / (value + against)) for j, value in enumerate(score) if table.positives[i, j]]
        if own:
            losses.append(sum(own) / len(own))
    return sum(losses) / len(losses) if losses else 0.0


def test_worked_by_hand() -> None:
    # Cosines 1, 1/2 (positives), 0 (negative) and −1 (neither) at scale log 9: exp gives 9, 3, 1.
    # The other positive is not in the denominator: −½ (log 9/10 + log 3/4)
    anchors = tensor([[2.0, 0.0]])
    candidates = tensor([[1.0, 0.0], [1.0, math.sqrt(3)], [0.0, 3.0], [-1.0, 0.0]])
    positives, negatives = tensor([[True, True, False, False]]), tensor([[False, False, True, False]])
    loss = in_batch_contrastive(anchors, candidates, positives, negatives, scale=math.log(9))
    assert loss.item() == pytest.approx(-(math.log(0.9) + math.log(0.75)) / 2)


@pytest.mark.parametrize("scale", [20.0, 1.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_loss_equals_the_equation(seed: int, scale: float) -> None:
    table = random_table(seed)
    assert in_batch_contrastive(*table.tensors(), scale=scale).item() == pytest.approx(reference(table, scale))


def test_with_one_positive_each_it_is_torchs_cross_entropy() -> None:
    torch.manual_seed(0)
    anchors, candidates = torch.randn(5, 8), torch.randn(5, 8)
    positives = torch.eye(5, dtype=torch.bool)
    scores = 20 * torch.nn.functional.cosine_similarity(anchors[:, None], candidates[None], dim=2)
    expected = torch.nn.functional.cross_entropy(scores, torch.arange(5))
    loss = in_batch_contrastive(anchors, candidates, positives, ~positives)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_candidates_in_no_mask_change_nothing() -> None:
    anchors, candidates, positives, negatives = random_table(7).tensors()
    masks = [torch.cat([mask, torch.zeros(len(mask), 1).bool()], dim=1) for mask in (positives, negatives)]
    more = torch.cat([candidates, anchors[:1]])
    one = in_batch_contrastive(anchors, candidates, positives, negatives)
    assert in_batch_contrastive(anchors, more, *masks).item() == pytest.approx(one.item())


def test_a_positive_with_nothing_against_it_costs_nothing() -> None:
    anchors, candidates, positives, negatives = random_table(1).tensors()
    assert_zero_with_zero_gradient(
        lambda u, v: in_batch_contrastive(u, v, torch.ones_like(positives), torch.zeros_like(negatives)),
        anchors.float(),
        candidates.float(),
    )


def test_without_a_positive_the_loss_is_0_and_in_the_graph() -> None:
    anchors, candidates, _, negatives = random_table(3).tensors()
    nothing = torch.zeros_like(negatives)
    for mask in (negatives, nothing):
        assert_zero_with_zero_gradient(lambda u, v, m=mask: in_batch_contrastive(u, v, nothing, m), anchors, candidates)


def test_the_order_of_anchors_changes_nothing() -> None:
    anchors, candidates, positives, negatives = random_table(10).tensors()
    order = torch.arange(len(anchors)).flip(0)
    shuffled = in_batch_contrastive(anchors[order], candidates, positives[order], negatives[order])
    assert shuffled.item() == pytest.approx(in_batch_contrastive(anchors, candidates, positives, negatives).item())


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_gradients_agree_with_finite_differences(seed: int) -> None:
    anchors, candidates, *masks = random_table(seed).tensors()
    assert_right_gradient(lambda u, v: in_batch_contrastive(u, v, *masks, scale=3.0), anchors, candidates)


def test_tiny_and_huge_vectors_have_finite_gradients() -> None:
    anchors, candidates, *masks = random_table(4).tensors()
    for size in (1e-6, 1e12):
        assert_finite_gradient(
            lambda u, v: in_batch_contrastive(u, v, *masks), size * anchors.float(), size * candidates.float()
        )
