"""Writes of many requests become few batches, and each request gets its own results."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from services.search.guards.callers import Caller, current_caller
from services.search.wire.problem_documents import Problem
from services.search.writes import group_commit
from services.search.writes.group_commit import SHARED_BATCH, Commit, GroupCommit, Written, weight_of
from services.search.writes.write_schemas import Outcome
from similarity.company import Company, DeletedCompany
from similarity.errors import IndexUnavailable
from similarity.ingest.records import Change, VersionedCompany

SECONDS = 10.0


class GatedDestination:
    """Commits when it is let; remembers the batches and which threads committed them."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.threads: set[int] = set()
        self.opened_times = 0
        self.gate = threading.Event()
        self.gate.set()
        self.began = threading.Event()
        self.error: Exception | None = None

    @contextmanager
    def opened(self) -> Iterator[Commit]:
        self.opened_times += 1
        yield self.commit

    def commit(self, changes: Sequence[Change]) -> list[Written]:
        self.threads.add(threading.get_ident())
        self.batches.append([change.id for change in changes])
        self.began.set()
        assert self.gate.wait(SECONDS)
        if self.error is not None:
            raise self.error
        if "poison" in self.batches[-1]:
            raise ZeroDivisionError("a fault of ours")
        return [Written(Outcome.APPLIED, change.id) for change in changes]


def change(company_id: str) -> DeletedCompany:
    return DeletedCompany(id=company_id, version=3)


def test_each_request_gets_its_own_results_in_order() -> None:
    commits = GroupCommit(GatedDestination())
    with ThreadPoolExecutor(8) as pool:
        asked = [[f"c{number}", f"d{number}"] for number in range(50)]
        answers = list(
            pool.map(lambda ids: commits.write([change(each) for each in ids], waits_longer_for_slot=True), asked)
        )
    commits.close()
    assert [[written.reason for written in answer] for answer in answers] == asked


def test_what_waits_while_a_batch_is_under_way_is_the_next_batch() -> None:
    destination = GatedDestination()
    commits = GroupCommit(destination)
    destination.gate.clear()
    with ThreadPoolExecutor(8) as pool:
        pool.submit(commits.write, [change("first")])
        assert destination.began.wait(SECONDS)
        later = [pool.submit(commits.write, [change(f"c{number}")]) for number in range(4)]
        wait_until(lambda: len(commits._queue) == 4)
        destination.gate.set()
        assert {done.result()[0].reason for done in later} == {f"c{number}" for number in range(4)}
    commits.close()
    assert [len(batch) for batch in destination.batches] == [1, 4]
    assert len(destination.threads) == 1


def write_as(commits: GroupCommit, caller: str, *ids: str) -> None:
    current_caller.set(Caller(caller, frozenset()))
    commits.write([change(each) for each in ids])


def batches_of(*writes: str) -> list[str]:
    """Return the batches of the writes that wait while the first one is committed; each write: caller and ids."""
    destination = GatedDestination()
    commits = GroupCommit(destination)
    destination.gate.clear()
    with ThreadPoolExecutor(16) as pool:
        for number, write in enumerate(writes):
            pool.submit(write_as, commits, *write.split())
            assert destination.began.wait(SECONDS)
            wait_until(lambda queued=number: len(commits._queue) == queued)  # type: ignore[misc]
        destination.gate.set()
    commits.close()
    return [" ".join(batch) for batch in destination.batches]


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has written counts as one that writes for as long as a test lasts."""
    monkeypatch.setattr(group_commit, "SECONDS_SHARED", SECONDS)


@pytest.mark.usefixtures("shared")
def test_only_a_single_request_may_have_more_changes_than_a_full_batch() -> None:
    assert batches_of("b 1", "a 2 3", "a 4", "a 5 6", "a 7 8 9 10 11", "a 12") == [
        "1",
        "2 3 4",
        "5 6",
        "7 8 9 10 11",
        "12",
    ]


@pytest.mark.usefixtures("shared")
def test_a_write_does_not_wait_for_those_that_another_caller_sent_before() -> None:
    assert batches_of("bulk 1", "bulk 2 3 4 5", "bulk 6", "bulk 7", "other 8") == ["1", "8", "2 3 4 5", "6 7"]


@pytest.mark.parametrize(("characters", "weight"), [(300, 1), (2_000, 3), (30_000, SHARED_BATCH)])
def test_a_long_description_takes_more_of_a_batch(characters: int, weight: int) -> None:
    company = Company(id="a", name="A", description="x" * characters)
    assert weight_of(VersionedCompany(company=company, version=1)) == weight
    assert weight_of(DeletedCompany(id="a", version=1)) == 1


def test_a_caller_that_writes_alone_has_larger_batches() -> None:
    assert batches_of("a 1", "a 2 3", "a 4 5 6 7", "a 8") == ["1", "2 3 4 5 6 7 8"]


@pytest.mark.usefixtures("shared")
def test_callers_take_turns() -> None:
    assert batches_of("a 1", "a 2", "b 3", "a 4", "b 5", "c 6", "a 7 8 9") == ["1", "3 5", "6", "2 4", "7 8 9"]


def test_a_full_queue_refuses_at_once_and_writes_nothing() -> None:
    destination = GatedDestination()
    commits = GroupCommit(destination, max_waiting=2)
    destination.gate.clear()
    with ThreadPoolExecutor(3) as pool:
        pool.submit(commits.write, [change("under-way")])
        assert destination.began.wait(SECONDS)
        waiting = pool.submit(commits.write, [change("waiting")])
        wait_until(lambda: len(commits._queue) == 1)
        with pytest.raises(Problem, match="too many writes are waiting") as refused:
            commits.write([change("refused")])
        patient = pool.submit(commits.write, [change("patient")], waits_longer_for_slot=True)
        destination.gate.set()
        assert [waiting.result()[0].reason, patient.result()[0].reason] == ["waiting", "patient"]
    commits.close()
    assert refused.value.kind.retry_after == 1
    assert "refused" not in [company_id for batch in destination.batches for company_id in batch]


def test_a_store_that_hangs_is_said_and_what_only_waited_is_not_written() -> None:
    destination = GatedDestination()
    commits = GroupCommit(destination, max_wait_seconds=0.05)
    destination.gate.clear()
    with pytest.raises(Problem, match="may or may not be stored"):
        commits.write([change("under-way")])
    with pytest.raises(Problem, match="nothing was written"):
        commits.write([change("waiting")])
    destination.gate.set()
    commits.close()
    assert destination.batches == [["under-way"]]


def test_the_time_in_the_queue_is_part_of_the_time_that_a_write_may_take() -> None:
    class SlowDestination(GatedDestination):
        """Commits one batch for each permit."""

        permits = threading.Semaphore(0)

        def commit(self, changes: Sequence[Change]) -> list[Written]:
            self.began.set()
            assert self.permits.acquire(timeout=SECONDS)
            return super().commit(changes)

    destination = SlowDestination()
    commits = GroupCommit(destination, max_waiting=2, max_wait_seconds=1.0)
    with ThreadPoolExecutor(3) as pool:
        pool.submit(commits.write, [change("under-way")])
        assert destination.began.wait(SECONDS)
        pool.submit(commits.write, [change("waiting")])
        wait_until(lambda: len(commits._queue) == 1)
        start = time.monotonic()
        patient = pool.submit(commits.write, [change("patient")], waits_longer_for_slot=True)
        time.sleep(0.7)
        destination.permits.release()  # "waiting" is taken from the queue, and "patient" gets its slot
        with pytest.raises(Problem, match="nothing was written"):
            patient.result()
        assert time.monotonic() - start < 1.5
        destination.permits.release()
    commits.close()
    assert destination.batches == [["under-way"], ["waiting"]]


def test_an_error_of_the_sink_is_said_to_all_and_the_next_write_is_tried() -> None:
    destination = GatedDestination()
    commits = GroupCommit(destination)
    destination.error = IndexUnavailable("the disk is full")
    for _ in range(2):
        with pytest.raises(IndexUnavailable, match="the disk is full"):
            commits.write([change("acme")])
    destination.error = None
    assert commits.write([change("acme")]) == [Written(Outcome.APPLIED, "acme")]
    commits.close()


def test_a_sink_that_cannot_be_opened_is_said_and_tried_again() -> None:
    class Closed(GatedDestination):
        @contextmanager
        def opened(self) -> Iterator[Commit]:
            with super().opened() as commit:
                if self.opened_times == 1:
                    raise IndexUnavailable("no lease")
                yield commit

    commits = GroupCommit(Closed())
    with pytest.raises(IndexUnavailable, match="no lease"):
        commits.write([change("acme")])
    assert commits.write([change("acme")])[0].outcome is Outcome.APPLIED
    commits.close()


def test_a_fault_that_one_request_brings_to_light_fails_that_one_alone() -> None:
    destination = GatedDestination()
    commits = GroupCommit(destination)
    destination.gate.clear()
    with ThreadPoolExecutor(4) as pool:
        pool.submit(commits.write, [change("first")])
        assert destination.began.wait(SECONDS)
        good = pool.submit(commits.write, [change("good")])
        bad = pool.submit(commits.write, [change("poison")])
        wait_until(lambda: len(commits._queue) == 2)
        destination.gate.set()
        assert good.result()[0].outcome is Outcome.APPLIED
        with pytest.raises(ZeroDivisionError):
            bad.result()
    commits.close()


def test_a_sink_is_closed_when_there_is_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "IDLE_SECONDS_OPEN", 0.02)
    destination = GatedDestination()
    commits = GroupCommit(destination)
    commits.write([change("a")])
    time.sleep(0.2)
    commits.write([change("b")])
    commits.close()
    assert destination.opened_times == 2


def test_closing_finishes_what_waits_and_takes_no_more() -> None:
    destination = GatedDestination()
    commits = GroupCommit(destination)
    destination.gate.clear()
    with ThreadPoolExecutor(3) as pool:
        pool.submit(commits.write, [change("under-way")])
        assert destination.began.wait(SECONDS)
        waiting = pool.submit(commits.write, [change("waiting")])
        wait_until(lambda: len(commits._queue) == 1)
        closing = pool.submit(commits.close)
        wait_until(lambda: commits._stopping)
        with pytest.raises(Problem, match="the service is stopping"):
            commits.write([change("late")])
        destination.gate.set()
        closing.result()
        assert waiting.result()[0].reason == "waiting"


def test_closing_what_never_wrote_is_nothing() -> None:
    GroupCommit(GatedDestination()).close()


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)
