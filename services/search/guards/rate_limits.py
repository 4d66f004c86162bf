"""How often callers may ask: a token bucket each, and one for the whole process.

The headers are those of draft-ietf-httpapi-ratelimit-headers: `RateLimit-Policy` says what is
allowed, `RateLimit` what is left of it.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.search.guards.callers import CALLER, caller_name
from services.search.guards.heavy_work import asked_first
from services.search.guards.refusals import REFUSED, refuse
from services.search.wire import problems
from services.search.wire.problem_documents import Problem

Clock = Callable[[], float]

MOST_BUCKETS = 10_000
HEAVY_COST = 10.0
FREE_PATHS = frozenset({"/healthz", "/readyz", "/", "/docs", "/openapi.json"})
FILES = "/assets/"


@dataclass(frozen=True, slots=True)
class Allowance:
    """`burst` requests at once, and `rate` a second in the long run. `rate` must be above 0, `burst` at least 1."""

    rate: float
    burst: float

    @property
    def seconds_to_refill(self) -> int:
        """How long an empty bucket takes to be full again, in whole seconds."""
        return math.ceil(self.burst / self.rate)


def is_free(path: str) -> bool:
    """Whether requests for `path` are neither counted nor need a place: health checks, the page's files, the manual.

    Those are next to no work, and a page that misses one of its twenty files is dead: nothing in it is
    left to ask again. Whatever may be asked without a key must be free: else those who have none could
    use up what those who have one share.
    """
    return path in FREE_PATHS or path.startswith(FILES)


class TokenBucket:
    """Never lets through more than `rate * t + burst` in any `t` seconds. Not for several threads."""

    __slots__ = ("_at", "_clock", "_tokens", "allowance")

    def __init__(self, allowance: Allowance, clock: Clock) -> None:
        self.allowance = allowance
        self._clock = clock
        self._tokens = allowance.burst
        self._at = clock()

    @property
    def tokens(self) -> float:
        """What is left now."""
        now = self._clock()
        # Tokens and time move together, so that a clock that stands still or steps back gives nothing away.
        if now > self._at:
            self._tokens = min(self.allowance.burst, self._tokens + (now - self._at) * self.allowance.rate)
            self._at = now
        return self._tokens

    def take(self, cost: float = 1.0) -> bool:
        """Takes `cost` tokens if there are so many; a bucket smaller than that gives all it can hold."""
        cost = min(cost, self.allowance.burst)
        if self.tokens < cost:
            return False
        self._tokens -= cost
        return True

    def seconds_until(self, cost: float = 1.0) -> int:
        """Whole seconds until `cost` tokens are there; at least 1."""
        lacking = min(cost, self.allowance.burst) - self.tokens
        return max(1, math.ceil(lacking / self.allowance.rate))


class Buckets:
    """A bucket for every name; the one not used for longest is forgotten when there are too many."""

    def __init__(self, allowance: Allowance, *, clock: Clock = time.monotonic, most: int = MOST_BUCKETS) -> None:
        self.allowance = allowance
        self._clock = clock
        self._most = most
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def of(self, name: str) -> TokenBucket:
        """The bucket of `name`; a full one where it is new."""
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = TokenBucket(self.allowance, self._clock)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(name)
        return bucket


class RateLimits:
    """Answers 429 to whoever asks too often; tells every caller it counts what is left.

    A caller is a key's name; without keys, the client's address. A heavy request counts as ten: at the
    door where `heavy` knows it, else when it turns out to be one (`heavy_work`). What is free
    (`is_free`) is not counted.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        callers: Allowance | None,
        process: Allowance | None,
        heavy: Callable[[Scope], bool],
        clock: Clock = time.monotonic,
    ) -> None:
        self._app = app
        self._callers = Buckets(callers, clock=clock) if callers else None
        self._process = TokenBucket(process, clock) if process else None
        self._heavy = heavy
        self._policy = f'"caller";q={callers.burst:.0f};w={callers.seconds_to_refill}' if callers else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection (ASGI)."""
        if scope["type"] != "http" or is_free(scope["path"]):
            await self._app(scope, receive, send)
            return
        heavy = self._heavy(scope)
        bucket = self._bucket(scope)
        told = send if bucket is None else self._telling(bucket, send)
        buckets = [
            (each, whose)
            for each, whose in ((bucket, "this caller"), (self._process, "the whole service"))
            if each is not None
        ]
        try:
            _take(buckets, cost=HEAVY_COST if heavy else 1.0)
        except Problem as refusal:
            await refuse(refusal, scope, receive, told)
            return
        if heavy or not buckets:
            await self._app(scope, receive, told)
            return

        async def take_the_rest() -> None:
            try:
                _take(buckets, cost=HEAVY_COST, paid=1.0)
            except Problem as refusal:
                scope[REFUSED] = refusal.kind.slug
                raise

        with asked_first(scope, take_the_rest):
            await self._app(scope, receive, told)

    def _bucket(self, scope: Scope) -> TokenBucket | None:
        return self._callers.of(caller_name(scope)) if self._callers and CALLER in scope else None

    def _telling(self, bucket: TokenBucket, send: Send) -> Send:
        async def telling(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["RateLimit-Policy"] = self._policy
                left = math.floor(bucket.tokens)
                headers["RateLimit"] = f'"caller";r={left};t={bucket.seconds_until(bucket.allowance.burst)}'
            await send(message)

        return telling


def _take(buckets: Iterable[tuple[TokenBucket, str]], *, cost: float, paid: float = 0.0) -> None:
    """Takes what is left to pay of `cost` from each bucket; a bucket smaller than that gives all it can hold.

    Raises:
        Problem: one has too little.
    """
    for bucket, whose in buckets:
        whole = min(cost, bucket.allowance.burst)
        if not bucket.take(max(0.0, whole - paid)):
            wait = bucket.seconds_until(whole)
            detail = f"more requests than {whose} may send; ask again in {wait} s"
            raise Problem(problems.RATE_LIMITED, detail, wait)
