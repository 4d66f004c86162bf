"""A batch as a table of anchors and candidates: positives, negatives, others."""

import numpy as np
import pytest
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


def test_anchors_and_columns_are_the_first_rows_of_their_texts() -> None:
    found = table_of((8, 5, True), (7, 9, False), (8, 9, None), (7, 5, None))
    assert found.anchors.tolist() == [1, 0]
    assert found.columns.tolist() == [0, 1]
    assert found.anchor_of.tolist() == [1, 0, 1, 0]
    assert found.column_of.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("seed", range(30))
def test_the_masks_are_what_their_words_say(seed: int) -> None:
    pairs = random_pairs(seed)
    left, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = table_of(*pairs)
    assert {mask: cells(found, mask, left, right) for mask in MASKS} == reference(pairs)
    assert [left[row] for row in found.anchors] == sorted(set(left))
    assert [right[row] for row in found.columns] == sorted(set(right))


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
