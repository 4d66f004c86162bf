"""Records check themselves, and say what is wrong."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from similarity.errors import InvalidCompany, InvalidInput
from similarity.feedback.protocol import Look
from tests.workspace_records import NOON, make_event, make_list, moment


def test_a_pair_is_the_same_from_either_side() -> None:
    assert make_event(anchor="b", hit="a").pair == make_event(anchor="a", hit="b").pair == ("a", "b")


@pytest.mark.parametrize("side", ["anchor", "hit"])
def test_a_side_must_be_a_company_id(side: str) -> None:
    with pytest.raises(InvalidCompany, match="id"):
        replace(make_event(), **{side: "Nike, Inc."})  # type: ignore[arg-type]  # the field is named by the test


def test_a_company_is_not_judged_against_itself() -> None:
    with pytest.raises(InvalidInput, match="itself"):
        make_event(anchor="nike", hit="nike")


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "two\nlines", "broken \ud800"])
def test_a_list_needs_a_name_that_can_be_read(name: str) -> None:
    with pytest.raises(InvalidInput, match="the list's name"):
        make_list(name)


def test_ids_users_notes_and_looks_have_limits() -> None:
    for wrong, said in (
        (lambda: make_event("x" * 129), "the event's id"),
        (lambda: make_event(user=""), "the user's name"),
        (lambda: make_event(note="x" * 2_001), "the note"),
        (lambda: Look(list_name="shoes", user="ann", at=NOON, seen=("a",) * 1_001), "1,001 hits"),
    ):
        with pytest.raises(InvalidInput, match=said):
            wrong()


def test_a_repetition_is_told_by_what_is_said_not_when() -> None:
    event = make_event()
    assert event.repeats(replace(event, at=datetime(2030, 1, 1, tzinfo=UTC)))
    assert not event.repeats(replace(event, note="no"))


def test_an_event_stands_behind_those_of_later_times() -> None:
    assert make_event("b", at=moment(1)).place < make_event("a", at=moment(2)).place
