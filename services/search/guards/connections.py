"""Limits of open connections, in all and for each address.

A connection that waits for a request costs its client nothing, so a flood of them must not keep others
out. At a limit, a new connection takes the place of the one whose last request is longest ago. nginx
does the same when its worker_connections run out.
"""

import logging
import resource
from collections import Counter
from typing import Protocol

BEYOND_LIMIT = "similarity.beyond_limit"
"""The key in the state of an ASGI scope: whether its connection is beyond the limits, for health checks only."""

# More than all the health checks that are under way at the same moment.
SPARE = 64
# For the files of the index, the connections to its store, and the log.
OTHER_FILES = 500

log = logging.getLogger(__name__)


class Connection(Protocol):
    """One open connection."""

    address: str
    """The address of the client, as limits count it."""

    @property
    def idle(self) -> bool:
        """Whether no request is under way and no part of an answer waits to be taken."""

    @property
    def new(self) -> bool:
        """Whether it was only just made, so that its first request may be on its way."""

    def end(self) -> None:
        """Closes the connection at once."""


class Connections:
    """The open connections of one process: at most `most`, and `most_of_address` from one address (0: no limit).

    While no connection is idle, or all idle ones are new, up to SPARE are taken beyond each limit, for health checks
    only.
    """

    def __init__(self, *, most: int = 1000, most_of_address: int = 0) -> None:
        self._most = most
        self._most_of_address = most_of_address or most + SPARE
        # The one whose last request is longest ago comes first.
        self._open: dict[Connection, None] = {}
        self._of_address: Counter[str] = Counter()

    def add(self, connection: Connection) -> bool:
        """Whether the new `connection` is within the limits. An idle one may be ended for it, or itself at once."""
        address = connection.address
        self._make_room(address, spare=-1, may_be_new=False)
        self._open[connection] = None
        self._of_address[address] += 1
        self._make_room(address, spare=SPARE, may_be_new=True)
        return len(self._open) <= self._most and self._of_address[address] <= self._most_of_address

    def used(self, connection: Connection) -> None:
        """Notes that `connection` has brought a request."""
        if connection in self._open:
            self._open[connection] = self._open.pop(connection)

    def remove(self, connection: Connection) -> None:
        """Notes that `connection` has ended."""
        if connection in self._open:
            del self._open[connection]
            self._of_address[connection.address] -= 1
            if not self._of_address[connection.address]:
                del self._of_address[connection.address]

    def _make_room(self, address: str, *, spare: int, may_be_new: bool) -> None:
        """Ends an idle connection for each limit that is exceeded by more than `spare`."""
        if self._of_address[address] > self._most_of_address + spare:
            self._end_idle(address, may_be_new=may_be_new)
        if len(self._open) > self._most + spare:
            self._end_idle(None, may_be_new=may_be_new)

    def _end_idle(self, address: str | None, *, may_be_new: bool) -> None:
        """Ends the longest idle connection, of `address` if given."""
        for each in self._open:
            if each.idle and (may_be_new or not each.new) and address in {None, each.address}:
                self.remove(each)
                each.end()
                return


def allow_open_files(connections: int) -> None:
    """Raises this process's limit of open files, often 1,024, to the number that `connections` need.

    Without a free file handle not even a health check can connect.
    """
    wanted = connections + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != hard < wanted:
        log.warning("%d connections need %d open files; only %d are allowed (ulimit -Hn)", connections, wanted, hard)
        wanted = hard
    if resource.RLIM_INFINITY != soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
