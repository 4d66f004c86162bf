"""Batches of neighbouring texts, by vectors and by lexical overlap."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from similarity.errors import InvalidInput
from tests.training.distillation.near_texts import sparse, unit_rows
from training.distillation.neighbour_batches import NeighbourBatches
from training.distillation.targets import TeacherTargets

pytestmark = pytest.mark.training


@settings(deadline=None, max_examples=40)
@given(count=st.integers(8, 70), epoch=st.integers(0, 3), skip=st.integers(0, 9), seed=st.integers(0, 5))
def test_every_text_comes_at_most_once_and_skipping_changes_nothing(
    count: int, epoch: int, skip: int, seed: int
) -> None:
    batches = NeighbourBatches(TeacherTargets.of_vectors(unit_rows(count)), batch_texts=8, seed=seed, neighbourhood=4)
    whole = [batch.texts for batch in batches.epoch(epoch)]
    assert len(whole) == batches.batches_per_epoch == count // 8
    assert all(len(texts) == 8 for texts in whole)
    everything = np.concatenate(whole)
    assert len(set(everything.tolist())) == len(everything)
    again = [batch.texts for batch in batches.epoch(epoch, skip=skip)]
    assert [texts.tolist() for texts in again] == [texts.tolist() for texts in whole[skip:]]


def test_a_batch_consists_of_neighbourhoods() -> None:
    # Ten far-off clusters of four: every neighbourhood of four is one of them.
    clusters = np.repeat(np.eye(10, dtype=np.float32), 4, axis=0)
    batches = NeighbourBatches(TeacherTargets.of_vectors(clusters), batch_texts=8, seed=1, neighbourhood=4)
    first, second = ([batch.texts for batch in batches.epoch(number)] for number in (0, 1))
    for texts in first:
        assert all(len(set((group // 4).tolist())) == 1 for group in np.split(texts, 2))
    assert [each.tolist() for each in first] != [each.tolist() for each in second]


@pytest.mark.parametrize(("count", "batch_texts", "message"), [(40, 6, "multiple of 4"), (7, 8, "do not fill a batch")])
def test_too_few_texts_or_a_wrong_batch_size_are_refused(count: int, batch_texts: int, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        NeighbourBatches(TeacherTargets.of_vectors(unit_rows(count)), batch_texts=batch_texts, seed=0, neighbourhood=4)


def test_neighbourhoods_follow_lexical_overlap() -> None:
    """Vectors that say nothing, and words in four groups: each neighbourhood is one of them."""
    groups = np.repeat(np.eye(4), 4, axis=0)
    targets = TeacherTargets(
        vectors=np.ones((16, 1), dtype=np.float32), lexical=sparse(groups), local_scaling=np.zeros(16, dtype=np.float32)
    )
    np.testing.assert_array_equal(targets.similarities(5), 1 + groups[5] @ groups.T)
    batches = NeighbourBatches(targets, batch_texts=8, seed=1, neighbourhood=4)
    for batch in batches.epoch(0):
        assert all(len(set((group // 4).tolist())) == 1 for group in np.split(batch.texts, 2))
