"""A batch as a table of anchors and candidates: positives, negatives, others."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

with suppress(ModuleNotFoundError):  # without torch these tests are only counted
    import torch

    from training.losses.candidate_table import CandidateTable, candidate_table

pytestmark = pytest.mark.training

MASKS = ("positives", "negatives", "unlabelled", "others")


def table_of(*pairs: tuple[int, int, bool | None]) -> CandidateTable:
    """The table of pairs (left, right, label); a label of None is none."""
    left, right, labels = zip(*pairs, strict=True) if pairs else ((), (), ())
    return candidate_table(
        torch.tensor(left, dtype=torch.int64),
        torch.tensor(right, dtype=torch.int64),
        positive=torch.tensor([bool(label) for label in labels], dtype=torch.bool),
        known=torch.tensor([label is not None for label in labels], dtype=torch.bool),
    )


def cells(found: CandidateTable, mask: str, left: list[int], right: list[int]) -> set[tuple[int, int]]:
    """The (left, right) ids under a mask."""
    places = getattr(found, mask).nonzero().tolist()
    return {(sorted(set(left))[i], sorted(set(right))[j]) for i, j in places}


def reference(pairs: list[tuple[int, int, bool | None]]) -> dict[str, set[tuple[int, int]]]:
    """Cell by cell, from the words of the docstring."""
    found: dict[str, set[tuple[int, int]]] = {mask: set() for mask in MASKS}
    for anchor in {left for left, _, _ in pairs}:
        for candidate in {right for _, right, _ in pairs}:
            if anchor == candidate:
                continue
            labels = [label for left, right, label in pairs if (left, right) == (anchor, candidate)]
            reverse = any((left, right) == (candidate, anchor) for left, right, _ in pairs)
            if True in labels:
                found["positives"].add((anchor, candidate))
            elif False in labels:
                found["negatives"].add((anchor, candidate))
            elif labels:
                found["unlabelled"].add((anchor, candidate))
            elif not reverse:
                found["others"].add((anchor, candidate))
    return found


def random_pairs(seed: int) -> list[tuple[int, int, bool | None]]:
    random = np.random.default_rng(seed)
    return [
        (int(random.integers(0, 4)) * 10, int(random.integers(0, 6)) * 10, [None, False, True][random.integers(0, 3)])
        for _ in range(random.integers(1, 12))
    ]


def test_each_candidate_is_one_thing_to_an_anchor() -> None:
    found = table_of((7, 1, True), (7, 2, False), (7, 3, None), (8, 4, True))
    assert found.positives.tolist() == [[True, False, False, False], [False, False, False, True]]
    assert found.negatives.tolist() == [[False, True, False, False], [False] * 4]
    assert found.unlabelled.tolist() == [[False, False, True, False], [False] * 4]
    assert found.others.tolist() == [[False, False, False, True], [True, True, True, False]]


def test_anchors_and_columns_are_the_first_rows_of_their_texts() -> None:
    found = table_of((8, 5, True), (7, 9, False), (8, 9, None), (7, 5, None))
    assert found.anchors.tolist() == [1, 0]
    assert found.columns.tolist() == [0, 1]
    assert found.anchor_of.tolist() == [1, 0, 1, 0]
    assert found.column_of.tolist() == [0, 1, 1, 0]


def test_a_candidate_labelled_once_is_labelled() -> None:
    found = table_of((7, 1, None), (7, 1, True), (7, 2, False), (7, 2, None))
    assert found.positives.tolist() == [[True, False]]
    assert found.negatives.tolist() == [[False, True]]
    assert not found.unlabelled.any()


def test_a_candidate_labelled_both_ways_is_positive() -> None:
    found = table_of((7, 1, False), (7, 1, True))
    assert found.positives.tolist() == [[True]]
    assert not found.negatives.any()


def test_the_anchors_own_text_never_counts() -> None:
    found = table_of((7, 1, True), (8, 7, True), (9, 9, True))
    assert found.anchors.tolist() == [0, 1, 2]
    assert found.columns.tolist() == [0, 1, 2]  # texts 1, 7, 9
    for mask in MASKS:
        assert not getattr(found, mask)[0, 1]  # text 7 for anchor 7
        assert not getattr(found, mask)[2, 2]  # text 9 for anchor 9, though labelled


def test_a_pair_listed_in_the_other_order_is_not_among_the_others() -> None:
    found = table_of((7, 8, True), (8, 1, True), (9, 7, None))
    # Columns are texts 1, 7, 8. Anchor 8 was judged with 7, and anchor 7 is a candidate of 9.
    assert found.others.tolist() == [[True, False, False], [False, False, False], [True, False, True]]


@pytest.mark.parametrize("seed", range(30))
def test_the_masks_are_what_their_words_say(seed: int) -> None:
    pairs = random_pairs(seed)
    left, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = table_of(*pairs)
    assert {mask: cells(found, mask, left, right) for mask in MASKS} == reference(pairs)
    assert [left[row] for row in found.anchors] == sorted(set(left))
    assert [right[row] for row in found.columns] == sorted(set(right))


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_pairs_changes_no_mask(seed: int) -> None:
    pairs = random_pairs(seed)
    one, other = table_of(*pairs), table_of(*reversed(pairs))
    for mask in MASKS:
        assert torch.equal(getattr(one, mask), getattr(other, mask))


def test_an_empty_batch_has_an_empty_table() -> None:
    found = table_of()
    assert found.anchors.tolist() == found.columns.tolist() == []
    assert found.others.shape == (0, 0)


def test_values_of_pairs_go_to_their_places() -> None:
    found = table_of((8, 5, True), (7, 9, False), (8, 9, None), (7, 5, None), (8, 5, True))
    gains = torch.tensor([1.0, -2.0, float("nan"), float("nan"), 3.0], requires_grad=True)
    table = found.scatter(gains, rows=torch.tensor([True, True, False, False, True]))
    assert table.tolist() == [[0.0, -2.0], [3.0, 0.0]]
    assert not table.requires_grad
