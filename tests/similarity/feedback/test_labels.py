"""Verdicts become labels only where people agree, and a file of them is one that training can read."""

import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from similarity.feedback.labels import (
    ID_COLUMNS,
    TEXT_COLUMNS,
    JudgedPair,
    id_record,
    judged_pairs,
    label_of,
    latest_verdicts,
    text_record,
    with_consistent_texts,
)
from similarity.feedback.protocol import FeedbackEvent, Verdict
from tests.workspace_records import NOON, make_event, moment
from training.data.pairs import Pairs, read_pairs

YES, NO, UNSURE = Verdict.COMPETITOR, Verdict.NOT_COMPETITOR, Verdict.UNSURE
TEXTS = {"nike": "Makes running shoes.", "adidas": "=Makes sports shoes.", "asics": ' Makes shoes.\nAnd "socks"'}


def pairs_of(*oldest_first: FeedbackEvent) -> list[JudgedPair]:
    return judged_pairs(latest_verdicts(reversed(oldest_first)))


def labels(*oldest_first: FeedbackEvent) -> list[str]:
    return [row.label for row in pairs_of(*oldest_first)]


def row(anchor: str, hit: str, label: str) -> JudgedPair:
    verdict = {"positive": "competitor", "negative": "not_competitor", "": "unsure"}[label]
    return pairs_of(make_event(anchor=anchor, hit=hit, verdict=verdict))[0]


def read(tmp_path: Path, rows: list[JudgedPair], texts: dict[str, str]) -> Pairs:
    path = tmp_path / "pairs.jsonl"
    lines = [json.dumps(text_record(each, texts)) for each in with_consistent_texts(rows, texts)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_pairs(path, every_class=False)


@pytest.mark.parametrize(
    ("verdicts", "label"),
    [
        ([YES], "positive"),
        ([NO], "negative"),
        ([UNSURE], ""),
        ([YES, YES, YES], "positive"),
        ([NO, NO], "negative"),
        ([YES, NO], ""),
        ([YES, YES, NO], ""),
        ([YES, UNSURE], ""),
        ([], ""),
    ],
)
def test_a_pair_is_labelled_where_all_agree(verdicts: list[Verdict], label: str) -> None:
    assert label_of(verdicts) == label


def test_the_latest_verdict_of_a_user_counts_whichever_side_was_the_anchor() -> None:
    first = make_event("1", at=moment(1), anchor="nike", hit="adidas", verdict="competitor")
    second = make_event("2", at=moment(2), anchor="adidas", hit="nike", verdict="not_competitor")
    assert labels(first, second) == ["negative"]
    assert labels(first, second, make_event("3", at=moment(3), verdict="unsure")) == [""]


def test_a_withdrawn_verdict_counts_as_none_and_those_of_others_stand() -> None:
    ann = make_event("1", user="ann", at=moment(1), verdict="not_competitor")
    bob = make_event("1", user="bob", at=moment(2), verdict="competitor")
    withdrawn = make_event("2", user="ann", at=moment(3), anchor="adidas", hit="nike", verdict="withdrawn")
    [pair] = pairs_of(ann, bob, withdrawn)
    assert (pair.label, pair.users, pair.judged_at) == ("positive", 1, moment(2))
    assert pairs_of(ann, withdrawn) == []
    assert labels(ann, withdrawn, make_event("3", at=moment(4), verdict="competitor")) == ["positive"]


def test_the_anchor_is_that_of_the_newest_verdict() -> None:
    [pair] = pairs_of(
        make_event(user="bob", at=moment(1), anchor="nike", hit="adidas"),
        make_event(user="ann", at=moment(2), anchor="adidas", hit="nike"),
    )
    assert (pair.anchor, pair.hit) == ("adidas", "nike")


def test_rows_are_in_one_order_and_name_their_columns() -> None:
    rows = pairs_of(*(make_event(hit, anchor=anchor, hit=hit) for anchor, hit in (("b", "c"), ("a", "z"), ("a", "b"))))
    assert [(each.anchor, each.hit) for each in rows] == [("a", "b"), ("a", "z"), ("b", "c")]
    texts = dict.fromkeys("abcz", "text")
    assert tuple(text_record(rows[0], texts)) == TEXT_COLUMNS
    assert id_record(rows[0]) == dict(zip(ID_COLUMNS, ("a", "b", "positive", 1, NOON.isoformat()), strict=True))


def test_pairs_of_companies_without_a_text_are_left_out() -> None:
    rows = [row("nike", "adidas", "positive"), row("nike", "gone", "positive"), row("gone", "asics", "negative")]
    assert with_consistent_texts(rows, TEXTS) == rows[:1]


def test_the_same_two_texts_labelled_both_ways_lose_their_labels() -> None:
    texts = TEXTS | {"nike-inc": TEXTS["nike"]}
    rows = [
        row("nike", "adidas", "positive"),
        row("adidas", "nike-inc", "negative"),
        row("nike", "asics", "negative"),
        row("asics", "nike-inc", ""),
    ]
    assert [each.label for each in with_consistent_texts(rows, texts)] == ["", "", "negative", ""]


def test_companies_with_the_same_text_cannot_be_labelled() -> None:
    texts = {"nike": "Makes shoes.", "nike-inc": "Makes shoes."}
    assert [each.label for each in with_consistent_texts([row("nike", "nike-inc", "negative")], texts)] == [""]


def test_training_reads_the_rows_as_they_were_written(tmp_path: Path) -> None:
    rows = [row("nike", "adidas", "positive"), row("nike", "asics", "negative"), row("asics", "adidas", "")]
    pairs = read(tmp_path, rows, TEXTS)
    assert pairs.texts == tuple(TEXTS[company].strip() for company in ("nike", "adidas", "asics"))
    assert pairs.classes == ("competitor", "other")
    assert pairs.targets.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert pairs.known.tolist() == [[True, True], [True, True], [False, False]]
    assert pairs.gains[:2].tolist() == [3, 0]
    assert not pairs.directed


def test_training_reads_rows_of_ids_together_with_a_file_of_companies(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(id_record(row("nike", "adidas", "positive"))), encoding="utf-8")
    pairs = read_pairs(path, companies=TEXTS)
    assert (pairs.ids, pairs.targets.tolist()) == (("nike", "adidas"), [[1]])


COMPANIES = st.sampled_from(("a", "b", "c", "d", "e"))
EVENTS = st.lists(
    st.tuples(COMPANIES, COMPANIES, st.sampled_from(("ann", "bob")), st.sampled_from(Verdict)).filter(
        lambda said: said[0] != said[1]
    ),
    min_size=1,
    max_size=25,
)


@given(said=EVENTS, texts=st.lists(st.sampled_from(("one", "two", "three", "four")), min_size=5, max_size=5))
def test_training_refuses_no_history_of_verdicts(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str, str, Verdict]], texts: list[str]
) -> None:
    events = [
        make_event(str(number), at=moment(number), anchor=anchor, hit=hit, user=user, verdict=verdict)
        for number, (anchor, hit, user, verdict) in enumerate(said)
    ]
    rows = pairs_of(*events)
    assume(rows)
    pairs = read(tmp_path_factory.mktemp("pairs"), rows, dict(zip("abcde", texts, strict=True)))
    assert 0 < len(pairs) <= len(rows)
