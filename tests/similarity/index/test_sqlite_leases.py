import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Timer

import pytest

from similarity.errors import LeaseHeld, LeaseLost
from similarity.index.sqlite import SqliteIndex
from tests.contract.clock import Clock
from tests.contract.steps import add_candidate, add_live


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


@pytest.fixture
def index(path: Path, clock: Clock) -> Iterator[SqliteIndex]:
    with closing(SqliteIndex(path, clock=clock)) as index:
        yield index


@pytest.fixture
def other(index: SqliteIndex, clock: Clock) -> Iterator[SqliteIndex]:
    """The same file, opened once more as another process does."""
    with closing(SqliteIndex(index.path, clock=clock)) as other:
        yield other


def test_all_who_open_the_file_see_its_leases_and_its_revision(index: SqliteIndex, other: SqliteIndex) -> None:
    lease = index.take_lease("reembed", holder="a", seconds=60)
    with pytest.raises(LeaseHeld, match="'a'"):
        other.take_lease("reembed", holder="b", seconds=60)
    before = other.revision()
    add_live(index, "first")
    assert other.revision() == index.revision() > before
    assert other.renew_lease(lease, seconds=60, acknowledged=other.revision()).acknowledged == index.revision()
    assert index.leases() == other.leases()


def test_a_lease_outlives_its_process(path: Path, clock: Clock) -> None:
    with closing(SqliteIndex(path, clock=clock)) as index:
        lease = index.take_lease("reembed", holder="a", seconds=60)
    with closing(SqliteIndex(path, clock=clock)) as index:
        assert index.leases() == [lease]
        clock.advance(61)
        assert index.take_lease("reembed", holder="b", seconds=60).fence > lease.fence


def test_a_lease_is_over_when_its_time_has_come(index: SqliteIndex, clock: Clock) -> None:
    lease = index.take_lease("reembed", holder="a", seconds=60)
    add_candidate(index, "first")
    clock.advance(60)
    assert index.leases() == []
    with pytest.raises(LeaseLost):
        index.promote("first", lease=lease)
    assert index.take_lease("reembed", holder="b", seconds=60).holder == "b"


def test_the_time_counts_from_when_the_file_could_be_written(index: SqliteIndex, clock: Clock) -> None:
    """A take that waits for another process's write must not be given a lease that has run down meanwhile."""
    with closing(sqlite3.connect(index.path, isolation_level=None, check_same_thread=False)) as writer:
        writer.execute("BEGIN IMMEDIATE")

        def give_way() -> None:
            clock.advance(30)
            writer.execute("COMMIT")

        timer = Timer(0.05, give_way)
        timer.start()
        lease = index.take_lease("reembed", holder="a", seconds=60)
        timer.join()
    assert (lease.expires_at - clock()).total_seconds() == 60


def test_a_revision_that_was_undone_is_not_counted(index: SqliteIndex) -> None:
    add_candidate(index, "first")
    before = index.revision()
    with closing(sqlite3.connect(index.path)) as spy:
        spy.execute(
            "CREATE TRIGGER fail AFTER UPDATE OF promotion ON generations BEGIN SELECT raise(ABORT, 'planned'); END"
        )
    with pytest.raises(sqlite3.IntegrityError, match="planned"):
        index.promote("first")
    assert index.revision() == before
