"""Lexical overlap against a count by hand."""

import math

import numpy as np
import pytest

from similarity.errors import InvalidInput
from training.distillation.targets import overlap_factors

pytestmark = pytest.mark.training

TEXTS = (
    "The company makes dialysis machines.",
    "A maker of dialysis machines and dialysis filters.",
    "Filters for ponds.",
    "It is what it is.",
    "Ponds, boats and boats again.",
)


def test_the_product_is_the_bhattacharyya_coefficient() -> None:
    """Words of two texts are dialysis, filters, machines, ponds, each in two of five: they weigh the same."""
    found = (lambda rows: (rows @ rows.T).toarray())(overlap_factors(TEXTS, weight=1))
    twice = 1 + math.log(2)
    # dialysis and machines, half each; dialysis, twice, and machines and filters; ponds alone in the last.
    shares = np.array([[1, 1, 0, 0], [twice, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1]])
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-9)
    np.testing.assert_allclose(found, np.sqrt(shares) @ np.sqrt(shares).T, atol=1e-6)


def test_the_weight_is_what_equal_texts_have() -> None:
    rows = overlap_factors([*TEXTS, TEXTS[0]], weight=0.3)
    found = (rows @ rows.T).toarray()
    assert found[0, 5] == pytest.approx(0.3, abs=1e-6)
    assert found.max() <= 0.3 + 1e-6
    assert found.min() == 0
    assert not found[3].any()  # of stop words alone


def test_a_word_of_many_texts_counts_for_nothing() -> None:
    texts = [f"company number{n // 2}" for n in range(40)]
    found = (lambda rows: (rows @ rows.T).toarray())(overlap_factors(texts, weight=1))
    assert found[0, 1] == pytest.approx(1, abs=1e-6)
    assert not found[0, 2:].any()


@pytest.mark.parametrize("texts", [("boats", "planes"), ("the", "the and"), ("", "")])
def test_texts_that_share_nothing_are_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match="omit --words"):
        overlap_factors(texts, weight=1)
