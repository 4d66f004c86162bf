import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from similarity.errors import IndexUnavailable, LeaseHeld, LeaseLost
from similarity.index.protocol import CompanyIndex
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.renewed_leases import LOAD, LoadLease, RenewedLease
from similarity.ingest.writer_leases import host_name
from tests.similarity.generations.staging import Watched

SECONDS = 1.5


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        yield index


def soon(happened: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def lost(lease: RenewedLease) -> bool:
    try:
        lease.held()
    except LeaseLost:
        return True
    return False


def test_a_lease_is_kept_while_the_block_runs_and_given_back_after_it(index: SqliteIndex) -> None:
    with RenewedLease(index, "reembed", seconds=SECONDS) as lease:
        began = lease.held().expires_at
        assert soon(lambda: lease.held().expires_at > began)
        with pytest.raises(LeaseHeld):
            index.take_lease("reembed", holder="another", seconds=1)
    assert index.leases() == []


def test_another_holder_is_waited_for(index: SqliteIndex) -> None:
    index.take_lease("erase", holder="another", seconds=0.5)
    with pytest.raises(LeaseHeld), RenewedLease(index, "erase", patience=0.1):
        pass
    with RenewedLease(index, "erase", patience=60):
        assert [lease.name for lease in index.leases()] == ["erase"]


def test_a_lease_that_another_took_over_is_noticed(index: SqliteIndex) -> None:
    with RenewedLease(index, "reembed", seconds=SECONDS) as lease:
        index.release_lease(lease.held())
        taken = index.take_lease("reembed", holder="another", seconds=60)
        assert soon(lambda: lost(lease))
    assert index.leases() == [taken], "the other's lease is not given back"


def test_an_index_that_does_not_answer_for_a_moment_costs_no_lease(index: SqliteIndex) -> None:
    def disturb(call: int) -> None:
        if call == 2:
            raise IndexUnavailable("a moment, please")

    watched = Watched(index, disturb)
    with RenewedLease(cast(CompanyIndex, watched), "reembed", seconds=SECONDS) as lease:
        began = lease.held().expires_at
        assert soon(lambda: lease.held().expires_at > began)
    assert watched.calls > 2


def test_the_first_error_is_told_even_if_the_lease_cannot_be_given_back(index: SqliteIndex) -> None:
    class Closing(Watched):
        def release_lease(self, lease: Any) -> None:
            raise IndexUnavailable("it is gone")

    gone = cast(CompanyIndex, Closing(index))
    with pytest.raises(ValueError, match="the first"), RenewedLease(gone, "reembed"):
        raise ValueError("the first")
    index.release_lease(index.leases()[0])
    with pytest.raises(IndexUnavailable, match="it is gone"), RenewedLease(gone, "reembed"):
        pass


def test_a_lease_must_be_taken_first(index: SqliteIndex) -> None:
    with pytest.raises(LeaseLost, match="use it with 'with'"):
        RenewedLease(index, "reembed").held()


def test_a_second_load_is_refused_with_host_and_process_of_the_first(index: SqliteIndex) -> None:
    with LoadLease(index) as first:
        message = rf"another load of this index runs, so nothing was written: .* held by '{host_name()}\.\d+\."
        with pytest.raises(LeaseHeld, match=message), LoadLease(index):
            pass
        first.held()
    with LoadLease(index):
        pass


def test_a_load_that_lost_its_lease_at_the_end_reports_no_success(index: SqliteIndex) -> None:
    def sleep_past_it(lease: LoadLease) -> None:
        with lease:
            index.release_lease(lease.held())
            index.take_lease(LOAD, holder="another", seconds=60)

    with pytest.raises(LeaseLost):
        sleep_past_it(LoadLease(index))


@pytest.mark.parametrize(("host", "is_taken_over"), [(host_name(), True), ("another-host", False)])
def test_a_load_that_was_killed_on_this_host_blocks_no_other(
    index: SqliteIndex, host: str, is_taken_over: bool
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as load:
        index.take_lease(LOAD, holder=f"{host}.{load.pid}.0", seconds=60)
        with pytest.raises(LeaseHeld), LoadLease(index):
            pass
        load.kill()
    if is_taken_over:
        with LoadLease(index):
            pass
    else:
        with pytest.raises(LeaseHeld), LoadLease(index):
            pass
