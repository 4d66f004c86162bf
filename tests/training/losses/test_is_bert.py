"""IS-BERT separates a sentence's own tokens from those of others; padding is no token."""

import math

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
    tensor,
)
from training.papers.paper_losses import is_bert

pytestmark = pytest.mark.training


def reference(tokens: Floats, mask: Bools, sentences: Floats) -> float:
    own, others = [], []
    for i in range(len(tokens)):
        for state, real in zip(tokens[i], mask[i], strict=True):
            if real:
                for j, sentence in enumerate(sentences):
                    score = state @ sentence
                    if i == j:
                        own.append(math.log(1 + math.exp(-score)))
                    else:
                        others.append(math.log(1 + math.exp(score)))
    return float((np.mean(own) if own else 0) + (np.mean(others) if others else 0))


def random_case(seed: int) -> tuple[Floats, Bools, Floats]:
    random = np.random.default_rng(seed)
    sentences, length = int(random.integers(1, 5)), int(random.integers(1, 6))
    mask = np.arange(length) < random.integers(0, length + 1, size=sentences)[:, None]
    return random.normal(size=(sentences, length, 3)), mask, random.normal(size=(sentences, 3))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_loss_equals_the_equation(seed: int) -> None:
    case = random_case(seed)
    assert is_bert(*map(tensor, case)).item() == pytest.approx(reference(*case))


def test_without_real_tokens_the_loss_is_0_and_in_the_graph() -> None:
    mask = torch.zeros(2, 3, dtype=torch.bool)
    assert_zero_with_zero_gradient(lambda t, s: is_bert(t, mask, s), torch.randn(2, 3, 4), torch.randn(2, 4))


def test_gradients_agree_with_finite_differences() -> None:
    tokens, mask, sentences = map(tensor, random_case(4))
    assert_right_gradient(lambda t, s: is_bert(t, mask, s), tokens, sentences)


def test_long_vectors_have_finite_gradients() -> None:
    tokens, mask, sentences = map(tensor, random_case(4))
    assert_finite_gradient(lambda t, s: is_bert(t, mask, s), 1e5 * tokens.float(), 1e5 * sentences.float())
