"""The deadline of a call of the synchronous client.

httpx2 limits only each single read and write, so a server that sends one byte at a time is never too late. The
asynchronous client cancels the call instead.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpx2

# A socket's buffer nearly always has room for such a piece, so that it is sent by one system call with one time-out.
PIECE = 4096

_deadline: ContextVar[float] = ContextVar("deadline")


@contextmanager
def deadline(until: float) -> Iterator[None]:
    """End all reads and writes of this thread on bounded connections when the monotonic clock shows `until`."""
    token = _deadline.set(until)
    try:
        yield
    finally:
        _deadline.reset(token)


def bound_connection(event: str, info: Mapping[str, Any]) -> None:
    """Make the reads and writes of a new connection end at the deadline. Pass this to httpx2 as `trace` extension."""
    if not event.endswith((".connect_tcp.complete", ".connect_unix_socket.complete", ".start_tls.complete")):
        return
    stream = info["return_value"]
    read, write = stream.read, stream.write

    def bounded_read(max_bytes: int, timeout: float | None = None) -> Any:
        return read(max_bytes, _remaining(timeout))

    def bounded_write(buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), PIECE):
            write(buffer[start : start + PIECE], _remaining(timeout))

    stream.read, stream.write = bounded_read, bounded_write


def _remaining(timeout: float | None) -> float | None:
    """Return the shorter of `timeout` and the time until the deadline."""
    until = _deadline.get(None)
    if until is None:
        return timeout
    remaining = until - time.monotonic()
    if remaining <= 0:
        raise httpx2.ReadTimeout("the deadline of the call has passed")
    return remaining if timeout is None else min(timeout, remaining)
