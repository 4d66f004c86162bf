"""The judge of the fault campaign must find what it looks for: each test tells it of one thing gone wrong."""

from dataclasses import replace
from pathlib import Path

import pytest

from similarity.company import EmbeddedCompany
from similarity.index.protocol import WriteOutcome
from tests.factories import unit_vector
from tests.faults.elasticsearch_check import account, judge
from tests.faults.elasticsearch_history import Attempt, Journal, Reading, next_batch, read_journal
from tests.faults.elasticsearch_inputs import Document, Input, Poison, batch, document

APPLIED, UNCHANGED, SUPERSEDED = WriteOutcome.APPLIED, WriteOutcome.UNCHANGED, WriteOutcome.SUPERSEDED
REJECTED, FAILED = WriteOutcome.REJECTED, WriteOutcome.FAILED
OLD, NEW, NEWEST = Input("a", 2), Input("a", 4), Input("a", 6)
DELETE = Input("a", 5)
CONTRADICTION = Input("a", 4, 1)


def attempt(given: Input, outcome: WriteOutcome | None, start: float, end: float | None = None) -> Attempt:
    return Attempt(
        by="test",
        generation="first",
        inputs=(given,),
        start=start,
        end=start + 1 if end is None else end,
        outcomes=() if outcome is None else (outcome,),
    )


def stored(*inputs: Input) -> dict[str, Document]:
    return {given.id: document(given) for given in inputs}


def wrong(attempts: list[Attempt], documents: dict[str, Document], *readings: Reading) -> list[str]:
    return judge(attempts, readings, documents).lines


def reading(seen: int, start: float) -> Reading:
    return Reading(generation="first", start=start, end=start + 1, seen={"a": seen})


def test_a_faultless_history_has_nothing_wrong() -> None:
    attempts = [
        attempt(OLD, APPLIED, 0),
        attempt(NEW, None, 0),
        attempt(NEW, APPLIED, 5),
        attempt(CONTRADICTION, REJECTED, 7),
        attempt(NEW, UNCHANGED, 7),
        attempt(OLD, SUPERSEDED, 9),
        attempt(Input("p", 2, poison=Poison.WAY), REJECTED, 9),
    ]
    assert wrong(attempts, stored(NEW), reading(0, 0.5), reading(4, 7)) == []
    found = account(attempts)
    assert (found.indexed, found.superseded, found.unsettled) == ({OLD, NEW}, set(), set())
    assert {given.id for given in found.rejected} == {"a", "p"}


def test_a_document_that_is_gone_is_lost() -> None:
    assert wrong([attempt(NEW, APPLIED, 0)], {}) == ["lost: a v4 is not stored at all"]


def test_an_older_document_in_its_place_is_a_loss() -> None:
    attempts = [attempt(OLD, APPLIED, 0), attempt(NEW, APPLIED, 2)]
    assert wrong(attempts, stored(OLD)) == ["lost: a v4 is v2"]


def test_a_company_in_the_place_of_its_delete_is_resurrected() -> None:
    attempts = [attempt(NEW, APPLIED, 0), attempt(DELETE, APPLIED, 2)]
    assert wrong(attempts, stored(NEW)) == ["resurrected: a v5 is v4"]


def test_a_document_that_nobody_wrote_is_found() -> None:
    attempts = [attempt(OLD, APPLIED, 0)]
    assert wrong(attempts, stored(NEWEST)) == ["invented: a is v6; nothing above v2 was taken"]
    assert wrong(attempts, stored(OLD, Input("b", 2))) == ["invented: b is v2; nothing above v0 was taken"]


def test_other_content_than_acknowledged_is_found() -> None:
    attempts = [attempt(NEW, APPLIED, 0), attempt(CONTRADICTION, REJECTED, 2)]
    assert wrong(attempts, stored(CONTRADICTION)) == ["wrong: a v4 has other content than was acknowledged"]


def test_another_vector_than_acknowledged_is_found() -> None:
    held = document(NEW)
    assert isinstance(held, EmbeddedCompany)
    other: dict[str, Document] = {"a": replace(held, vector=unit_vector(99))}
    assert wrong([attempt(NEW, APPLIED, 0)], other) == ["wrong: a v4 has other content than was acknowledged"]


def test_a_write_that_was_applied_twice_was_lost_in_between() -> None:
    [first, second] = wrong([attempt(NEW, APPLIED, 0), attempt(NEW, APPLIED, 5)], stored(NEW))
    assert "applied twice" in first
    assert "applied after v4" in second


def test_an_old_write_that_is_applied_after_a_newer_one_shows_a_loss() -> None:
    attempts = [attempt(NEW, APPLIED, 0), attempt(OLD, APPLIED, 5), attempt(NEW, UNCHANGED, 8)]
    assert wrong(attempts, stored(NEW)) == ["lost: write a v2 was applied after v4 had been acknowledged"]
    at_the_same_time = [attempt(NEW, APPLIED, 0), attempt(OLD, APPLIED, 0.5)]
    assert wrong(at_the_same_time, stored(NEW)) == []


def test_an_old_write_that_is_still_stored_shows_a_loss() -> None:
    attempts = [attempt(OLD, APPLIED, 0), attempt(NEW, APPLIED, 2), attempt(OLD, UNCHANGED, 5), attempt(NEW, None, 8)]
    assert wrong(attempts, stored(NEW)) == ["lost: write a v2 was found stored after v4 had been acknowledged"]


def test_a_loss_within_one_batch_is_found() -> None:
    both = Attempt(by="", generation="", inputs=(NEW, OLD), start=0, end=1, outcomes=(APPLIED, APPLIED))
    assert wrong([both], stored(NEW)) == ["lost: write a v2 was applied after v4 had been acknowledged"]


def test_superseded_means_that_something_newer_exists() -> None:
    attempts = [attempt(OLD, APPLIED, 0), attempt(NEW, SUPERSEDED, 2)]
    assert "wrong: write a v4 was superseded, but nothing newer was ever sent" in wrong(attempts, stored(NEW))


def test_only_contradictions_and_poison_may_be_rejected() -> None:
    assert "was rejected, and 0 others" in wrong([attempt(NEW, REJECTED, 0)], {})[0]
    both = [attempt(NEW, APPLIED, 0), attempt(NEW, REJECTED, 2), attempt(CONTRADICTION, REJECTED, 3)]
    assert "was applied and rejected" in wrong(both, stored(NEW))[0]


def test_poison_is_never_taken() -> None:
    poison = Input("a", 4, poison=Poison.SERVER)
    assert "is poison, yet applied" in wrong([attempt(poison, APPLIED, 0)], stored(poison))[0]


def test_two_contents_of_one_version_cannot_both_be_acknowledged() -> None:
    attempts = [attempt(NEW, APPLIED, 0), attempt(CONTRADICTION, UNCHANGED, 2)]
    assert len([line for line in wrong(attempts, stored(NEW)) if "another content" in line]) == 2


def test_what_failed_and_was_never_sent_again_is_not_settled() -> None:
    for last in (attempt(NEW, FAILED, 0), attempt(NEW, None, 0)):
        assert "wrong: write a v4 was never settled" in wrong([last], {})


def test_a_result_too_few_is_found() -> None:
    short = Attempt(by="", generation="", inputs=(OLD, NEW), start=0, end=1, outcomes=(APPLIED,))
    again = attempt(NEW, APPLIED, 2)
    assert wrong([short, again], stored(NEW)) == ["wrong: 2 documents, 1 outcomes"]


@pytest.mark.parametrize("seen", [0, 2])
def test_a_reading_that_misses_an_acknowledged_write_is_a_loss(seen: int) -> None:
    attempts = [attempt(OLD, APPLIED, 0), attempt(NEW, APPLIED, 2)]
    lines = wrong(attempts, stored(NEW), reading(seen, 4))
    assert lines == [f"lost: a was read as v{seen} after v4 had been acknowledged"]


def test_a_reading_may_miss_what_is_being_written() -> None:
    attempts = [attempt(OLD, APPLIED, 0), attempt(NEW, APPLIED, 2)]
    assert wrong(attempts, stored(NEW), reading(2, 2.5), reading(4, 2.5), reading(0, 0.5)) == []


def test_a_reading_may_miss_what_is_being_deleted() -> None:
    attempts = [attempt(NEW, APPLIED, 0), attempt(DELETE, APPLIED, 5)]
    assert wrong(attempts, stored(DELETE), reading(0, 3)) == []


def test_a_journal_tells_what_was_heard_and_what_was_not(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    assert next_batch(path) == 0
    with path.open("a") as file:
        journal = Journal(file)
        journal.write("send", generation="first", number=0, start=1.0)
        journal.write("answer", end=2.0, outcomes=["applied"], reasons=[])
        journal.write("read", generation="first", start=2.0, end=3.0, seen={"a": 4})
        journal.write("next", number=0)
        journal.write("send", generation="first", number=1, start=3.0)
        file.write('{"event": "answer", "end": 4.0, "outc')
    with path.open("a") as file:
        journal = Journal(file)
        journal.write("send", generation="first", number=1, start=5.0)
        journal.write("failure", end=6.0, error="IndexUnavailable: no")
        journal.write("error", text="a get")
        journal.write("bug", text="a KeyError")
    history = read_journal(path, seed=7, writer=2)
    assert next_batch(path) == 1
    assert [(each.start, each.end, each.error) for each in history.attempts] == [
        (1.0, 2.0, ""),
        (3.0, None, ""),
        (5.0, 6.0, "IndexUnavailable: no"),
    ]
    assert history.attempts[0].outcomes == (APPLIED,)
    assert [each.inputs for each in history.attempts] == [tuple(batch(7, 2, number)) for number in (0, 1, 1)]
    assert history.readings == [Reading(generation="first", start=2.0, end=3.0, seen={"a": 4})]
    assert (history.errors, history.bugs) == (["writer 2: a get"], ["writer 2: a KeyError"])


def test_batches_hold_races_contradictions_deletes_and_poison() -> None:
    sent = {writer: {given for number in range(60) for given in batch(1, writer, number)} for writer in (0, 1)}
    versions = {writer: {(given.id, given.version) for given in inputs} for writer, inputs in sent.items()}
    assert versions[0] & versions[1]
    everything = sent[0] | sent[1]
    assert {given.poison for given in everything} == set(Poison)
    assert any(given.deletes for given in everything)
    assert any(given.variant for given in everything)
