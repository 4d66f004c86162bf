"""How the service stops: it says so first, goes on for a while, then finishes what is under way.

On SIGTERM `/readyz` answers 503, so that whatever spreads the requests sends new ones elsewhere, and
every answer asks its client to close the connection. Requests are still taken for `drain_seconds`.
Then the server listens no more, finishes what it has begun, and ends. A second signal, or Ctrl-C,
skips the waiting.
"""

import signal
import time
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.search.guards.refusals import refuse
from services.search.wire import problems
from services.search.wire.problem_documents import Problem


class Lifecycle:
    """Whether the service is about to stop, and since when."""

    def __init__(self, *, drain_seconds: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._drain_seconds = drain_seconds
        self._clock = clock
        self._stop_at: float | None = None

    def stop(self) -> None:
        """The service has been told to stop."""
        if self._stop_at is None:
            self._stop_at = self._clock() + self._drain_seconds

    @property
    def stopping(self) -> bool:
        """Whether it has been told to stop."""
        return self._stop_at is not None

    @property
    def drained(self) -> bool:
        """Whether it has waited long enough since."""
        return self._stop_at is not None and self._clock() >= self._stop_at


class Draining:
    """While the service stops: `/readyz` is 503, and every connection ends with its next answer."""

    def __init__(self, app: ASGIApp, *, lifecycle: Lifecycle) -> None:
        self._app = app
        self._lifecycle = lifecycle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_and_close(message: Message) -> None:
            # Asked when the answer begins: the service may be told to stop while it is being worked on.
            if message["type"] == "http.response.start" and self._lifecycle.stopping:
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        if self._lifecycle.stopping and scope["path"] == "/readyz":
            problem = Problem(problems.STOPPING, "this process was told to stop and finishes what it has begun")
            await refuse(problem, scope, receive, send_and_close)
            return
        await self._app(scope, receive, send_and_close)


class DrainingServer(uvicorn.Server):
    """Goes on after SIGTERM until `lifecycle` has drained."""

    def __init__(self, config: uvicorn.Config, *, lifecycle: Lifecycle) -> None:
        super().__init__(config)
        self._lifecycle = lifecycle

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called for SIGTERM and SIGINT."""
        if sig == signal.SIGTERM and not self._lifecycle.stopping:
            self._captured_signals.append(sig)
            self._lifecycle.stop()
            return
        self._lifecycle.stop()
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether to stop now."""
        if self._lifecycle.drained:
            self.should_exit = True
        return await super().on_tick(counter)
