"""The deadline of a call of the synchronous client.

httpx2 limits only each single read and write, so a server that sends one byte at a time is never too late. The
asynchronous client cancels the call instead.
"""

import time
from collections.abc import Iterator
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


def bound_connection(event: str, info: dict[str, Any]) -> None:
    """Make a new connection, its reads and its writes end at the deadline. Pass this to httpx2 as `trace` extension."""
    _, operation, stage = event.split(".")
    if operation not in {"connect_tcp", "connect_unix_socket", "start_tls"}:
        return
    if stage == "started":
        info["timeout"] = _remaining(info["timeout"])
    elif stage == "complete":
        _bound_stream(info["return_value"])


def _bound_stream(stream: Any) -> None:
    read, write = stream.read, stream.write

    def bounded_read(max_bytes: int, timeout: float | None = None) -> Any:
        return read(max_bytes, _remaining(timeout))

    def bounded_write(buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), PIECE):
            write(buffer[start : start + PIECE], _remaining(timeout))

    stream.read, stream.write = bounded_read, bounded_write


def _remaining(timeout: float | None) -> float | None:
    """Return the shorter of `timeout` and the time until the deadline. Raises ReadTimeout if that has passed."""
    until = _deadline.get(None)
    if until is None:
        return timeout
    remaining = until - time.monotonic()
    if remaining <= 0:
        raise httpx2.ReadTimeout("the deadline of the call has passed")
    return remaining if timeout is None else min(timeout, remaining)
