"""`/readyz` may be asked by anybody, in a loop; the index counts once a second."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from services.search.asking.recent_counts import RecentCounts
from similarity.errors import IndexUnavailable
from similarity.index.protocol import GenerationStats


class Counting:
    """Counts how often it is counted, and does so only while `open`."""

    def __init__(self) -> None:
        self.counted: list[str] = []
        self.trouble: Exception | None = None
        self.entered = Event()
        self.open = Event()
        self.open.set()

    def stats(self, generation: str) -> GenerationStats:
        self.counted.append(generation)
        self.entered.set()
        assert self.open.wait(10)
        if self.trouble:
            raise self.trouble
        return GenerationStats(companies=len(self.counted), deleted=0, last_version=0)


@pytest.fixture
def index() -> Counting:
    return Counting()


@pytest.fixture
def now() -> list[float]:
    return [100.0]


@pytest.fixture
def counts(index: Any, now: list[float]) -> Iterator[RecentCounts]:
    yield RecentCounts(index, clock=lambda: now[0])
    index.open.set()


def test_within_a_second_it_is_counted_once(counts: RecentCounts, index: Counting, now: list[float]) -> None:
    assert [counts.of("first") for _ in range(100)] == [1] * 100
    now[0] += 0.99
    assert counts.of("first") == 1
    now[0] += 0.01
    assert counts.of("first") == 2
    assert index.counted == ["first", "first"]


def test_another_generation_is_counted_at_once(counts: RecentCounts, index: Counting) -> None:
    assert [counts.of("first"), counts.of("second"), counts.of("second")] == [1, 2, 2]
    assert index.counted == ["first", "second"]


def test_while_one_counts_others_do_not_wait(counts: RecentCounts, index: Counting, now: list[float]) -> None:
    counts.of("first")
    now[0] += 5
    index.open.clear()
    index.entered.clear()
    with ThreadPoolExecutor(1) as pool:
        counting = pool.submit(counts.of, "first")
        assert index.entered.wait(10)
        assert [counts.of("first") for _ in range(10)] == [1] * 10
        index.open.set()
        assert counting.result(10) == 2
    assert counts.of("first") == 2


def test_what_could_not_be_counted_is_said_and_counted_anew(
    counts: RecentCounts, index: Counting, now: list[float]
) -> None:
    counts.of("first")
    now[0] += 5
    index.trouble = IndexUnavailable("away")
    for _ in range(2):
        with pytest.raises(IndexUnavailable):
            counts.of("first")
    index.trouble = None
    assert counts.of("first") == 4
