from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import pytest

from similarity.client.call import json_reader
from similarity.client.problems import UnreadableAnswer
from tests.similarity.client.replies import reply

Record = TypeVar("Record")


def decoded(record: type[Record], members: object) -> Record:
    return json_reader(record)(reply(200, members))


@dataclass(frozen=True)
class Part:
    score: float


@dataclass(frozen=True)
class Whole:
    name: str
    parts: tuple[Part, ...] = ()
    when: datetime | None = None
    facts: Mapping[str, str | int | float | bool] | None = None


def test_members_that_are_not_known_are_left_out() -> None:
    assert decoded(Whole, {"name": "a", "added_next_year": {"x": 1}}) == Whole("a")


def test_nested_records_times_and_facts_are_read() -> None:
    members = {
        "name": "a",
        "parts": [{"score": 0.5}],
        "when": "2026-01-31T12:00:00Z",
        "facts": {"employees": 3, "listed": True, "share": 0.25, "seat": "Ulm"},
    }
    whole = decoded(Whole, members)
    assert whole.parts == (Part(0.5),)
    assert whole.when == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert whole.facts == {"employees": 3, "listed": True, "share": 0.25, "seat": "Ulm"}
    assert whole.facts["listed"] is True


def test_a_whole_number_is_good_for_a_fraction() -> None:
    score = decoded(Part, {"score": 1}).score
    assert (score, type(score)) == (1.0, float)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([], r"read: JSON: .*object; found \[\]"),
        ({}, r"read: name: Field required; found {}"),
        ({"name": 3}, "read: name: .*string; found 3"),
        ({"name": "a", "parts": {"score": 1}}, "read: parts: .*array; found {'score': 1}"),
        ({"name": "a", "parts": [{"score": 1}, {"score": "1"}]}, r"read: parts\[1\].score: .*number; found '1'"),
        ({"name": "a", "parts": [{"score": True}]}, r"read: parts\[0\].score: .*number; found True"),
        ({"name": "a", "when": "yesterday"}, "read: when: .*datetime.*; found 'yesterday'"),
        ({"name": "a", "facts": {"x": None}}, "read: facts.x.*; found None"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(members: object, message: str) -> None:
    with pytest.raises(UnreadableAnswer, match=message):
        decoded(Whole, members)
