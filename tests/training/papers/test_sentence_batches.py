"""Sentences of descriptions, and batches of neighbouring ones."""

from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from similarity.errors import InvalidInput
from training.papers.sentence_batches import SentenceBatches, neighbours, sentences

pytestmark = pytest.mark.training


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It makes anvils. It sells them!", ["It makes anvils.", "It sells them!"]),
        ("Acme Inc. Makes anvils. 12 shops sell them.", ["Acme Inc. Makes anvils.", "12 shops sell them."]),
        ("It serves U.S. Banks. It lends.", ["It serves U.S. Banks.", "It lends."]),
        ("It sells tools, e.g. Stanley knives. It ships.", ["It sells tools, e.g. Stanley knives.", "It ships."]),
        ("It was founded (approx. 1980). It grew.", ["It was founded (approx. 1980).", "It grew."]),
        ("It works with Prof. Li. It grew.", ["It works with Prof. Li.", "It grew."]),
        ("It grew 3.5 times. Is it big? Yes.", ["It grew 3.5 times.", "Is it big?", "Yes."]),
        ("One line.\n\nAnother   line.", ["One line.", "Another line."]),
        ("1. Ships steel. 2. Owns ports.", ["1. Ships steel.", "2. Owns ports."]),
        ("no full stop", ["no full stop"]),
        ("It is old. ... It is new.", ["It is old. ...", "It is new."]),
        ("", []),
        ("...", []),
    ],
)
def test_abbreviations_end_no_sentence(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


DOCUMENTS = st.lists(st.integers(0, 12), min_size=1, max_size=40).filter(lambda counts: max(counts) > 1)


def documents(counts: list[int]) -> list[str]:
    return [" ".join(f"Document {number} says {row}." for row in range(count)) for number, count in enumerate(counts)]


@settings(deadline=None)
@given(counts=DOCUMENTS, size=st.integers(4, 30), seed=st.integers(0, 99))
def test_an_epoch_holds_every_sentence_with_a_neighbour_once(counts: list[int], size: int, seed: int) -> None:
    batches = SentenceBatches(documents(counts), batch_sentences=size, seed=seed)
    drawn = list(batches.epoch(1))
    assert len(drawn) == batches.batches_per_epoch
    rows = Counter(row for batch in drawn for row in batch.texts.tolist())
    assert rows == Counter(range(sum(count for count in counts if count > 1)))
    for batch in drawn:
        places = set(zip(batch.documents.tolist(), batch.positions.tolist(), strict=True))
        for text, (document, position) in zip(
            batch.texts, zip(batch.documents, batch.positions, strict=True), strict=True
        ):
            assert batches.texts[text] == f"Document {document} says {position}."
            assert {(document, position - 1), (document, position + 1)} & places
        assert len(places) <= size + size // 2 + 1


@settings(deadline=None)
@given(counts=DOCUMENTS, skip=st.integers(0, 30))
def test_an_epoch_can_continue_at_any_batch(counts: list[int], skip: int) -> None:
    batches = SentenceBatches(documents(counts), batch_sentences=8, seed=0)
    whole = [batch.texts.tolist() for batch in batches.epoch(3)]
    assert [batch.texts.tolist() for batch in batches.epoch(3, skip=skip)] == whole[skip:]


def test_epochs_and_seeds_differ() -> None:
    first, second = (SentenceBatches(documents([3] * 30), batch_sentences=9, seed=seed) for seed in (0, 1))
    orders = [[batch.texts.tolist() for batch in one.epoch(epoch)] for one in (first, second) for epoch in (0, 1)]
    assert len({str(order) for order in orders}) == 4


def test_there_must_be_neighbours() -> None:
    with pytest.raises(InvalidInput, match="no description has two sentences"):
        SentenceBatches(["One sentence."], batch_sentences=8, seed=0)


def test_neighbours_are_near_in_one_document() -> None:
    documents, positions = torch.tensor([0, 0, 0, 1, 1]), torch.tensor([0, 1, 2, 1, 4])

    def near(context: int) -> list[Any]:
        return [row.nonzero().flatten().tolist() for row in neighbours(documents, positions, context=context)[0]]

    assert near(1) == [[1], [0, 2], [1], [], []]
    assert near(2) == [[1, 2], [0, 2], [0, 1], [], []]
    assert near(3) == [[1, 2], [0, 2], [0, 1], [4], [3]]


def test_every_other_sentence_is_a_negative_and_itself_is_neither() -> None:
    near, others = neighbours(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 0]), context=1)
    assert torch.equal(others, ~near & ~torch.eye(3, dtype=torch.bool))
    near, others = neighbours(torch.tensor([0, 0]), torch.tensor([3, 3]), context=1)
    assert not near.any()
    assert not others.any()
