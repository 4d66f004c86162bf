"""A cross-encoder learns from graded pairs and grades the others."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.training.tiny_model import topic_pairs
from training.config import TrainSettings
from training.papers.cross_encoder import Teacher

pytestmark = pytest.mark.training


def test_unlabelled_pairs_get_the_gains_that_the_cross_encoder_expects(model: Path) -> None:
    pairs = topic_pairs(companies=30, candidates=12)
    hidden = np.arange(len(pairs)) % 3 == 0
    settings = TrainSettings(model=str(model), max_tokens=64, precision="float32")
    lines: list[str] = []
    teacher = Teacher(pairs.with_hidden(hidden), settings, device=torch.device("cpu"))
    teacher.learn(epochs=40, learning_rate=3e-3, log=lines.append)
    gains = teacher.gains(np.flatnonzero(hidden))

    same_topic = pairs.targets[hidden, 0] == 1
    assert gains[same_topic].mean() > gains[~same_topic].mean() + 1
    assert 0 <= gains.min() <= gains.max() <= 3
    assert "loss" in lines[0]


def test_a_grade_does_not_depend_on_the_order_of_the_pair_or_its_batch(model: Path) -> None:
    pairs = topic_pairs()
    teacher = Teacher(
        pairs, TrainSettings(max_tokens=64, model=str(model), precision="float32"), device=torch.device("cpu")
    )
    rows = np.arange(20)
    together = teacher.gains(rows)
    alone = np.concatenate([teacher.gains(rows[n : n + 1]) for n in range(20)])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    left, right = pairs.left.copy(), pairs.right.copy()
    pairs.left[:], pairs.right[:] = right, left
    np.testing.assert_allclose(teacher.gains(rows), together, atol=1e-5)
