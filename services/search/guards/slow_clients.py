"""Ends connections whose clients take too long: to say what they want, or to take the answer.

uvicorn waits for both for ever, and each waiting connection costs memory and a file handle. Bodies
are watched over by `limits.py`, idle connections by uvicorn's own `timeout_keep_alive`.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol


class PatientConnection(asyncio.Protocol):
    """uvicorn's HTTP connection, with an end to its patience.

    A request's head must be complete within `head_seconds` of its first byte (of the connection's
    start, for the first) and have at most `head_bytes`; the client must go on taking the answer within
    `write_seconds` after it stopped. `refusal` may answer the bytes of a new request in place of the
    application.
    """

    refusal: Callable[[bytes], bytes | None] = staticmethod(lambda _: None)

    head_seconds = 10.0
    head_bytes = 32_768
    write_seconds = 20.0

    def __init__(self, **given: Any) -> None:
        self._http: Any = AutoHTTPProtocol(**given)
        self._transport: asyncio.Transport | None = None
        self._head_deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        self._head_received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client has connected and owes us a request."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport
        self._http.connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """A part of a request, of its head or of its body."""
        before = self._http.cycle
        if self._head_received == 0 and (before is None or before.response_complete) and self._refused(data):
            return
        self._http.data_received(data)
        cycle = self._http.cycle
        if cycle is not before:
            # The head of a request is complete.
            self._head_deadline = _cancel(self._head_deadline)
            self._head_received = 0
        elif cycle is None or cycle.response_complete:
            self._await_head()
            self._head_received += len(data)
            if self._head_received > self.head_bytes:
                self._end()

    def eof_received(self) -> None:
        """The client will send nothing more."""
        self._http.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._head_deadline = _cancel(self._head_deadline)
        self._write_deadline = _cancel(self._write_deadline)
        self._http.connection_lost(exc)

    def pause_writing(self) -> None:
        """The client takes its answer more slowly than it is made."""
        self._http.pause_writing()
        if self._write_deadline is None:
            self._write_deadline = asyncio.get_running_loop().call_later(self.write_seconds, self._end)

    def resume_writing(self) -> None:
        """The client has taken enough of it."""
        self._write_deadline = _cancel(self._write_deadline)
        self._http.resume_writing()

    def _refused(self, data: bytes) -> bool:
        refusal = self.refusal(data)
        if refusal is None or self._transport is None or self._transport.is_closing():
            return False
        self._transport.write(refusal)
        # uvicorn saw nothing of it and must not hang up for want of a request; the next one has its own time.
        self._http._unset_keepalive_if_required()
        self._head_deadline = _cancel(self._head_deadline)
        self._await_head()
        return True

    def _await_head(self) -> None:
        if self._head_deadline is None:
            self._head_deadline = asyncio.get_running_loop().call_later(self.head_seconds, self._end)

    def _end(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def patient_connection(
    *,
    head_seconds: float,
    head_bytes: int,
    write_seconds: float,
    refusal: Callable[[bytes], bytes | None] = lambda _: None,
) -> type[PatientConnection]:
    """The class of connections for uvicorn's `http` setting, with these limits."""
    limits = {
        "head_seconds": head_seconds,
        "head_bytes": head_bytes,
        "write_seconds": write_seconds,
        "refusal": staticmethod(refusal),
    }
    return type("PatientConnection", (PatientConnection,), limits)


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """No timer."""
    if timer is not None:
        timer.cancel()
    return None
