from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from similarity.client.decoding import Undecodable, decode


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
    assert decode(Whole, {"name": "a", "added_next_year": {"x": 1}}) == Whole("a")


def test_nested_records_times_and_facts_are_read() -> None:
    members = {
        "name": "a",
        "parts": [{"score": 0.5}],
        "when": "2026-01-31T12:00:00Z",
        "facts": {"employees": 3, "listed": True, "share": 0.25, "seat": "Ulm"},
    }
    whole = decode(Whole, members)
    assert whole.parts == (Part(0.5),)
    assert whole.when == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert whole.facts == {"employees": 3, "listed": True, "share": 0.25, "seat": "Ulm"}
    assert whole.facts["listed"] is True


def test_a_whole_number_is_good_for_a_fraction() -> None:
    score = decode(Part, {"score": 1}).score
    assert (score, type(score)) == (1.0, float)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([], r"the answer is \[\], not an object"),
        ({}, "name is None, not there as it should be"),
        ({"name": 3}, "name is 3, not text"),
        ({"name": "a", "parts": {"score": 1}}, "parts is .*, not a list"),
        ({"name": "a", "parts": [{"score": 1}, {"score": "1"}]}, r"parts\[1\].score is '1', not a number"),
        ({"name": "a", "parts": [{"score": True}]}, r"parts\[0\].score is True, not a number"),
        ({"name": "a", "when": "yesterday"}, "when is 'yesterday', not a time such as"),
        ({"name": "a", "facts": {"x": None}}, "facts.x is None, not text or a whole number or a number or bool"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(members: object, message: str) -> None:
    with pytest.raises(Undecodable, match=message):
        decode(Whole, members)
