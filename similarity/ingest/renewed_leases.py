"""Leases that are renewed while a `with` block runs, among them the lease of a load."""

import os
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from similarity.errors import IndexUnavailable, LeaseHeld, LeaseLost
from similarity.index.protocol import CompanyIndex, Lease
from similarity.ingest.writer_leases import host_name, new_holder

LOAD = "load"
ERASE = "erase"
"""Name of the lease for finishing erasures: one process at a time."""
REEMBED = "reembed"
"""Name of the lease for filling, promoting or removing a candidate: one process at a time."""
RETIRE = "retire"
"""Name of the lease for removing a generation that was live: a removal reads which company names the others hold."""
LEASE_SECONDS = 60.0
SECONDS_BETWEEN_TRIES = 0.2


class RenewedLease:
    """A lease that a thread renews until the `with` block ends, because one step of the work may take an hour.

    `patience`: for how many seconds another holder is waited for.

    Raises:
        LeaseHeld: another holder has the lease.
    """

    def __init__(
        self, index: CompanyIndex, name: str, *, seconds: float = LEASE_SECONDS, patience: float = 0.0
    ) -> None:
        self.index = index
        self._name = name
        self._seconds = seconds
        self._patience = patience
        self._lease: Lease | None = None
        self._valid_until = 0.0  # by the clock of this process, from before the request that took or renewed it
        self._ended = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name=f"lease {name}", daemon=True)

    def __enter__(self) -> Self:
        deadline = time.monotonic() + self._patience
        while self._lease is None:
            try:
                self._lease = self._taken()
            except LeaseHeld:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(SECONDS_BETWEEN_TRIES)
        self._keeper.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._keeper.join()
        try:
            if self._lease is not None:
                self.index.release_lease(self._lease)
        except IndexUnavailable:
            if error is None:
                raise
            # Do not hide the first exception; the lease expires by itself.

    def held(self) -> Lease:
        """Renew and return the lease. Raises LeaseLost if it is not held any more; then stop the work."""
        if self._lease is None:
            raise LeaseLost(f"the lease {self._name!r} was not taken yet; use it with 'with'")
        with suppress(IndexUnavailable):  # it may be available again before the lease expires
            asked = time.monotonic()
            self._lease = self.index.renew_lease(self._lease, seconds=self._seconds)
            self._valid_until = asked + self._seconds
        return self._lease

    def require(self) -> None:
        """Raise LeaseLost if the lease may have ended, because it could not be renewed in time. Sends no request."""
        if time.monotonic() >= self._valid_until:
            raise LeaseLost(f"the lease {self._name!r} could not be renewed in time; the work is done again")

    def _taken(self) -> Lease:
        asked = time.monotonic()
        lease = self.index.take_lease(self._name, holder=new_holder(), seconds=self._seconds)
        self._valid_until = asked + self._seconds
        return lease

    def _keep(self) -> None:
        while not self._ended.wait(self._seconds / 3):
            try:
                self.held()
            except LeaseLost:
                self._valid_until = 0.0
                return  # the next `held` or `require` raises it again


class LoadLease(RenewedLease):
    """The lease of a load: one load of an index at a time.

    A load overwrites no newer version. But a company that a load found unchanged keeps its old version, so an older
    load that still runs could replace or delete this company.

    Raises:
        LeaseHeld: another load runs. The lease of a load that was killed is taken over if it ran on this host;
            otherwise that lease ends within LEASE_SECONDS.
    """

    def __init__(self, index: CompanyIndex) -> None:
        super().__init__(index, LOAD)

    def __enter__(self) -> Self:
        for lease in self.index.leases():
            if lease.name == LOAD and _has_ended(lease.holder):
                self.index.release_lease(lease)
        try:
            return super().__enter__()
        except LeaseHeld as error:
            raise LeaseHeld(f"another load of this index runs, so nothing was written: {error}") from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.held()  # a load that slept past its lease may have written over a newer one
        finally:
            super().__exit__(kind, error, trace)


def _has_ended(holder: str) -> bool:
    """Return whether the process that made this holder name ran on this host and has ended."""
    host, process, _ = holder.rsplit(".", 2)
    if host != host_name():
        return False
    try:
        os.kill(int(process), 0)  # sends no signal
    except ProcessLookupError:
        return True
    except PermissionError:  # the process of another user
        return False
    return False
