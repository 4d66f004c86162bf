"""Ranks, AUC and Spearman against hand-worked numbers and slow, independent counts."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from training.evaluate.ranks import auc, average_ranks, spearman


def with_ties(seed: int, size: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).integers(0, 6, size=size) / 7


def counted_ranks(values: NDArray[np.float64]) -> list[float]:
    """One more than those below, and half a place for each other equal one."""
    return [1 + sum(b < a for b in values) + (sum(b == a for b in values) - 1) / 2 for a in values]


@pytest.mark.parametrize("seed", range(10))
def test_ranks_are_what_counting_gives(seed: int) -> None:
    values = with_ties(seed, 20)
    assert average_ranks(values).tolist() == counted_ranks(values)


@pytest.mark.parametrize("seed", range(10))
def test_auc_is_the_share_of_pairs_in_order(seed: int) -> None:
    scores, positive = with_ties(seed, 25), np.arange(25) % 3 == 0
    won = [1.0 if a > b else 0.5 if a == b else 0.0 for a in scores[positive] for b in scores[~positive]]
    assert auc(scores, positive) == pytest.approx(sum(won) / len(won))


def test_auc_without_both_kinds_is_not_defined() -> None:
    assert math.isnan(auc(np.array([0.1, 0.2]), np.array([False, False])))


@pytest.mark.parametrize("seed", range(5))
def test_spearman_is_the_correlation_of_ranks(seed: int) -> None:
    one, other = with_ties(seed, 30), with_ties(seed + 100, 30)
    assert spearman(one, other) == pytest.approx(np.corrcoef(counted_ranks(one), counted_ranks(other))[0, 1])


def test_spearman_of_a_constant_is_not_defined() -> None:
    assert math.isnan(spearman(np.ones(3), np.arange(3.0)))
