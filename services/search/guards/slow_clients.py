"""Ends connections whose clients are too slow to send a request head or to read a response.

uvicorn waits for slow clients without end, and each waiting connection costs memory and a file handle. `limits.py`
limits the time for request bodies, `timeout_keep_alive` that of idle connections, and `connections.py` the number of
connections.
"""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .careful_parser import CarefulParser
from .connections import BEYOND_LIMIT, Connections
from .envelope import closing_answer
from .refusals import WAITS, network_of

SECONDS_UNTIL_COUNTED = 0.1
# Browsers, proxies and HTTP libraries wait for a response before they send the next request. A client that does not
# wait could send so many requests that refusing them would leave no processor time for other clients.
SECONDS_BETWEEN_PIPELINED = 0.5


class ConnectionWithDeadlines(H11Protocol):
    """uvicorn's HTTP connection with deadlines for the request head and for reading the response.

    A request head must be complete within `head_seconds`, counted from its first byte; for the first request, from the
    start of the connection; after a refusal by `refusal`, from that refusal.

    While the write buffer is not empty, the client must read some of it every `write_seconds`. A request holds its
    permit (`concurrency.py`) until its response is complete. So the time that the application waits for the client is
    limited to `answer_seconds` for each response, and the next request is not processed before the client has read all
    of the last response. `open_connections` limits the bytes in all write buffers.

    `open_connections`: all connections of the process. A connection is added at its first bytes, or after
    SECONDS_UNTIL_COUNTED without any, so that one whose first request is on its way is not ended as idle.

    `refusal`: called with the bytes of a new request; returns a response to send instead of calling the application, or
    None.

    A request that was sent before the last response was complete (pipelining) waits SECONDS_BETWEEN_PIPELINED.

    The parser is always h11, also where httptools is installed: the two treat malformed requests differently, and the
    tests cover h11.
    """

    refusal: Callable[[bytes], bytes | None] = staticmethod(lambda _: None)
    open_connections = Connections()
    head_seconds = 10.0
    write_seconds = 20.0
    answer_seconds = 30.0

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.conn: CarefulParser = CarefulParser(max_incomplete_event_size=self.config.h11_max_incomplete_event_size)
        self.address = "unknown"
        self._count_timer: asyncio.TimerHandle | None = None
        self._beyond_limit = False
        self._head_deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        self._answer_deadline: asyncio.TimerHandle | None = None
        self._answer_seconds_left = self.answer_seconds
        self._pause_timer: asyncio.TimerHandle | None = None
        self._unread_bytes = 0

    @property
    def idle(self) -> bool:
        """Whether no request is in progress and the client has read the last response completely, or it waits."""
        if self.cycle is None or WAITS in self.cycle.scope["state"]:
            return True
        return self.cycle.response_complete and not self.flow.write_paused

    @property
    def unread(self) -> int:
        """Size in bytes of the response that is in memory because the client has not read all of it.

        From Python 3.12 on, asyncio keeps a response in memory until its last byte is sent.
        """
        return self._unread_bytes

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
        super().data_received(data)
        if self._has_unread_response:
            self.flow.pause_reading()
        if self.cycle is None or self.cycle.response_complete:
            self._start_head_deadline()

    def send_400_response(self, msg: str) -> None:
        """Answer what the parser refused, and close.

        If the application is still answering this request, it is told that the client has gone.
        """
        if self.cycle is not None:
            self.cycle.disconnected = True
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.write(closing_answer(self.conn.refusal))
        self.transport.close()

    def handle_events(self) -> None:
        """Process the received bytes; also called when a response is complete, for a pipelined request."""
        if self._pause_timer is not None or self._has_unread_response:
            return
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._head_deadline = _cancel(self._head_deadline)
            self._answer_seconds_left = self.answer_seconds
            self.open_connections.used(self)

    def on_response_complete(self) -> None:
        """The response is complete.

        A pipelined request that is already here is processed after SECONDS_BETWEEN_PIPELINED.
        """
        pipelined = self.conn.their_state is h11.DONE and bool(self.conn.trailing_data[0])
        if pipelined and not self.transport.is_closing():
            self._pause_timer = self.loop.call_later(SECONDS_BETWEEN_PIPELINED, self._go_on)
        super().on_response_complete()
        if self._pause_timer is not None or self._has_unread_response:
            self.flow.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        for timer in (
            self._count_timer,
            self._head_deadline,
            self._write_deadline,
            self._answer_deadline,
            self._pause_timer,
        ):
            _cancel(timer)
        self.open_connections.remove(self)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads the response more slowly than the application writes it: start the deadlines."""
        super().pause_writing()
        self._unread_bytes = self.transport.get_write_buffer_size()
        self.open_connections.answered(self)
        if self._write_deadline is None:
            self._start_write_deadline()
            self._answer_deadline = self.loop.call_later(self._answer_seconds_left, self._end_incomplete)

    def resume_writing(self) -> None:
        """The client has read all that was buffered."""
        self._unread_bytes = 0
        self._write_deadline = _cancel(self._write_deadline)
        if self._answer_deadline is not None:
            self._answer_seconds_left = max(0.0, self._answer_deadline.when() - self.loop.time())
            self._answer_deadline = _cancel(self._answer_deadline)
        is_complete = self._has_unread_response
        super().resume_writing()
        if is_complete and self._pause_timer is None and not self.transport.is_closing():
            self._go_on()

    def end(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

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
    def _has_unread_response(self) -> bool:
        """Whether no request is in progress, and the client has not read the last response completely."""
        return self.flow.write_paused and (self.cycle is None or self.cycle.response_complete)

    def _go_on(self) -> None:
        self._pause_timer = None
        if not self._has_unread_response:
            self.flow.resume_reading()
            self.handle_events()

    def _start_head_deadline(self) -> None:
        if self._head_deadline is None:
            self._head_deadline = self.loop.call_later(self.head_seconds, self.end)

    def _start_write_deadline(self) -> None:
        """End the connection if the client reads nothing for `write_seconds`; otherwise check again after that time."""
        waiting = self.transport.get_write_buffer_size()

        def check() -> None:
            if self.transport.get_write_buffer_size() < waiting:
                self._start_write_deadline()
            else:
                self.end()

        self._write_deadline = self.loop.call_later(self.write_seconds, check)

    def _end_incomplete(self) -> None:
        """End the connection if the application still has parts of the response to send."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.end()


def connection_with_deadlines(
    *,
    head_seconds: float,
    write_seconds: float,
    answer_seconds: float,
    open_connections: Connections,
    refusal: Callable[[bytes], bytes | None],
) -> type[ConnectionWithDeadlines]:
    """Return the class of connections for uvicorn's `http` setting, with these limits."""
    limits = {
        "head_seconds": head_seconds,
        "write_seconds": write_seconds,
        "answer_seconds": answer_seconds,
        "open_connections": open_connections,
        "refusal": staticmethod(refusal),
    }
    return type("ConnectionWithDeadlines", (ConnectionWithDeadlines,), limits)


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel the timer, if there is one; return None."""
    if timer is not None:
        timer.cancel()
    return None
