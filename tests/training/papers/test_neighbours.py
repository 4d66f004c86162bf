"""Neighbouring sentences of documents, by hand."""

from typing import Any

import pytest
import torch

from training.papers.neighbours import neighbours

pytestmark = pytest.mark.training


def test_neighbours_are_near_in_one_document() -> None:
    documents, positions = torch.tensor([0, 0, 0, 1, 1]), torch.tensor([0, 1, 2, 1, 4])

    def near(context: int) -> list[Any]:
        return [row.nonzero().flatten().tolist() for row in neighbours(documents, positions, context=context).positives]

    assert near(1) == [[1], [0, 2], [1], [], []]
    assert near(2) == [[1, 2], [0, 2], [0, 1], [], []]
    assert near(3) == [[1, 2], [0, 2], [0, 1], [4], [3]]


def test_every_other_sentence_is_a_negative_and_itself_is_neither() -> None:
    found = neighbours(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 0]), context=1)
    itself = torch.eye(3, dtype=torch.bool)
    assert torch.equal(found.negatives, ~found.positives & ~itself)
    twice = neighbours(torch.tensor([0, 0]), torch.tensor([3, 3]), context=1)
    assert not twice.positives.any()
    assert not twice.negatives.any()
