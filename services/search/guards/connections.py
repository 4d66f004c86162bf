"""Limits of open connections, in all and for each address.

A connection that waits for a request costs its client nothing, so a flood of them must not keep others
out. At a limit, a new connection takes the place of the idle one whose last request is longest ago. nginx
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
# A response with fewer unread bytes is not checked: 1,000 connections have less than 100 MB of them.
UNREAD_NOT_COUNTED = 100_000
# For the files of the index, the connections to its store, the log, and connections that do not count yet.
OTHER_FILES = 500

log = logging.getLogger(__name__)


class Connection(Protocol):
    """One open connection."""

    address: str
    """The address of the client, as limits count it."""

    @property
    def idle(self) -> bool:
        """Whether no request is in progress and the client has read the last response completely."""

    @property
    def unread(self) -> int:
        """Bytes of its last response that are in memory because the client has not read them."""

    def end(self) -> None:
        """Closes the connection at once."""


class Connections:
    """The open connections of one process: at most `most`, and `most_of_address` from one address (0: no limit).

    While no connection is idle, up to SPARE new ones are taken beyond each limit, for health checks only.
    `most_unread`: maximum `unread` bytes of all connections together, without the newest response.
    """

    def __init__(self, *, most: int = 1000, most_of_address: int = 0, most_unread: int = 250_000_000) -> None:
        self._most = most
        self._most_unread = most_unread
        self._most_of_address = most_of_address or most + SPARE
        # The connection whose last request is longest ago comes first.
        self._open: dict[Connection, None] = {}
        self._of_address: Counter[str] = Counter()

    def add(self, connection: Connection) -> bool:
        """Add `connection`; return whether it is within the limits. It may end an idle one, or `connection` itself."""
        address = connection.address
        if self._of_address[address] >= self._most_of_address:
            self._end_idle(address)
        if len(self._open) >= self._most:
            self._end_idle(None)
        self._open[connection] = None
        self._of_address[address] += 1
        beyond = max(len(self._open) - self._most, self._of_address[address] - self._most_of_address)
        if beyond > SPARE:
            self.remove(connection)
            connection.end()
        return beyond <= 0

    def used(self, connection: Connection) -> None:
        """Notes that `connection` has brought a request."""
        if connection in self._open:
            self._open[connection] = self._open.pop(connection)

    def answered(self, connection: Connection) -> None:
        """Notes that the client of `connection` has not read all of its response yet.

        While the other connections together have more than `most_unread` unread bytes, it ends the one with the most
        bytes, from the address with the most bytes.
        """
        if connection.unread < UNREAD_NOT_COUNTED:
            return
        unread = {each: each.unread for each in self._open if each is not connection}
        while sum(unread.values()) > self._most_unread:
            of_address: Counter[str] = Counter()
            for each, count in unread.items():
                of_address[each.address] += count
            [(address, _)] = of_address.most_common(1)
            largest = max((each for each in unread if each.address == address), key=unread.__getitem__)
            log.warning("an answer of %d bytes that its client does not read was cut off", unread.pop(largest))
            self.remove(largest)
            largest.end()

    def remove(self, connection: Connection) -> None:
        """Notes that `connection` has ended."""
        if connection in self._open:
            del self._open[connection]
            self._of_address[connection.address] -= 1
            if not self._of_address[connection.address]:
                del self._of_address[connection.address]

    def _end_idle(self, address: str | None) -> None:
        """Ends the longest idle connection, of `address` if given."""
        idle = next((each for each in self._open if each.idle and address in {None, each.address}), None)
        if idle is not None:
            self.remove(idle)
            idle.end()


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
