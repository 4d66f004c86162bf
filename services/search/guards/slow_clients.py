"""Ends connections whose clients take too long: to say what they want, or to take the answer.

uvicorn waits for both for ever, and each waiting connection costs memory and a file handle. Bodies
are watched over by `limits.py`, idle connections by uvicorn's own `timeout_keep_alive`, the number of
connections by `connections.py`.
"""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from starlette.types import Scope
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

from services.search.guards.connections import BEYOND_LIMIT, Connections
from services.search.guards.limits import ambiguous_length
from services.search.guards.refusals import network_of

SECONDS_TO_SPEAK = 0.1


class PatientConnection(H11Protocol):
    """uvicorn's HTTP connection, with an end to its patience.

    A request's head must be complete within `head_seconds` of its first byte (of the connection's
    start, for the first) and have at most `head_bytes`; the client must go on taking the answer within
    `write_seconds` after it stopped. `refusal` may answer the bytes of a new request in place of the
    application. `open_connections` are all of the process; a connection counts from its first bytes on, or
    from SECONDS_TO_SPEAK after it was made, so that one with a request is never ended for its idleness.

    The parser is h11 wherever uvicorn is installed with httptools too: each reads doubtful requests in
    its own way, and the tests show what h11 does.
    """

    refusal: Callable[[bytes], bytes | None] = staticmethod(lambda _: None)
    open_connections = Connections()

    head_seconds = 10.0
    head_bytes = 32_768
    write_seconds = 20.0

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.address = "unknown"
        self._head_deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        self._head_received = 0
        self._counting: asyncio.TimerHandle | None = None
        self._beyond_limit = False

    @property
    def idle(self) -> bool:
        """Whether no request is under way and no part of an answer waits to be taken."""
        return (self.cycle is None or self.cycle.response_complete) and not self.flow.write_paused

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client has connected and owes us a request."""
        transport = cast("asyncio.Transport", transport)
        # Whatever waits to be taken has its deadline: the last 64 KiB, the default, could wait for ever.
        transport.set_write_buffer_limits(high=0)
        super().connection_made(transport)
        if self.client is not None:
            self.address = network_of(self.client[0])
        self._counting = asyncio.get_running_loop().call_later(SECONDS_TO_SPEAK, self._count)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """A part of a request, of its head or of its body."""
        self._count()
        if self.transport.is_closing() or (self._head_received == 0 and self.idle and self._refused(data)):
            return
        before = self.cycle
        super().data_received(data)
        if self.cycle is before and self.idle:
            self._await_head()
            self._head_received += len(data)
            if self._head_received > self.head_bytes:
                self.end()

    def handle_events(self) -> None:
        """Takes what has arrived; also called when an answer is complete, for a request that waited behind it."""
        before = self.cycle
        super().handle_events()
        if self.cycle is before:
            return
        # The head of a request is complete.
        self._head_deadline = _cancel(self._head_deadline)
        self._head_received = 0
        self.open_connections.used(self)
        if self._beyond_limit or ambiguous_length(cast("Scope", self.scope)):
            # uvicorn then ends the connection with the answer, as for a client that asks for that.
            self.headers.append(CLOSE_HEADER)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        for timer in (self._head_deadline, self._write_deadline, self._counting):
            _cancel(timer)
        self.open_connections.remove(self)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client takes its answer more slowly than it is made."""
        super().pause_writing()
        if self._write_deadline is None:
            self._await_reading()

    def resume_writing(self) -> None:
        """The client has taken enough of it."""
        self._write_deadline = _cancel(self._write_deadline)
        super().resume_writing()

    def end(self) -> None:
        """Closes the connection at once."""
        self.transport.abort()

    def _await_reading(self) -> None:
        """Ends the connection unless the client has taken a part of its answer in `write_seconds` from now."""
        waiting = self.transport.get_write_buffer_size()

        def look() -> None:
            if self.transport.get_write_buffer_size() < waiting:
                self._await_reading()
            else:
                self.end()

        self._write_deadline = asyncio.get_running_loop().call_later(self.write_seconds, look)

    def _count(self) -> None:
        if self._counting is not None:
            self._counting = _cancel(self._counting)
            self._beyond_limit = not self.open_connections.add(self)
            self.app_state = {**self.app_state, BEYOND_LIMIT: self._beyond_limit}

    def _refused(self, data: bytes) -> bool:
        refusal = None if self._beyond_limit else self.refusal(data)
        if refusal is None:
            return False
        self.transport.write(refusal)
        # uvicorn saw nothing of it and must not hang up for want of a request; the next one has its own time.
        self._unset_keepalive_if_required()
        self._head_deadline = _cancel(self._head_deadline)
        self._await_head()
        self.open_connections.used(self)
        return True

    def _await_head(self) -> None:
        if self._head_deadline is None:
            self._head_deadline = asyncio.get_running_loop().call_later(self.head_seconds, self.end)


def patient_connection(
    *,
    head_seconds: float,
    head_bytes: int,
    write_seconds: float,
    open_connections: Connections,
    refusal: Callable[[bytes], bytes | None],
) -> type[PatientConnection]:
    """The class of connections for uvicorn's `http` setting, with these limits."""
    limits = {
        "head_seconds": head_seconds,
        "head_bytes": head_bytes,
        "write_seconds": write_seconds,
        "open_connections": open_connections,
        "refusal": staticmethod(refusal),
    }
    return type("PatientConnection", (PatientConnection,), limits)


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """No timer."""
    if timer is not None:
        timer.cancel()
    return None
