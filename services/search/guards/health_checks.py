"""Answers floods of health checks cheaply, and refuses none: a flood and a probe may come from the same proxy."""

import asyncio
import secrets
import time
from collections.abc import Callable, Collection
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..wire import problems
from .heads import host_of, is_known
from .rate_limits import Allowance, TokenBuckets
from .refusals import CLOSE, REFUSED, WAITS, is_health_check

# More than the load balancers and probes of one process send.
ALLOWANCE = Allowance(rate=20, burst=100)
# A probe of Kubernetes gives up after a second. The wait is random, so that not all are answered at the same moment.
MILLISECONDS_TO_WAIT = range(400, 800)
SECONDS_TO_KEEP = 1.0


class HealthChecks:
    """Passes health checks on, up to ALLOWANCE. Each further check waits, then gets the last answer for its path.

    An answer is used for SECONDS_TO_KEEP. If there is none, the check is passed on: if the service hangs, all checks
    hang. A connection that waits counts as idle (`slow_clients`), so it keeps nobody out: when others need its place,
    its check is answered at once.
    """

    def __init__(self, app: ASGIApp, *, names: Collection[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._names = names
        self._allowance = TokenBuckets(ALLOWANCE, clock=clock)
        self._clock = clock
        # The last answer for each path, and the time until which it is given.
        self._last: dict[str, tuple[Response, float]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or connection (ASGI)."""
        if scope["type"] != "http" or not is_health_check(scope) or not is_known(host_of(scope), self._names):
            await self._app(scope, receive, send)
        elif self._allowance.take(""):
            await self._app(scope, receive, self._remembering(scope, send))
        else:
            state = scope.setdefault("state", {})
            state[WAITS] = asyncio.Event()
            with suppress(TimeoutError):
                async with asyncio.timeout(secrets.choice(MILLISECONDS_TO_WAIT) / 1000):
                    await state[WAITS].wait()
            is_needed = state.pop(WAITS).is_set()
            answer, given_until = self._last.get(scope["path"], (None, 0.0))
            if answer is None or self._clock() >= given_until:
                await self._app(scope, receive, self._remembering(scope, send))
                return
            if is_needed:
                answer = Response(answer.body, answer.status_code, {**answer.headers, **CLOSE})
            await answer(scope, receive, send)

    def _remembering(self, scope: Scope, send: Send) -> Send:
        """Return `send` that also keeps the answer, unless it refuses only this request."""
        start: Message = {}

        async def remembering(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            elif scope.get(REFUSED) in {None, problems.STOPPING.slug}:
                answer = Response(message["body"], start["status"], Headers(scope=start))
                self._last[scope["path"]] = answer, self._clock() + SECONDS_TO_KEEP
            await send(message)

        return remembering
