"""Ends connections whose clients are too slow in sending a head or in taking an answer.

uvicorn waits for slow clients without end, and each waiting connection costs memory and a file handle. `limits.py`
limits the time of bodies, uvicorn's `timeout_keep_alive` that of idle connections, `connections.py` their number.
"""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .careful_parser import CarefulParser
from .connections import BEYOND_LIMIT, Connections
from .envelope import closing_answer
from .refusals import network_of

SECONDS_TO_SPEAK = 0.1
# Browsers, proxies and HTTP libraries wait for an answer before they send the next request. A client that does not wait
# could send so many that refusing them would leave no processor time for others.
SECONDS_BETWEEN_PIPELINED = 0.5


class PatientConnection(H11Protocol):
    """uvicorn's HTTP connection, with an end to its patience.

    A request's head must be complete within `head_seconds` of its first byte (of the connection's start, for the
    first); the client must go on taking the answer within `write_seconds` after it stopped. A request keeps its permit
    until its answer is complete, so the application may wait at most `answer_seconds` in all for the client to take
    the parts of one answer. `open_connections` are
    all of the process; a connection counts from its first bytes on, or from SECONDS_TO_SPEAK after it was made, so
    that one with a request is never ended for its idleness. `refusal` may answer the bytes of a request in place of
    the application. A request that was sent before the last answer was complete (pipelining) waits
    SECONDS_BETWEEN_PIPELINED.

    The parser is h11 wherever uvicorn is installed with httptools too: each reads doubtful requests in
    its own way, and the tests show what h11 does.
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
        self._counting: asyncio.TimerHandle | None = None
        self._beyond_limit = False
        self._head_deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        self._answer_deadline: asyncio.TimerHandle | None = None
        self._answer_seconds_left = self.answer_seconds
        self._pause: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether no request is under way and no part of an answer waits to be taken."""
        return self.cycle is None or (self.cycle.response_complete and not self.flow.write_paused)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client has connected and owes a request."""
        transport = cast("asyncio.Transport", transport)
        # Any rest of an answer has a deadline: the last 64 KiB, the default, could wait for ever.
        transport.set_write_buffer_limits(high=0)
        super().connection_made(transport)
        if self.client is not None:
            self.address = network_of(self.client[0])
        self._counting = self.loop.call_later(SECONDS_TO_SPEAK, self._count)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """A part of a request, of its head or of its body."""
        self._count()
        if self.transport.is_closing():
            return
        at_start = self.idle and self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        if at_start and self._refused(data):
            return
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._await_head()

    def send_400_response(self, msg: str) -> None:
        """Refuses what the parser refused. The application may have begun another answer, which nobody will read."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.write(closing_answer(self.conn.refusal))
        self.transport.close()

    def handle_events(self) -> None:
        """Takes what has arrived; also called when an answer is complete, for a request that waited behind it."""
        if self._pause is not None:
            return
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._head_deadline = _cancel(self._head_deadline)
            self._answer_seconds_left = self.answer_seconds
            self.open_connections.used(self)

    def on_response_complete(self) -> None:
        """The answer is complete; a request that has arrived already waits."""
        pipelined = self.conn.their_state is h11.DONE and bool(self.conn.trailing_data[0])
        if pipelined and not self.transport.is_closing():
            self._pause = self.loop.call_later(SECONDS_BETWEEN_PIPELINED, self._go_on)
        super().on_response_complete()
        if self._pause is not None:
            self.flow.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        for timer in (
            self._counting,
            self._head_deadline,
            self._write_deadline,
            self._answer_deadline,
            self._pause,
        ):
            _cancel(timer)
        self.open_connections.remove(self)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client takes its answer more slowly than it is made."""
        super().pause_writing()
        if self._write_deadline is None:
            self._await_reading()
            self._answer_deadline = self.loop.call_later(self._answer_seconds_left, self._end_incomplete)

    def resume_writing(self) -> None:
        """The client has taken enough of it."""
        self._write_deadline = _cancel(self._write_deadline)
        if self._answer_deadline is not None:
            self._answer_seconds_left = max(0.0, self._answer_deadline.when() - self.loop.time())
            self._answer_deadline = _cancel(self._answer_deadline)
        super().resume_writing()

    def end(self) -> None:
        """Closes the connection at once."""
        self.transport.abort()

    def _count(self) -> None:
        if self._counting is not None:
            self._counting = _cancel(self._counting)
            self._beyond_limit = not self.open_connections.add(self)
            self.app_state = {**self.app_state, BEYOND_LIMIT: self._beyond_limit}

    def _refused(self, data: bytes) -> bool:
        """Whether `data` is a whole request that has been refused; h11 and uvicorn have not seen it."""
        refusal = None if self._beyond_limit else self.refusal(data)
        if refusal is None:
            return False
        self.transport.write(refusal)
        # The next request has its own time.
        for timer in (self.timeout_keep_alive_task, self._head_deadline):
            _cancel(timer)
        self._head_deadline = None
        self._await_head()
        self.open_connections.used(self)
        return True

    def _go_on(self) -> None:
        self._pause = None
        self.flow.resume_reading()
        self.handle_events()

    def _await_head(self) -> None:
        if self._head_deadline is None:
            self._head_deadline = self.loop.call_later(self.head_seconds, self.end)

    def _await_reading(self) -> None:
        """Ends the connection unless the client has taken a part of its answer in `write_seconds` from now."""
        waiting = self.transport.get_write_buffer_size()

        def look() -> None:
            if self.transport.get_write_buffer_size() < waiting:
                self._await_reading()
            else:
                self.end()

        self._write_deadline = self.loop.call_later(self.write_seconds, look)

    def _end_incomplete(self) -> None:
        """End the connection if the application still has parts of the answer to send."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.end()


def patient_connection(
    *,
    head_seconds: float,
    write_seconds: float,
    answer_seconds: float,
    open_connections: Connections,
    refusal: Callable[[bytes], bytes | None],
) -> type[PatientConnection]:
    """The class of connections for uvicorn's `http` setting, with these limits."""
    limits = {
        "head_seconds": head_seconds,
        "write_seconds": write_seconds,
        "answer_seconds": answer_seconds,
        "open_connections": open_connections,
        "refusal": staticmethod(refusal),
    }
    return type("PatientConnection", (PatientConnection,), limits)


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """No timer."""
    if timer is not None:
        timer.cancel()
    return None
