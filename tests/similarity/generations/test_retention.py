"""Which generations go: a history is made by moving the stored times back, day by day."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from similarity.errors import InvalidInput
from similarity.generations.retention import prune
from similarity.index.protocol import Generation
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.renewed_leases import REEMBED
from tests.factories import make_generation

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


class DatedIndex(SqliteIndex):
    """An index whose generations went live when the test says."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.went_live: dict[str, datetime] = {}

    def generations(self) -> list[Generation]:
        return [
            replace(generation, promoted_at=self.went_live.get(generation.name)) for generation in super().generations()
        ]

    def begin(self, name: str, *, day: int) -> None:
        self.create_generation(make_generation(name, created_at=START + day * DAY))

    def go_live(self, name: str, *, day: int) -> None:
        self.begin(name, day=day)
        self.register_candidate(name)
        self.promote(name)
        self.went_live[name] = START + day * DAY

    def names(self) -> set[str]:
        return {generation.name for generation in self.generations()}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[DatedIndex]:
    index = DatedIndex(tmp_path / "index.db")
    for number, name in enumerate(["first", "second", "third", "fourth"]):
        index.go_live(name, day=10 * number)
    yield index
    index.close()


def test_previous_ones_beyond_those_to_keep_are_retired(index: DatedIndex) -> None:
    assert prune(index, keep=1, older_than=DAY, now=START + 90 * DAY) == ["second", "first"]
    assert index.names() == {"third", "fourth"}


def test_the_live_one_stays_whatever_is_asked(index: DatedIndex) -> None:
    assert prune(index, keep=0, older_than=timedelta(0), now=START + 900 * DAY) == ["third", "second", "first"]
    assert index.names() == {"fourth"}


def test_age_counts_from_when_a_generation_was_replaced(index: DatedIndex) -> None:
    # The second served until day 20; the first until day 10.
    assert prune(index, keep=0, older_than=10 * DAY, now=START + 29 * DAY) == ["first"]
    assert prune(index, keep=0, older_than=10 * DAY, now=START + 30 * DAY) == ["second"]


def test_a_clock_that_was_ahead_at_a_promotion_keeps_nothing_longer(index: DatedIndex) -> None:
    index.went_live["second"] = START + 400 * DAY
    assert prune(index, keep=1, older_than=DAY, now=START + 90 * DAY) == ["second", "first"]


def test_after_a_rollback_the_one_rolled_back_from_counts_from_then(index: DatedIndex) -> None:
    index.rollback()
    index.went_live["third"] = START + 50 * DAY
    assert prune(index, keep=0, older_than=10 * DAY, now=START + 59 * DAY) == ["second", "first"]
    assert prune(index, keep=0, older_than=10 * DAY, now=START + 60 * DAY) == ["fourth"]
    assert index.live().name == "third"


def test_a_dry_run_names_the_same_and_retires_nothing(index: DatedIndex) -> None:
    named = prune(index, keep=1, older_than=DAY, now=START + 90 * DAY, dry_run=True)
    assert index.names() == {"first", "second", "third", "fourth"}
    assert prune(index, keep=1, older_than=DAY, now=START + 90 * DAY) == named == ["second", "first"]


def test_a_candidate_stays_however_old(index: DatedIndex) -> None:
    index.begin("slow", day=0)
    index.register_candidate("slow")
    assert "slow" not in prune(index, keep=0, older_than=DAY, now=START + 900 * DAY)
    assert "slow" in index.names()


def test_building_ones_are_retired_once_they_are_old(index: DatedIndex) -> None:
    index.begin("abandoned", day=40)
    index.begin("begun", day=80)
    assert prune(index, keep=3, older_than=30 * DAY, now=START + 90 * DAY) == ["abandoned"]
    assert index.names() == {"first", "second", "third", "fourth", "begun"}


def test_building_ones_stay_while_a_re_embed_may_be_filling_them(index: DatedIndex) -> None:
    index.begin("abandoned", day=40)
    lease = index.take_lease(REEMBED, holder="somebody", seconds=60)
    assert prune(index, keep=2, older_than=DAY, now=START + 90 * DAY, dry_run=True) == ["first"]
    assert prune(index, keep=2, older_than=DAY, now=START + 90 * DAY) == ["first"]
    index.release_lease(lease)
    assert prune(index, keep=2, older_than=DAY, now=START + 90 * DAY, dry_run=True) == ["abandoned"]
    assert prune(index, keep=2, older_than=DAY, now=START + 90 * DAY) == ["abandoned"]
    assert index.leases() == []


class RacingIndex(DatedIndex):
    """Somebody rolls back, and retires a generation, just before the first one is retired here."""

    raced = False

    def retire(self, name: str) -> None:
        if not self.raced:
            self.raced = True
            self.rollback()
            super().retire("first")
        super().retire(name)


def test_what_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    index = RacingIndex(tmp_path / "racing.db")
    for number, name in enumerate(["first", "second", "third", "fourth"]):
        index.go_live(name, day=10 * number)
    assert prune(index, keep=0, older_than=DAY, now=START + 90 * DAY) == ["second"]
    assert (index.live().name, index.names()) == ("third", {"third", "fourth"})
    index.close()


@pytest.mark.parametrize(("keep", "older_than"), [(-1, DAY), (1, -DAY)])
def test_negative_settings_are_refused(index: DatedIndex, keep: int, older_than: timedelta) -> None:
    with pytest.raises(InvalidInput, match="must not be negative"):
        prune(index, keep=keep, older_than=older_than, now=START)
