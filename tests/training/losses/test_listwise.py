"""Graded listwise and puNCE: the softmax over an anchor's list against its gains."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.training.losses.cases import (
    SEEDS,
    Bools,
    Floats,
    assert_finite_gradient,
    assert_right_gradient,
    assert_zero_with_zero_gradient,
    cosine,
    random_table,
    tensor,
)
from training.config import TrainSettings
from training.data.pairs import read_pairs
from training.losses.anchor_losses import graded_listwise
from training.losses.methods import LossInputs, objective_of

pytestmark = pytest.mark.training

# Cosines 1, 1/2, 0, 0 at a temperature of 1 / log 9: exp gives 9, 3, 1, 1.
ANCHOR = [[1.0, 0.0]]
CANDIDATES = [[1.0, 0.0], [1.0, math.sqrt(3)], [0.0, 1.0], [0.0, 2.0]]
TEMPERATURE = 1 / math.log(9)


def reference(
    anchors: Floats, candidates: Floats, gains: Floats, labelled: Bools, others: Bools, temperature: float
) -> float:
    losses = []
    for i, u in enumerate(anchors):
        total_gain = sum(gain for gain, is_labelled in zip(gains[i], labelled[i], strict=True) if is_labelled)
        if total_gain == 0:
            continue
        score = [math.exp(cosine(u, v) / temperature) for v in candidates]
        total = sum(value for j, value in enumerate(score) if labelled[i, j] or others[i, j])
        targets = [gain / total_gain if labelled[i, j] else 0.0 for j, gain in enumerate(gains[i])]
        losses.append(
            -sum(target * math.log(value / total) for target, value in zip(targets, score, strict=True) if target)
        )
    return sum(losses) / len(losses) if losses else 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_the_loss_equals_the_equation(seed: int) -> None:
    table = random_table(seed)
    labelled, others = table.positives, table.negatives
    gains = np.random.default_rng(seed).choice([0.0, 1.0, 3.0], size=labelled.shape)
    inputs = (table.anchors, table.candidates, gains, labelled)
    loss = graded_listwise(*map(tensor, inputs), others=tensor(others), temperature=0.1)
    assert loss.item() == pytest.approx(reference(*inputs, others, 0.1))
    alone = graded_listwise(*map(tensor, inputs), temperature=0.1)
    assert alone.item() == pytest.approx(reference(*inputs, np.zeros_like(others), 0.1))


def test_gains_of_what_is_not_labelled_change_nothing() -> None:
    anchors, candidates, labelled = tensor(ANCHOR), tensor(CANDIDATES), tensor([[True, True, False, False]])
    one = graded_listwise(anchors, candidates, tensor([[3.0, 0.0, 0.0, 0.0]]), labelled)
    other = graded_listwise(anchors, candidates, tensor([[3.0, 0.0, float("nan"), 5.0]]), labelled)
    assert torch.equal(one, other)


def test_anchors_without_a_gain_are_left_out() -> None:
    anchors, candidates, labelled = tensor(ANCHOR * 2), tensor(CANDIDATES), torch.ones(2, 4, dtype=torch.bool)
    gains = tensor([[3.0, 1.0, 0.0, 0.0], [0.0] * 4])
    both = graded_listwise(anchors, candidates, gains, labelled)
    assert both.item() == pytest.approx(graded_listwise(anchors[:1], candidates, gains[:1], labelled[:1]).item())
    assert_zero_with_zero_gradient(lambda u, v: graded_listwise(u, v, torch.zeros(2, 4), labelled), anchors, candidates)
    assert_zero_with_zero_gradient(
        lambda u, v: graded_listwise(u, v, gains, torch.zeros_like(labelled)), anchors, candidates
    )


def test_gradients_agree_with_finite_differences() -> None:
    anchors, candidates, labelled, others = random_table(2).tensors()
    gains = torch.ones(labelled.shape)
    assert_right_gradient(
        lambda u, v: graded_listwise(u, v, gains, labelled, others=others, temperature=0.5), anchors, candidates
    )


def test_a_low_temperature_has_finite_gradients() -> None:
    anchors, candidates, labelled, others = random_table(4).tensors()
    assert_finite_gradient(
        lambda u, v: graded_listwise(u, v, torch.ones(labelled.shape), labelled, others=others, temperature=1e-4),
        anchors.float(),
        candidates.float(),
    )


def test_punce_takes_an_unlabelled_candidate_as_positive_with_the_weight_of_the_prior(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("text_a,text_b,label\nu,a,1\nu,b,\nu,c,0\n")
    pairs = read_pairs(file)
    left, right = torch.tensor(pairs.left), torch.tensor(pairs.right)
    inputs = LossInputs(
        left=tensor(ANCHOR * 3),
        right=tensor(CANDIDATES[:3]),
        logits=torch.zeros(3, 2),
        targets=torch.tensor(pairs.targets),
        known=torch.tensor(pairs.known),
        gains=torch.tensor(pairs.gains),
        left_ids=left,
        right_ids=right,
    )
    objective = objective_of(TrainSettings(method="punce", priors=(0.25, 0.75), temperature=TEMPERATURE), pairs)
    assert objective.useful(pairs).all()
    value, _ = objective.loss(inputs, step=1, steps=1)
    # exp gives 9 for the positive, 3 for the unlabelled one, 1 for the negative; the targets are 1 and 1/4 of 5/4.
    assert value.item() == pytest.approx(-(0.8 * math.log(9 / 13) + 0.2 * math.log(3 / 13)))
