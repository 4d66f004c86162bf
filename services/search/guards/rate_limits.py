"""Rate limits: token buckets for each address, for each caller, and for the whole process.

The headers follow draft-ietf-httpapi-ratelimit-headers: `RateLimit-Policy` is the allowance, `RateLimit` the
remaining tokens.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..wire import problems
from ..wire.problem_documents import Problem
from .callers import caller_name
from .refusals import CLOSE, client_address, is_health_check, is_open, refuse

MOST_BUCKETS = 10_000
HEAVY_COST = 10.0
PAY_THE_REST = "similarity.pay_the_rest"
"""The key in an ASGI scope of the function that takes the further tokens of a request that turns out to be heavy."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """`burst` requests at once, and `rate` a second in the long run. `rate` must be above 0, `burst` at least 1."""

    rate: float
    burst: float

    @property
    def seconds_to_refill(self) -> int:
        """How long an empty bucket takes to be full again, in whole seconds."""
        return math.ceil(self.burst / self.rate)


# The page loads about twenty files, and several people may share an address.
OPEN_ALLOWANCE = Allowance(rate=100, burst=400)


class TokenBuckets:
    """A token bucket for each name; it lets through at most `rate * t + burst` in any `t` seconds.

    A cost above `burst` empties the bucket. Only the `most` names that were used last are kept. Not thread-safe.
    """

    def __init__(
        self, allowance: Allowance, *, clock: Callable[[], float] = time.monotonic, most: int = MOST_BUCKETS
    ) -> None:
        self.allowance = allowance
        self._clock = clock
        self._most = most
        # Tokens and the time at which they were counted; the name used last comes last.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def tokens(self, name: str) -> float:
        """Return the tokens that `name` has now; a new name has a full bucket."""
        now, burst = self._clock(), self.allowance.burst
        tokens, at = self._buckets.pop(name, (burst, now))
        # Tokens and time move together, so a clock that stands still or steps back gives nothing away.
        if now > at:
            tokens, at = min(burst, tokens + (now - at) * self.allowance.rate), now
        self._buckets[name] = tokens, at
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return tokens

    def take(self, name: str, cost: float = 1.0) -> bool:
        """Take `cost` tokens of `name`; False if there are fewer."""
        tokens, cost = self.tokens(name), min(cost, self.allowance.burst)
        if tokens < cost:
            return False
        self._buckets[name] = tokens - cost, self._buckets[name][1]
        return True

    def seconds_until(self, name: str, cost: float = 1.0) -> int:
        """Return the whole seconds until `name` has `cost` tokens; at least 1."""
        lacking = min(cost, self.allowance.burst) - self.tokens(name)
        return max(1, math.ceil(lacking / self.allowance.rate))


class AddressLimits:
    """Limits, by client address, requests that need no key: open paths, and OPTIONS, which browsers send without a key.

    An address without tokens in `strangers` is answered 429, and its connection is closed. Health checks are not
    counted here (`HealthChecks`).
    """

    def __init__(self, app: ASGIApp, *, strangers: TokenBuckets) -> None:
        self._app = app
        self._strangers = strangers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or connection (ASGI)."""
        if scope["type"] == "http" and self._counts(scope):
            try:
                take(self._strangers, client_address(scope), "this address")
            except Problem as problem:
                await refuse(problem, scope, receive, send, headers=CLOSE)
                return
        await self._app(scope, receive, send)

    def _counts(self, scope: Scope) -> bool:
        return scope["method"] == "OPTIONS" or (is_open(scope["path"]) and not is_health_check(scope))


class RateLimits:
    """Answers 429 to a caller that sends too many requests; every answer says how many tokens are left.

    A caller is the name of a key; without keys, the address of a client. A request that `heavy` recognises costs ten
    tokens; one that turns out to be heavy later pays the rest then (`concurrency.begin_heavy_work`). Open paths are not
    counted.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        callers: Allowance | None,
        process: Allowance | None,
        heavy: Callable[[Scope], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._callers = TokenBuckets(callers, clock=clock) if callers else None
        self._process = TokenBuckets(process, clock=clock) if process else None
        self._heavy = heavy
        self._policy = f'"caller";q={callers.burst:.0f};w={callers.seconds_to_refill}' if callers else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or connection (ASGI)."""
        if scope["type"] == "http" and not is_open(scope["path"]):
            send = self._telling(scope, send)
            try:
                self._take(scope)
            except Problem as problem:
                await refuse(problem, scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _take(self, scope: Scope) -> None:
        name = caller_name(scope)

        def pay(cost: float, paid: float = 0.0) -> None:
            take(self._callers, name, "this caller", cost, paid)
            take(self._process, "", "the whole service", cost, paid)

        if self._heavy(scope):
            pay(HEAVY_COST)
        else:
            pay(1.0)
            scope[PAY_THE_REST] = lambda: pay(HEAVY_COST, paid=1.0)

    def _telling(self, scope: Scope, send: Send) -> Send:
        buckets, name = self._callers, caller_name(scope)
        if buckets is None:
            return send

        async def telling(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["RateLimit-Policy"] = self._policy
                full = buckets.seconds_until(name, buckets.allowance.burst)
                headers["RateLimit"] = f'"caller";r={math.floor(buckets.tokens(name))};t={full}'
            await send(message)

        return telling


def take(buckets: TokenBuckets | None, name: str, whose: str, cost: float = 1.0, paid: float = 0.0) -> None:
    """Take the unpaid part of `cost`; without `buckets` there is no limit.

    Raises:
        Problem: there are too few tokens.
    """
    if buckets is None:
        return
    whole = min(cost, buckets.allowance.burst)
    if not buckets.take(name, max(0.0, whole - paid)):
        wait = buckets.seconds_until(name, whole)
        raise Problem(problems.RATE_LIMITED, f"more requests than {whose} may send; ask again in {wait} s", wait)
