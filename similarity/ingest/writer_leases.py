"""Writer leases: they ensure that no write misses a new generation.

A re-embed registers a candidate and then copies the live generation into it. Suppose a load read the
list of generations a moment earlier: its batch goes to the live generation only. If the copy has already
passed those companies, the candidate would never receive that batch.

Therefore each writer holds a lease in the index and, before each batch, reads the `revision` of the
generations. If it has changed, the writer reads the list of generations again and acknowledges the
revision: after the previous batch is complete and *before* the next one is written. The re-embed registers
its candidate, and copies nothing until every lease has acknowledged that revision or has expired.

The lease protects the re-embed, not the writer: a writer whose lease expired (the process was paused)
takes a new one and continues. `write_changes` reads the targets once more after its write: if the process slept past
its lease in between, the same batch is written to the generation that it missed, before it is acknowledged.
"""

import os
import re
import secrets
import socket
import time
from collections.abc import Callable
from types import TracebackType

from similarity.errors import IndexUnavailable, LeaseHeld, LeaseLost
from similarity.index.protocol import CompanyIndex, Generation, Lease

LEASE_PREFIX = "writer."
LEASE_SECONDS = 180.0
"""Duration of a lease: the longest delay of a re-embed by a dead writer. A batch must take at most 2/3 of this time."""
POLL_SECONDS = 0.2


class WriterLease:
    """A writer's lease on an index, and the generations to write to. One per thread.

    `with` takes the lease and releases it. Without `with`, the first `targets` takes it: for a writer that must
    be able to start while the index is away.

    `holder` is 1-121 of `[A-Za-z0-9._:-]`; by default host, process and a random suffix.
    """

    def __init__(
        self,
        index: CompanyIndex,
        *,
        holder: str = "",
        seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.index = index
        self.holder = holder or new_holder()
        self._seconds = seconds
        self._clock = clock
        self._lease: Lease | None = None
        self._renewed = 0.0
        self._revision: int | None = None
        self._targets: list[Generation] = []

    def __enter__(self) -> "WriterLease":
        self._lease = self._take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lease is None:
            return
        try:
            self.index.release_lease(self._lease)
        except IndexUnavailable:
            if error is None:
                raise
            # Do not hide the first exception; the lease expires by itself.

    def targets(self) -> list[Generation]:
        """Return the generations that the next batch must be written to.

        Call it before every batch, after the previous batch is complete.

        Raises:
            IndexUnavailable: the lease cannot be renewed, so nothing may be written.
        """
        if self._lease is None:
            self._lease = self._take()
        is_old = self._clock() - self._renewed > self._seconds / 3
        if is_old or self.index.revision() != self._revision:
            try:
                self._acknowledge(self._lease)
            except LeaseLost:
                self._acknowledge(self._take())
        return list(self._targets)

    def _take(self) -> Lease:
        return self.index.take_lease(LEASE_PREFIX + self.holder, holder=self.holder, seconds=self._seconds)

    def _acknowledge(self, lease: Lease) -> None:
        began = self._clock()
        # In this order: the targets are then at least as new as the revision that is acknowledged.
        revision = self.index.revision()
        self._targets = self.index.write_targets()
        self._lease = self.index.renew_lease(lease, seconds=self._seconds, acknowledged=revision)
        self._revision, self._renewed = revision, began


def wait_for_writers(
    index: CompanyIndex,
    revision: int,
    *,
    timeout: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until every writer lease has acknowledged `revision` or has expired.

    Raises:
        LeaseHeld: some leases have done neither after `timeout` seconds; the message names their holders.
    """
    deadline = clock() + timeout
    while late := [lease for lease in writer_leases(index) if lease.acknowledged < revision]:
        if clock() >= deadline:
            named = ", ".join(f"{lease.holder} (until {lease.expires_at:%H:%M:%S} UTC)" for lease in late[:10])
            raise LeaseHeld(
                f"{len(late)} writers have not acknowledged the new candidate after {timeout:.0f} seconds: {named}; "
                "each does with its next batch, or its lease expires: run the same command again, it continues"
            )
        sleep(POLL_SECONDS)


def writer_leases(index: CompanyIndex) -> list[Lease]:
    """Return the leases of the active writers."""
    return [lease for lease in index.leases() if lease.name.startswith(LEASE_PREFIX)]


def new_holder() -> str:
    """Return a unique holder name: host, process id and a random suffix."""
    return f"{host_name()}.{os.getpid()}.{secrets.token_hex(4)}"


def host_name() -> str:
    """Return the name of this host as holder names contain it."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:64]
