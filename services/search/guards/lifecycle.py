"""Graceful stop: announce it, accept requests for a while, then finish the running requests.

On SIGTERM `/readyz` answers 503, so that a load balancer sends new requests elsewhere, and every answer
asks its client to close the connection. Requests are still accepted for `drain_seconds` (the drain period). Then
the server stops listening, finishes the running requests, and ends. A second signal, or Ctrl-C, ends the drain
period at once.
"""

import signal
import time
from collections.abc import Callable
from types import FrameType

import uvicorn


class Lifecycle:
    """Whether the service is stopping, and whether its drain period is over."""

    def __init__(self, *, drain_seconds: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._drain_seconds = drain_seconds
        self._clock = clock
        self._stop_at: float | None = None

    def stop(self) -> None:
        """Begin the drain period; repeated calls change nothing."""
        if self._stop_at is None:
            self._stop_at = self._clock() + self._drain_seconds

    @property
    def stopping(self) -> bool:
        """Whether `stop` has been called."""
        return self._stop_at is not None

    @property
    def drained(self) -> bool:
        """Whether the drain period is over."""
        return self._stop_at is not None and self._clock() >= self._stop_at


class DrainingServer(uvicorn.Server):
    """A server that answers requests after SIGTERM until the drain period of `lifecycle` is over."""

    def __init__(self, config: uvicorn.Config, *, lifecycle: Lifecycle) -> None:
        super().__init__(config)
        self._lifecycle = lifecycle

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the drain period at the first SIGTERM; after any other signal, stop now (called by uvicorn)."""
        is_first = not self._lifecycle.stopping
        self._lifecycle.stop()
        if sig != signal.SIGTERM or not is_first:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop now (called by uvicorn ten times a second)."""
        if self._lifecycle.drained and not self.should_exit:
            super().handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)
