from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from similarity.errors import LeaseHeld
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.writer_leases import LEASE_PREFIX, LEASE_SECONDS, WriterLease, wait_for_writers, writer_leases
from tests.contract.clock import Clock
from tests.contract.steps import add_live
from tests.factories import make_generation


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def index(tmp_path: Path, clock: Clock) -> Iterator[SqliteIndex]:
    with closing(SqliteIndex(tmp_path / "index.db", clock=clock)) as index:
        add_live(index, "first")
        yield index


def add_candidate(index: SqliteIndex, name: str = "second") -> int:
    index.create_generation(make_generation(name))
    index.register_candidate(name)
    return index.revision()


def writer_of(index: SqliteIndex, clock: Clock, holder: str = "w") -> WriterLease:
    return WriterLease(index, holder=holder, clock=lambda: clock().timestamp())


def acknowledged(index: SqliteIndex) -> list[int]:
    return [lease.acknowledged for lease in writer_leases(index)]


def test_a_writer_is_known_while_it_writes_and_no_longer(index: SqliteIndex, clock: Clock) -> None:
    with writer_of(index, clock):
        assert [lease.name for lease in index.leases()] == [f"{LEASE_PREFIX}w"]
    assert index.leases() == []


def test_two_writers_of_one_process_have_different_leases(index: SqliteIndex) -> None:
    with WriterLease(index) as one, WriterLease(index) as other:
        assert one.holder != other.holder
        assert len(writer_leases(index)) == 2


def test_a_new_target_is_acknowledged_before_the_batch_that_goes_to_it(index: SqliteIndex, clock: Clock) -> None:
    with writer_of(index, clock) as writer:
        assert [target.name for target in writer.targets()] == ["first"]
        revision = add_candidate(index)
        assert acknowledged(index) < [revision]
        assert [target.name for target in writer.targets()] == ["first", "second"]
        assert acknowledged(index) == [revision]


def test_a_lease_is_renewed_when_a_third_of_it_has_passed(index: SqliteIndex, clock: Clock) -> None:
    with writer_of(index, clock) as writer:
        writer.targets()
        (before,) = index.leases()
        clock.advance(LEASE_SECONDS / 4)
        writer.targets()
        assert index.leases() == [before]
        clock.advance(LEASE_SECONDS / 4)
        writer.targets()
        assert index.leases()[0].expires_at > before.expires_at


def test_a_writer_that_lost_its_lease_takes_a_new_one_and_looks_again(index: SqliteIndex, clock: Clock) -> None:
    with writer_of(index, clock) as writer:
        writer.targets()
        index.release_lease(index.leases()[0])
        revision = add_candidate(index)
        assert [target.name for target in writer.targets()] == ["first", "second"]
        assert acknowledged(index) == [revision]


def test_a_writer_without_with_takes_its_lease_before_its_first_batch(index: SqliteIndex, clock: Clock) -> None:
    writer = writer_of(index, clock)
    assert index.leases() == []
    assert [target.name for target in writer.targets()] == ["first"]
    assert acknowledged(index) == [index.revision()]
    writer.__exit__(None, None, None)
    assert index.leases() == []


def test_waiting_ends_when_the_last_writer_knows(index: SqliteIndex, clock: Clock) -> None:
    slept: list[float] = []
    with writer_of(index, clock) as writer:
        writer.targets()
        revision = add_candidate(index)

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            writer.targets()

        wait_for_writers(index, revision, timeout=60, clock=lambda: clock().timestamp(), sleep=sleep)
    assert len(slept) == 1


def test_waiting_ends_when_a_dead_writers_lease_does(index: SqliteIndex, clock: Clock) -> None:
    index.take_lease(f"{LEASE_PREFIX}dead", holder="dead", seconds=30)
    revision = add_candidate(index)
    began = clock()
    wait_for_writers(index, revision, timeout=60, clock=lambda: clock().timestamp(), sleep=clock.advance)
    assert 29 < (clock() - began).total_seconds() < 32


def test_waiting_in_vain_names_who_is_waited_for(index: SqliteIndex, clock: Clock) -> None:
    index.take_lease(f"{LEASE_PREFIX}slow", holder="slow", seconds=300)
    revision = add_candidate(index)
    with pytest.raises(LeaseHeld, match="1 writers have not acknowledged the new candidate after 60 seconds: slow"):
        wait_for_writers(index, revision, timeout=60, clock=lambda: clock().timestamp(), sleep=clock.advance)


def test_other_leases_are_not_waited_for(index: SqliteIndex, clock: Clock) -> None:
    index.take_lease("reembed", holder="me", seconds=300)
    wait_for_writers(index, add_candidate(index), timeout=0, clock=lambda: clock().timestamp(), sleep=clock.advance)
