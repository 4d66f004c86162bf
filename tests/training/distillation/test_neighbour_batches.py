"""Batches of neighbouring texts and of their translations."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from similarity.errors import InvalidInput
from tests.training.distillation.near_texts import unit_rows
from training.distillation.neighbour_batches import NeighbourBatches, Source, nearest_rows

pytestmark = pytest.mark.training


def batches_of(vectors: Any, *, rows: Any = None, sources: Any = (), batch_texts: int = 8, seed: int = 0) -> Any:
    every = np.arange(len(vectors))
    return NeighbourBatches(
        vectors,
        every if rows is None else rows,
        sources or [Source(1.0, every)],
        batch_texts=batch_texts,
        seed=seed,
        neighbourhood=4,
    )


@settings(deadline=None, max_examples=40)
@given(count=st.integers(8, 70), epoch=st.integers(0, 3), skip=st.integers(0, 9), seed=st.integers(0, 5))
def test_batches_are_full_and_skipping_changes_nothing(count: int, epoch: int, skip: int, seed: int) -> None:
    batches = batches_of(unit_rows(count), seed=seed)
    whole = [batch.texts.tolist() for batch in batches.epoch(epoch)]
    assert len(whole) == batches.batches_per_epoch == count // 8
    assert all(len(texts) == 8 for texts in whole)
    assert [batch.texts.tolist() for batch in batches.epoch(epoch, skip=skip)] == whole[skip:]


def test_a_batch_consists_of_neighbourhoods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten far-off clusters of four: each neighbourhood of four is one of them, and differs from epoch to epoch."""
    monkeypatch.setattr("training.distillation.neighbour_batches.NEAREST", 3)
    batches = batches_of(np.repeat(np.eye(10, dtype=np.float32), 4, axis=0), seed=1)
    first, second = ([batch.texts for batch in batches.epoch(number)] for number in (0, 1))
    for texts in first:
        assert all(sorted(set((group // 4).tolist())) == [group[0] // 4] for group in np.split(texts, 2))
        assert all(len(set(group.tolist())) == 4 for group in np.split(texts, 2))
    assert [each.tolist() for each in first] != [each.tolist() for each in second]


def test_the_nearest_rows_do_not_include_the_row_itself() -> None:
    vectors = unit_rows(30)
    products = vectors @ vectors.T - 9 * np.eye(30)
    np.testing.assert_array_equal(nearest_rows(vectors, count=5), np.argsort(-products, axis=1)[:, :5])


def test_translations_of_the_centre_are_together_and_sources_have_their_shares() -> None:
    """Rows 0 to 19 have one text; row 20 has three translations besides: 23 texts, of which the last are of row 20."""
    rows = np.array([*range(21), 20, 20, 20])
    sources = [Source(0.25, np.arange(20)), Source(0.75, np.array([20]))]
    batches = batches_of(unit_rows(21), rows=rows, sources=sources)
    groups = [group for epoch in range(200) for batch in batches.epoch(epoch) for group in np.split(batch.texts, 2)]
    of_last = [group for group in groups if rows[group[0]] == 20]
    assert 0.7 < len(of_last) / len(groups) < 0.8
    assert all((rows[group[:3]] == 20).all() and len(set(group[:3].tolist())) == 3 for group in of_last)


@pytest.mark.parametrize(("count", "batch_texts", "message"), [(40, 6, "multiple of 4"), (7, 8, "do not fill a batch")])
def test_too_few_texts_or_a_wrong_batch_size_are_refused(count: int, batch_texts: int, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        batches_of(unit_rows(count), batch_texts=batch_texts)
