"""Ends connections whose clients are too slow to send a request head or to read a response.

uvicorn waits for slow clients without end, and each waiting connection costs memory and a file handle. `limits.py`
limits the time for request bodies, `timeout_keep_alive` the time of idle connections, and `connections.py` the number
of connections.
"""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..settings import ServiceSettings
from .careful_parser import CarefulParser
from .connections import BEYOND_LIMIT, Connections
from .envelope import closing_answer
from .refusals import WAITS, network_of

SECONDS_UNTIL_COUNTED = 0.1


class ConnectionWithDeadlines(H11Protocol):
    """uvicorn's HTTP connection with deadlines for the request head and for reading the response.

    A request head must be complete within `head_seconds`, counted from its first byte; for the first request, from the
    start of the connection; after a refusal by `refusal`, from that refusal.

    While the write buffer is not empty, the client must read some of it every `write_seconds`. A request holds its
    permit (`concurrency.py`) until its response is complete. So the time that the application waits for the client is
    limited to `answer_seconds` for each response. `open_connections` limits the bytes in all write buffers.

    `open_connections`: all connections of the process. A connection is added at its first bytes, or after
    SECONDS_UNTIL_COUNTED without any, so that one whose first request is on its way is not ended as idle.

    `refusal`: called with the bytes of a new request; returns a response to send instead of calling the application, or
    None.

    A client that does not wait for its response before it sends the next request (pipelining) loses the connection
    after that response. Browsers, proxies and HTTP libraries wait. A client that does not wait could send so many
    requests that refusing them takes all processor time, and could leave their responses unread.

    The parser is always h11, also where httptools is installed: the two treat malformed requests differently, and the
    tests cover h11.
    """

    refusal: Callable[[bytes], bytes | None] = staticmethod(lambda _: None)
    open_connections = Connections()
    settings = ServiceSettings()

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.conn: CarefulParser = CarefulParser(self.settings.head_bytes)
        self.address = "unknown"
        self._count_timer: asyncio.TimerHandle | None = None
        self._beyond_limit = False
        self._head_deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        self._answer_deadline: asyncio.TimerHandle | None = None
        self._answer_seconds_left = self.settings.answer_seconds
        # From Python 3.12 on, asyncio keeps a response in memory until its last byte is sent.
        self.unread = 0

    @property
    def idle(self) -> bool:
        """Whether no request is in progress and the client has read the last response, or a health check waits."""
        if self._is_between_requests:
            return not self.flow.write_paused
        return WAITS in self.cycle.scope["state"]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client has connected: start the deadline for its first request."""
        transport = cast("asyncio.Transport", transport)
        # Pause writing as soon as a byte is unsent, so that the deadlines cover the whole response. With asyncio's
        # default, up to 64 KiB could wait without a deadline.
        transport.set_write_buffer_limits(high=0)
        super().connection_made(transport)
        if self.client is not None:
            self.address = network_of(self.client[0])
        self._count_timer = self.loop.call_later(SECONDS_UNTIL_COUNTED, self._count)
        self._start_head_deadline()

    def data_received(self, data: bytes) -> None:
        """The client has sent a part of a request head or body."""
        self._count()
        if self.transport.is_closing():
            return
        at_start = self.idle and self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        if at_start and self._refuse_early(data):
            return
        if self.flow.write_paused and self._is_between_requests:
            self.transport.close()
            return
        super().data_received(data)
        if self._is_between_requests:
            self._start_head_deadline()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that the parser refused, and close the connection.

        If the application is still answering this request, it is told that the client has gone.
        """
        if self.cycle is not None:
            self.cycle.disconnected = True
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.write(closing_answer(self.conn.refusal))
        self.transport.close()

    def handle_events(self) -> None:
        """Process the received bytes."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._head_deadline = _cancel(self._head_deadline)
            self._answer_seconds_left = self.settings.answer_seconds
            self.open_connections.used(self)

    def on_response_complete(self) -> None:
        """The response is complete: close the connection if the next request is already here."""
        if self.conn.their_state is h11.DONE and self.conn.trailing_data[0]:
            self.transport.close()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        for timer in (self._count_timer, self._head_deadline, self._write_deadline, self._answer_deadline):
            _cancel(timer)
        self.open_connections.remove(self)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads the response more slowly than the application writes it: start the deadlines."""
        super().pause_writing()
        self.unread = self.transport.get_write_buffer_size()
        self.open_connections.answered(self)
        if self._write_deadline is None:
            self._start_write_deadline()
            self._answer_deadline = self.loop.call_later(self._answer_seconds_left, self._end_incomplete)

    def resume_writing(self) -> None:
        """The client has read all that was buffered."""
        self.unread = 0
        self._write_deadline = _cancel(self._write_deadline)
        if self._answer_deadline is not None:
            self._answer_seconds_left = max(0.0, self._answer_deadline.when() - self.loop.time())
            self._answer_deadline = _cancel(self._answer_deadline)
        super().resume_writing()

    def end(self) -> None:
        """Close the connection at once; where a health check waits, answer it first."""
        waits = None if self._is_between_requests else self.cycle.scope["state"].get(WAITS)
        if waits is None:
            self.transport.abort()
        else:
            waits.set()

    def _count(self) -> None:
        """Add the connection to the open connections, once."""
        if self._count_timer is not None:
            self._count_timer = _cancel(self._count_timer)
            self._beyond_limit = not self.open_connections.add(self)
            self.app_state = {**self.app_state, BEYOND_LIMIT: self._beyond_limit}

    def _refuse_early(self, data: bytes) -> bool:
        """Send the refusal if `refusal` returns one for `data`; return whether it did.

        h11 and uvicorn do not see these bytes.
        """
        refusal = None if self._beyond_limit else self.refusal(data)
        if refusal is None:
            return False
        self.transport.write(refusal)
        # Restart the deadline: it is now for the next request.
        for timer in (self.timeout_keep_alive_task, self._head_deadline):
            _cancel(timer)
        self._head_deadline = None
        self._start_head_deadline()
        self.open_connections.used(self)
        return True

    @property
    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _start_head_deadline(self) -> None:
        if self._head_deadline is None:
            self._head_deadline = self.loop.call_later(self.settings.head_seconds, self.end)

    def _start_write_deadline(self) -> None:
        """End the connection if the client reads nothing for `write_seconds`; otherwise check again after that time."""
        waiting = self.transport.get_write_buffer_size()

        def check() -> None:
            if self.transport.get_write_buffer_size() < waiting:
                self._start_write_deadline()
            else:
                self.end()

        self._write_deadline = self.loop.call_later(self.settings.write_seconds, check)

    def _end_incomplete(self) -> None:
        """End the connection if the application still has parts of the response to send."""
        if not self._is_between_requests:
            self.end()


def connection_with_deadlines(
    settings: ServiceSettings, open_connections: Connections, refusal: Callable[[bytes], bytes | None]
) -> type[ConnectionWithDeadlines]:
    """Return the class of connections for uvicorn's `http` setting, with these limits."""
    limits = {"settings": settings, "open_connections": open_connections, "refusal": staticmethod(refusal)}
    return type("ConnectionWithDeadlines", (ConnectionWithDeadlines,), limits)


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel the timer, if there is one; return None."""
    if timer is not None:
        timer.cancel()
    return None
