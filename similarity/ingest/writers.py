"""What keeps a write from missing a generation: every writer holds a lease and says what it knows.

A re-embed registers a candidate and then copies the live generation into it. Think of a load that
read the list of generations a moment earlier: its batch is on its way to the live generation alone.
If the copy has passed those companies by then, the candidate would never hear of that batch.

So each writer holds a lease in the index, and before each batch asks for the `revision` of the
generations. When it has changed, the writer reads whom to write to anew and acknowledges the
revision, *before* the batch is written and after the one before it is done. The re-embed registers
its candidate, and copies nothing until every lease has acknowledged that revision or has expired.

The lease protects the re-embed, not the writer: a writer that lost its lease (it slept past the end)
takes a new one and goes on.
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
"""A batch is written within two thirds of this; a writer that died delays a re-embed by this at most."""
POLL_SECONDS = 0.2


class Writer:
    """The right to write to an index, and the generations to write to. One per thread; use it with `with`.

    `holder` is 1-121 of `[A-Za-z0-9._:-]`; by default host, process and a random end.
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

    def __enter__(self) -> "Writer":
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
            # What went wrong first is what the caller has to hear of; the lease ends by itself.

    def targets(self) -> list[Generation]:
        """The generations that the next batch must be written to. Ask before every batch, with none under way.

        Raises:
            IndexUnavailable: the lease cannot be kept, so nothing may be written.
        """
        if self._lease is None:
            raise LeaseLost("the writer holds no lease yet; use it with 'with'")
        held_long = self._clock() - self._renewed > self._seconds / 3
        if held_long or self.index.revision() != self._revision:
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
    """Returns when every writer writes to the generations of `revision`, or has stopped writing.

    Raises:
        LeaseHeld: some have not after `timeout` seconds; the message names them.
    """
    deadline = clock() + timeout
    while late := [lease for lease in writer_leases(index) if lease.acknowledged < revision]:
        if clock() >= deadline:
            named = ", ".join(f"{lease.holder} (until {lease.expires_at:%H:%M:%S} UTC)" for lease in late[:10])
            raise LeaseHeld(
                f"{len(late)} writers have not noticed the new candidate after {timeout:.0f} seconds: {named}; they do "
                "with their next batch, or lose their lease if they died: run the same command again, it goes on"
            )
        sleep(POLL_SECONDS)


def writer_leases(index: CompanyIndex) -> list[Lease]:
    """The leases of those who are writing now."""
    return [lease for lease in index.leases() if lease.name.startswith(LEASE_PREFIX)]


def new_holder() -> str:
    """A holder's name that no other process has: host, process and a random end."""
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:64]
    return f"{host}.{os.getpid()}.{secrets.token_hex(4)}"
