"""Losses over a table of anchors and candidates: each equals its equation, and all treat nothing and much alike."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch

from tests.training.losses.cases import (
    SEEDS,
    Floats,
    Table,
    assert_finite_gradient,
    assert_right_gradient,
    assert_zero_with_zero_gradient,
    cosine,
    random_table,
    tensor,
)
from training.losses.anchor_losses import in_batch_contrastive, sample_entries, supervised_contrastive
from training.papers.paper_losses import altered_targets, block_loss, quick_thoughts
from training.papers.sentence_batches import neighbours

pytestmark = pytest.mark.training


def equation(name: str, table: Table, **options: float) -> float:
    """The loss by its definition, anchor by anchor and candidate by candidate."""
    losses: list[float] = []
    for u, positive, negative in zip(table.anchors, table.positives, table.negatives, strict=True):
        near, far = table.candidates[positive], table.candidates[negative]
        if len(near):
            losses += EQUATIONS[name](u, near, far, **options)
    return sum(losses) / len(losses) if losses else 0.0


def in_batch_equation(u: Floats, near: Floats, far: Floats, scale: float = 20.0) -> Iterable[float]:
    """Each positive against the negatives, without the other positives; the mean of an anchor."""
    against = sum(math.exp(scale * cosine(u, v)) for v in far)
    own = [math.exp(scale * cosine(u, v)) for v in near]
    return [-sum(math.log(score / (score + against)) for score in own) / len(own)]


def supervised_equation(u: Floats, near: Floats, far: Floats, temperature: float = 1.0) -> Iterable[float]:
    """Each positive against all candidates; the mean of an anchor."""
    total = sum(math.exp(u @ v / temperature) for v in (*near, *far))
    return [-sum(math.log(math.exp(u @ v / temperature) / total) for v in near) / len(near)]


def quick_thoughts_equation(u: Floats, near: Floats, far: Floats) -> Iterable[float]:
    """Each positive against all candidates; every pair counts once."""
    total = sum(math.exp(u @ v) for v in (*near, *far))
    return [-math.log(math.exp(u @ v) / total) for v in near]


def altered_targets_equation(u: Floats, near: Floats, far: Floats) -> Iterable[float]:
    """The mean positive against all candidates."""
    return [-u @ near.mean(axis=0) + math.log(sum(math.exp(u @ v) for v in (*near, *far)))]


def block_equation(u: Floats, near: Floats, far: Floats) -> Iterable[float]:
    """The mean positive against the mean negative."""
    return [math.log(1 + math.exp(-u @ (near.mean(axis=0) - far.mean(axis=0))))] if len(far) else []


EQUATIONS: dict[str, Callable[..., Iterable[float]]] = {
    "in_batch": in_batch_equation,
    "supervised": supervised_equation,
    "quick_thoughts": quick_thoughts_equation,
    "altered_targets": altered_targets_equation,
    "block": block_equation,
}
# Anchor of one number, and candidates whose exp(u·v) is 1, 2, 3: the three sentences of a document.
LINE = [[0.0], [math.log(2)], [math.log(3)]]


def loss_named(name: str) -> Callable[..., torch.Tensor]:
    losses: dict[str, Callable[..., torch.Tensor]] = {
        "in_batch": in_batch_contrastive,
        "supervised": supervised_contrastive,
        "quick_thoughts": quick_thoughts,
        "altered_targets": altered_targets,
        "block": block_loss,
    }
    return losses[name]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("in_batch", {"scale": 20.0}),
        ("in_batch", {"scale": 1.0}),
        ("supervised", {"temperature": 1.0}),
        ("supervised", {"temperature": 0.3}),
        ("quick_thoughts", {}),
        ("altered_targets", {}),
        ("block", {}),
    ],
)
def test_the_loss_equals_its_equation(name: str, options: dict[str, float], seed: int) -> None:
    table = random_table(seed)
    loss = loss_named(name)(*table.tensors(), **options)
    assert loss.item() == pytest.approx(equation(name, table, **options))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # The sentence itself is no candidate. First: {2, 3}, neighbour 2/5; middle: {1, 3}, neighbours 1/4 and 3/4;
        # last: {1, 2}, neighbour 2/3.
        ("quick_thoughts", -(math.log(2 / 5) + math.log(1 / 4) + math.log(3 / 4) + math.log(2 / 3)) / 4),
        # The same, but each of the three sentences counts once.
        ("altered_targets", -(math.log(2 / 5) + (math.log(1 / 4) + math.log(3 / 4)) / 2 + math.log(2 / 3)) / 3),
        # The middle one has no others; first: log(1 + exp(log 3 − log 2)), last: log(1 + exp(0 − log 2)).
        ("block", (math.log(5 / 2) + math.log(3 / 2)) / 2),
    ],
)
def test_three_sentences_worked_by_hand(name: str, expected: float) -> None:
    near, others = neighbours(torch.zeros(3, dtype=torch.int64), torch.arange(3), context=1)
    loss = loss_named(name)(torch.ones(3, 1), tensor(LINE), near, others)
    assert loss.item() == pytest.approx(expected)


@pytest.mark.parametrize("name", EQUATIONS)
def test_without_a_positive_the_loss_is_0_and_in_the_graph(name: str) -> None:
    anchors, candidates, _, negatives = random_table(3).tensors()
    nothing = torch.zeros_like(negatives)
    loss = loss_named(name)
    for mask in (negatives, nothing):
        assert_zero_with_zero_gradient(lambda u, v, m=mask: loss(u, v, nothing, m), anchors, candidates)
    empty = nothing[:0, :0]
    assert_zero_with_zero_gradient(lambda u, v: loss(u, v, empty, empty), anchors[:0], candidates[:0])


@pytest.mark.parametrize("name", ["in_batch", "block"])
def test_without_a_negative_the_loss_is_0_and_in_the_graph(name: str) -> None:
    anchors, candidates, positives, negatives = random_table(1).tensors()
    masks = torch.ones_like(positives), torch.zeros_like(negatives)
    assert_zero_with_zero_gradient(lambda u, v: loss_named(name)(u, v, *masks), anchors.float(), candidates.float())


@pytest.mark.parametrize("seed", [1, 2, 4])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("in_batch", {"scale": 3.0}),
        ("supervised", {"temperature": 0.5}),
        ("quick_thoughts", {}),
        ("altered_targets", {}),
        ("block", {}),
    ],
)
def test_gradients_agree_with_finite_differences(name: str, options: dict[str, Any], seed: int) -> None:
    anchors, candidates, *masks = random_table(seed).tensors()
    assert_right_gradient(lambda u, v: loss_named(name)(u, v, *masks, **options), anchors, candidates)


@pytest.mark.parametrize(
    ("name", "size"),
    [("in_batch", 1e-6), ("in_batch", 1e12), ("supervised", 1e5), ("quick_thoughts", 1e5), ("block", 1e5)],
)
def test_tiny_and_huge_vectors_have_finite_gradients(name: str, size: float) -> None:
    anchors, candidates, *masks = random_table(4).tensors()
    assert_finite_gradient(
        lambda u, v: loss_named(name)(u, v, *masks), size * anchors.float(), size * candidates.float()
    )


def test_a_draw_keeps_at_most_n_positives_of_each_row_and_adds_none() -> None:
    mask = tensor([[True] * 6, [True, False, True, False, False, False], [False] * 6])
    drawn = sample_entries(mask, 3, torch.Generator().manual_seed(0))
    assert drawn.sum(dim=1).tolist() == [3, 2, 0]
    assert not (drawn & ~mask).any()


def test_a_draw_follows_its_generator_and_every_entry_is_equally_likely() -> None:
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
