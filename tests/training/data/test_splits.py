"""No anchor is on both sides of a split, and a smaller share of labels is part of a larger one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from similarity.errors import InvalidInput
from tests.training.data.pair_data import made_pairs, numbered_pairs, said
from training.data.splits import hide_labels, refuse_leakage, split_by_anchor

COMPANIES = st.sampled_from("abcdefghij")
SIDES = st.lists(st.tuples(COMPANIES, COMPANIES).filter(lambda pair: pair[0] != pair[1]), min_size=8, unique=True)


@settings(deadline=None)
@given(sides=SIDES, selection=st.integers(1, 3), seed=st.integers(0, 99))
def test_selection_anchors_occur_nowhere_in_train(sides: list[tuple[str, str]], selection: int, seed: int) -> None:
    pairs = made_pairs(sides, ["competitor"] * len(sides))
    try:
        train, chosen = split_by_anchor(pairs, selection=selection, seed=seed)
    except InvalidInput:
        # Some draws leave nothing to train on: tested below.
        assume(False)
    in_train = {company for left, right, _ in said(train) for company in (left, right)}
    assert len(chosen.anchors) == selection
    assert not in_train & set(chosen.anchors)
    assert {pair for pair in said(pairs) if pair[0] in chosen.anchors} == set(said(chosen))
    untouched = {pair for pair in said(pairs) if not set(pair[:2]) & set(chosen.anchors)}
    assert untouched == set(said(train))
    refuse_leakage(train, chosen)


def test_a_split_depends_on_its_seed_alone() -> None:
    pairs = numbered_pairs(["competitor", "other", "", ""] * 30)
    first, again, other = (split_by_anchor(pairs, selection=5, seed=seed)[1].anchors for seed in (1, 1, 2))
    assert first == again != other


def test_a_split_needs_anchors_with_labels() -> None:
    with pytest.raises(InvalidInput, match="3 selection anchors cannot be cut from 2 anchors with labels; give 1 to 1"):
        split_by_anchor(numbered_pairs(["other", "", "", ""] * 2), selection=3, seed=0)


def test_a_split_leaves_something_to_train_on() -> None:
    pairs = made_pairs([("a", "b"), ("b", "a")], ["competitor", "competitor"])
    with pytest.raises(InvalidInput, match="leave no labelled pair to train on"):
        split_by_anchor(pairs, selection=1, seed=0)


@pytest.mark.parametrize(
    ("evaluation", "message"),
    [
        ([("a", "x"), ("y", "x")], "1 of the 2 evaluation anchors, such as a, occur"),
        ([("b", "x")], "1 of the 1 evaluation anchors, such as b, occur"),
        ([("b", "a"), ("y", "a")], "1 of the 2 evaluation anchors, such as b, occur"),
        ([("a", "b")], "1 of the 1 evaluation anchors, such as a, occur"),
    ],
)
def test_shared_anchors_and_pairs_are_refused(evaluation: list[tuple[str, str]], message: str) -> None:
    train = made_pairs([("a", "b"), ("c", "d")], ["competitor", "other"])
    with pytest.raises(InvalidInput, match=message):
        refuse_leakage(train, made_pairs(evaluation, ["other"] * len(evaluation)))


def test_the_same_text_under_another_id_is_shared() -> None:
    train = made_pairs([("a", "b")], ["competitor"])
    other = made_pairs([("x", "y")], ["competitor"])
    renamed = replace(other, texts=("text of a", "text of y"))
    with pytest.raises(InvalidInput, match="1 of the 1 evaluation anchors"):
        refuse_leakage(train, renamed)


LABELS = st.lists(st.sampled_from(["competitor", "other", ""]), min_size=1, max_size=200)


@settings(deadline=None)
@given(labels=LABELS, seed=st.integers(0, 99))
def test_labels_of_a_smaller_share_are_among_those_of_a_larger(labels: list[str], seed: int) -> None:
    pairs = numbered_pairs(labels)
    before = np.zeros(len(pairs), dtype=np.bool_)
    for share in (0.01, 0.05, 0.1, 0.3, 0.7, 1.0):
        hidden = hide_labels(pairs, share=share, seed=seed)
        assert len(hidden) == len(pairs)
        assert not (before & ~hidden.labelled).any()
        for label in {"competitor", "other"} & set(labels):
            left = sum(found == label for *_, found in said(hidden))
            assert abs(left - share * labels.count(label)) <= 0.5 or left == 1
        before = hidden.labelled
    np.testing.assert_array_equal(before, pairs.labelled)


def test_different_seeds_keep_different_labels() -> None:
    pairs = numbered_pairs(["competitor", "other"] * 50)
    first, again, other = (hide_labels(pairs, share=0.1, seed=seed).labelled.tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_both_orders_of_a_pair_are_hidden_together() -> None:
    names = [f"company-{number}" for number in range(40)]
    one_way = list(zip(names[::2], names[1::2], strict=True))
    pairs = made_pairs(one_way + [(right, left) for left, right in one_way], ["competitor"] * 40)
    labelled = hide_labels(pairs, share=0.5, seed=0).labelled
    assert labelled.sum() == 20
    np.testing.assert_array_equal(labelled[:20], labelled[20:])


def test_grades_are_drawn_apart() -> None:
    pairs = numbered_pairs(["other"] * 100)
    pairs.gains[:20] = 1
    assert (hide_labels(pairs, share=0.1, seed=0).gains == 1).sum() == 2


@pytest.mark.parametrize("share", [0, -0.1, 1.1])
def test_a_share_of_labels_is_above_zero_up_to_one(share: float) -> None:
    with pytest.raises(InvalidInput, match="the share of labels"):
        hide_labels(numbered_pairs(["other"]), share=share, seed=0)
