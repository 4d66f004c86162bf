"""Batch composition, worked by hand."""

import numpy as np

from training.data.batches import batches_of_groups, composition, split_into_batches


def test_remainders_are_carried_from_batch_to_batch() -> None:
    sizes = np.array([4, 8])
    counts = composition(sizes / 12, sizes=sizes, once=slice(None), total=12, batch=5)
    # A third of 5 is 1.67: two, then one (3.33 in all), then what is left.
    assert counts.tolist() == [[2, 3], [1, 4], [1, 1]]


def test_strata_that_are_used_once_are_used_up() -> None:
    sizes = np.array([7, 3])
    counts = composition(np.array([0.5, 0.5]), sizes=sizes, once=np.array([True, False]), total=14, batch=4)
    assert counts.tolist() == [[2, 2], [2, 2], [2, 2], [1, 1]]


def test_groups_go_where_their_middle_lies() -> None:
    sizes = np.array([2, 3, 3, 4])
    assert batches_of_groups(sizes, 6) == 2
    assert [batch.tolist() for batch in split_into_batches(np.array([3, 0, 1, 2]), sizes, 2)] == [[3, 0], [1, 2]]


def test_no_batch_stays_empty_for_a_large_group() -> None:
    sizes = np.array([9, 1, 1])
    assert batches_of_groups(sizes, 3) == 1
