"""An absent store is one line a minute in the log, with how many failures were left out, and one when it is back."""

from collections.abc import Iterator

import pytest

from similarity.errors import IndexUnavailable, UnknownGeneration
from similarity.upkeep.outage import Outage, watched


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Store:
    """A store that can be switched off."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.size = 3

    def get(self, name: str) -> str:
        if self.error is not None:
            raise self.error
        return name

    def scan(self) -> Iterator[str]:
        yield self.get("a")

    def close(self) -> None:
        pass


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_an_outage_is_one_line_a_minute_and_one_when_it_is_over(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage("the index", clock=clock)
    for _ in range(1, 121):
        outage.away("connection refused")
        clock.now += 1
    outage.over()
    outage.over()
    assert lines(caplog) == [
        "the index is away: connection refused",
        "the index is away: connection refused (and 59 more failures since the last line)",
        "the index is back after 120 s (and 59 more failures since the last line)",
    ]
    assert not any(record.exc_info for record in caplog.records)


def test_a_store_that_fails_now_and_then_is_logged_once_a_minute_all_the_same(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    outage = Outage("the index", clock=clock)
    for _ in range(59):
        outage.away("answered 503")
        outage.over()
        clock.now += 1
    assert lines(caplog) == ["the index is away: answered 503", "the index is back after 0 s"]


def test_the_calls_of_a_watched_store_are_failures_and_answers(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    index = watched(store, Outage("the index"))
    assert index.get("a") == "a"
    assert index.size == 3
    store.error = IndexUnavailable("nothing listens at 127.0.0.1:9")
    for _ in range(3):
        with pytest.raises(IndexUnavailable):
            index.get("a")
    index.scan()
    index.close()
    assert lines(caplog) == ["the index is away: nothing listens at 127.0.0.1:9"]
    store.error = UnknownGeneration("retired")
    with pytest.raises(UnknownGeneration):
        index.get("a")
    assert lines(caplog)[1:] == ["the index is back after 0 s (and 2 more failures since the last line)"]


def test_a_bug_is_neither(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    store.error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        watched(store, Outage("the index")).get("a")
    assert lines(caplog) == []


def test_a_store_is_watched_once() -> None:
    index = watched(Store(), Outage("the index"))
    assert watched(index, Outage("another")) is index
