"""Batches use pairs as often as they should, and can continue anywhere."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from similarity.errors import InvalidInput
from tests.training.data.pair_data import made_pairs, numbered_pairs
from training.data.batches import Batch, Order, PairBatches
from training.data.pairs import Pairs

LABELS = st.lists(st.sampled_from(["competitor", "other", "", "", ""]), min_size=1, max_size=120)
SIZES = st.integers(1, 40)
SEEDS = st.integers(0, 1_000)


def numbers(batches: Sequence[Batch]) -> list[list[int]]:
    return [batch.pairs.tolist() for batch in batches]


def used(batches: Sequence[Batch]) -> Counter[int]:
    return Counter(pair for batch in batches for pair in batch.pairs.tolist())


def lengths_of(pairs: Pairs) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.arange(len(pairs.texts)) * 7 % 31 + 1


@settings(deadline=None)
@given(labels=LABELS, size=SIZES, seed=SEEDS, measured=st.booleans())
def test_an_epoch_uses_every_pair_once(labels: list[str], size: int, seed: int, measured: bool) -> None:
    pairs = numbered_pairs(labels)
    batches = PairBatches(pairs, batch_pairs=size, seed=seed, lengths=lengths_of(pairs) if measured else None)
    for epoch in (0, 3):
        drawn = list(batches.epoch(epoch))
        assert used(drawn) == Counter(range(len(pairs)))
        assert len(drawn) == batches.batches_per_epoch == -(-len(pairs) // size)
        assert max(len(batch.pairs) for batch in drawn) <= size


@settings(deadline=None)
@given(labels=LABELS, size=SIZES, seed=SEEDS)
def test_every_full_batch_has_the_composition_of_the_data(labels: list[str], size: int, seed: int) -> None:
    pairs = numbered_pairs(labels)
    for batch in PairBatches(pairs, batch_pairs=size, seed=seed, lengths=lengths_of(pairs)).epoch(1):
        for label in set(labels):
            found = sum(labels[pair] == label for pair in batch.pairs.tolist())
            share = labels.count(label) * len(batch.pairs) / len(labels)
            assert abs(found - share) < (1 if len(batch.pairs) == size else 2)


@settings(deadline=None)
@given(
    labels=LABELS,
    size=SIZES,
    seed=SEEDS,
    share=st.sampled_from([None, 0.3]),
    measured=st.booleans(),
    skip=st.integers(0, 60),
)
def test_an_epoch_can_continue_at_any_batch(
    labels: list[str], size: int, seed: int, share: float | None, measured: bool, skip: int
) -> None:
    pairs = numbered_pairs([*labels, "competitor", ""])
    lengths = lengths_of(pairs) if measured else None
    whole = PairBatches(pairs, batch_pairs=size, seed=seed, labelled_share=share, lengths=lengths)
    again = PairBatches(pairs, batch_pairs=size, seed=seed, labelled_share=share, lengths=lengths)
    assert numbers(list(again.epoch(2, skip=skip))) == numbers(list(whole.epoch(2)))[skip:]


@settings(deadline=None)
@given(labels=LABELS, seed=SEEDS, skip=st.integers(0, 60))
def test_an_epoch_of_anchors_can_continue_at_any_batch(labels: list[str], seed: int, skip: int) -> None:
    pairs = numbered_pairs(labels)
    batches = PairBatches(pairs, batch_pairs=9, seed=seed, order="anchors", lengths=lengths_of(pairs))
    whole = numbers(list(batches.epoch(2)))
    assert len(whole) == batches.batches_per_epoch
    assert numbers(list(batches.epoch(2, skip=skip))) == whole[skip:]


@pytest.mark.parametrize("order", ["composition", "anchors"])
def test_seeds_and_epochs_differ(order: Order) -> None:
    pairs = numbered_pairs(["competitor", "other", "", ""] * 20)
    one = PairBatches(pairs, batch_pairs=8, seed=1, order=order)
    two = PairBatches(pairs, batch_pairs=8, seed=2, order=order)
    drawn = [numbers(list(batches.epoch(epoch))) for batches in (one, two) for epoch in (0, 1)]
    assert all(drawn[first] != drawn[second] for first in range(4) for second in range(first))
    assert numbers(list(one.epoch(0))) == drawn[0]


def test_a_labelled_share_uses_the_unlabelled_once_and_the_labelled_in_passes() -> None:
    labels = ["competitor"] * 3 + ["other"] * 6 + [""] * 40
    batches = PairBatches(numbered_pairs(labels), batch_pairs=10, seed=0, labelled_share=0.6)
    first, second = list(batches.epoch(0)), list(batches.epoch(1))
    assert batches.batches_per_epoch == 10
    for batch in first:
        assert Counter(labels[pair] for pair in batch.pairs.tolist()) == {"competitor": 2, "other": 4, "": 4}
    counts = used(first)
    assert all(counts[pair] == 1 for pair in range(9, 49))
    # 20 positives are 6 passes of 3 and 2 more; the next epoch continues where they ended.
    assert sorted(counts[pair] for pair in range(3)) == [6, 7, 7]
    both = used([*first, *second])
    assert sorted(both[pair] for pair in range(3)) == [13, 13, 14]


def test_whole_anchors_stay_together() -> None:
    pairs = numbered_pairs([""] * 100, candidates=5)
    batches = list(PairBatches(pairs, batch_pairs=20, seed=0, order="anchors").epoch(0))
    assert used(batches) == Counter(range(100))
    for batch in batches:
        assert len(batch.pairs) == 20
        assert set(Counter(pairs.left[batch.pairs].tolist()).values()) == {5}


@settings(deadline=None)
@given(groups=st.lists(st.integers(1, 12), min_size=1, max_size=30), size=st.integers(12, 40), seed=SEEDS)
def test_anchors_of_any_size_fill_batches_evenly(groups: list[int], size: int, seed: int) -> None:
    sides = [(f"anchor-{anchor}", f"{anchor}-{row}") for anchor, count in enumerate(groups) for row in range(count)]
    pairs = made_pairs(sides, [""] * len(sides))
    drawn = list(PairBatches(pairs, batch_pairs=size, seed=seed, order="anchors").epoch(0))
    assert used(drawn) == Counter(range(len(pairs)))
    anchors = [set(pairs.left[batch.pairs].tolist()) for batch in drawn]
    assert sum(map(len, anchors)) == len(groups)
    assert all(0 < len(batch.pairs) <= max(size, sum(groups) / len(drawn)) + max(groups) for batch in drawn)


def test_each_text_of_a_batch_is_one_row() -> None:
    pairs = made_pairs([("a", "b"), ("a", "c"), ("c", "b")], ["competitor", "other", ""])
    (batch,) = PairBatches(pairs, batch_pairs=3, seed=0).epoch(0)
    assert sorted(batch.texts.tolist()) == [0, 1, 2]
    np.testing.assert_array_equal(batch.texts[batch.left], pairs.left[batch.pairs])
    np.testing.assert_array_equal(batch.texts[batch.right], pairs.right[batch.pairs])


@settings(deadline=None)
@given(labels=LABELS, copies=st.integers(1, 3))
def test_copies_of_labelled_pairs_have_rows_of_their_own(labels: list[str], copies: int) -> None:
    pairs = numbered_pairs(labels)
    for batch in PairBatches(pairs, batch_pairs=16, seed=0, labelled_copies=copies).epoch(0):
        np.testing.assert_array_equal(batch.texts[batch.left], pairs.left[batch.pairs])
        np.testing.assert_array_equal(batch.texts[batch.right], pairs.right[batch.pairs])
        for pair, count in Counter(batch.pairs.tolist()).items():
            places = np.flatnonzero(batch.pairs == pair)
            assert count == (copies if labels[pair] else 1)
            assert len(set(batch.left[places].tolist())) == len(set(batch.right[places].tolist())) == count


@pytest.mark.parametrize("order", ["composition", "anchors"])
def test_pairs_of_similar_length_meet(order: Order) -> None:
    pairs = numbered_pairs(["competitor", "", "", ""] * 160, candidates=1)
    random = np.random.default_rng(0)
    lengths = random.integers(5, 200, len(pairs.texts))

    def padding(batches: PairBatches) -> float:
        longest = [lengths[batch.texts] for batch in batches.epoch(0)]
        return sum(len(found) * int(found.max()) - int(found.sum()) for found in longest) / int(lengths.sum())

    mixed = PairBatches(pairs, batch_pairs=8, seed=0, order=order)
    matched = PairBatches(pairs, batch_pairs=8, seed=0, order=order, lengths=lengths)
    assert padding(matched) < 0.75 * padding(mixed)


@pytest.mark.parametrize(
    ("labels", "settings", "message"),
    [
        (["other", ""], {"labelled_share": 0.5, "order": "anchors"}, "omit labelled_share"),
        (["", ""], {"labelled_share": 0.5}, "no pair is labelled"),
        (["other"], {"labelled_share": 0.5}, "no pair is unlabelled"),
        ([""] * 4, {"order": "anchors", "batch_pairs": 3}, "anchor-0 has 4 candidates, more than a batch of 3"),
        ([], {}, "no pairs"),
    ],
)
def test_settings_that_do_not_fit_are_refused(labels: list[str], settings: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"batch_pairs": 8, "seed": 0, **settings}
    with pytest.raises(InvalidInput, match=message):
        PairBatches(numbered_pairs(labels), **arguments)  # type: ignore[arg-type]  # wrong on purpose, in part
