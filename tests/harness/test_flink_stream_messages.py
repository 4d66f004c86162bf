"""What the check of the streams on Flink finds wrong, without servers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest

from similarity.ingest.dead_letters import DeadLetter, Stage
from similarity.ingest.messages import Message
from tests.faults.flink_stream_messages import Expected, messages

COUNT = 2000


@dataclass
class Company:
    description: str


@dataclass
class Document:
    company: Company


@dataclass
class Outcome:
    """What a stream may have left: it is the story and the index of the check."""

    settled: int
    descriptions: dict[str, str]
    dead: list[str]
    name: str = field(default="live")

    def committed(self) -> int:
        return self.settled

    def dead_letters(self) -> Iterator[DeadLetter]:
        for key in self.dead:
            message = Message(position=f"kafka:t/0/{key}", key=key.encode(), value=b"", time=datetime.now(UTC))
            yield DeadLetter(message=message, stage=Stage.DECODE, reason="bad")

    def live(self) -> "Outcome":
        return self

    def get(self, generation: str, ids: list[str]) -> Mapping[str, Any]:
        return {id_: Document(Company(self.descriptions[id_])) for id_ in ids if id_ in self.descriptions}


@pytest.fixture
def expected() -> Expected:
    expected = Expected()
    assert len(list(islice(messages(expected), COUNT))) == COUNT
    return expected


@pytest.fixture
def outcome(expected: Expected) -> Outcome:
    """As it must be."""
    stored = {company: text for company, text in expected.companies.items() if text is not None}
    return Outcome(COUNT, stored, sorted(expected.poison))


def problems(expected: Expected, outcome: Outcome) -> list[str]:
    return expected.problems(outcome, outcome)  # type: ignore[arg-type]  # the parts of both that it asks


def test_what_is_as_it_must_be_has_no_problem(expected: Expected, outcome: Outcome) -> None:
    outcome.dead.append(outcome.dead[0])  # a bundle was tried again
    assert problems(expected, outcome) == []


def test_everything_that_is_wrong_is_a_problem(expected: Expected, outcome: Outcome) -> None:
    deleted = next(company for company, text in expected.companies.items() if text is None)
    changed = next(company for company, text in expected.companies.items() if text and "anvils" in text)
    outcome.settled -= 1
    outcome.descriptions |= {deleted: "Late news.", changed: f"{changed} makes boats and cars."}
    del outcome.descriptions["c0"]
    outcome.dead = [*outcome.dead[1:], "c0"]
    found = problems(expected, outcome)
    assert len(found) == 6
    for part in ("1 of 2000 unsettled", f"{deleted} is", f"{changed} is", "c0 is None", "no dead letter of", "of c0"):
        assert sum(part in problem for problem in found) == 1, part


def test_messages_change_delete_and_come_late(expected: Expected) -> None:
    texts = list(expected.companies.values())
    assert texts.count(None) == 2 * (COUNT - 600) // 20
    assert sum("anvils" in (text or "") for text in texts) == 3 * (COUNT - 600) // 20
    assert len(expected.poison) == COUNT // 20


def test_what_comes_late_comes_for_a_company_that_was_deleted_before() -> None:
    deleted, late = set(), []
    for record in islice(messages(Expected()), COUNT):
        if record.get("event_time"):
            late.append(record["id"] in deleted)
        elif record["description"] is None:
            deleted.add(record["id"])
    assert any(late)
    assert all(late[10:]), "the first ones come before the deletes begin"
