"""Concurrency limit: the service works on a bounded number of requests, and a bounded number waits in a queue.

A service that accepts more requests than it can answer finishes none of them in time. All further requests are
therefore refused at once (`shedding`). Heavy requests (batches, uploads, free text) have a gate of their own, so that
they cannot take all permits of quick requests. API keys share a gate fairly (see `Gate`). A request may turn out to be
heavy while it is answered. It then moves to the other gate (`begin_heavy_work`). Work that consists of many
queries ends when its request has been answered 503 (`stop_if_late`).
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from anyio import from_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..wire import problems
from ..wire.problem_documents import Problem
from .rate_limits import PAY_THE_REST
from .refusals import REFUSED, is_open, refuse, secret_of

HEAVY_PATHS = frozenset({"/similar/batch", "/companies/bulk", "/match", "/feedback/pairs", "/feedback/next"})
SECONDS_SHARED = 1.0
"""How long after its last request a key still counts as one that sends them."""
BUSY = "the service is working on as many requests as it can; send the request again in a second"
log = logging.getLogger(__name__)


def is_heavy(scope: Scope) -> bool:
    """Return whether method and path make a request heavy: one of HEAVY_PATHS, or free text in the URL."""
    path: str = scope["path"]
    return path in HEAVY_PATHS or (path == "/similar" and scope["method"] in {"GET", "HEAD"})


class Gate:
    """A concurrency limit with `at_once` permits and a queue of `queue` slots, which API keys share.

    A request waits in the queue for at most `seconds`. The next permit goes to the request that has waited longest,
    among those whose key may take one. `key` is the API key of a request; None if it has none.

    No key can keep the others out of the queue. If the queue is full, a new request takes the slot of the last request
    of the key with the most waiting requests, unless its own key would then have more waiting requests than that key.

    A gate with several permits always keeps one free for other keys: the first request of another key would wait long
    for a heavy request to end. While several keys send requests, each has at most a third of the permits (at least
    two), because the threads of all requests contend for Python's lock. The permits that it has of `beside`,
    the gate of heavy requests, are subtracted, but it may always have one.
    """

    def __init__(
        self,
        *,
        at_once: int,
        queue: int,
        seconds: float,
        beside: "Gate | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.at_once = at_once
        self.queue = queue
        self.inside = 0
        self._seconds = seconds
        # The keys of the waiting requests; the one that has waited longest is the first. The result of a future is
        # whether the request has a permit.
        self._waiting: dict[asyncio.Future[bool], bytes | None] = {}
        self._inside: Counter[bytes | None] = Counter()
        self._beside = beside
        self._clock = clock
        # The two keys that sent a request last, and when.
        self._last: dict[bytes | None, float] = {}

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a permit."""
        return len(self._waiting)

    @property
    def may_refuse(self) -> bool:
        """Whether `refuses` may return True for some key; a quick check without a key."""
        return self.waiting >= self.queue

    def refuses(self, key: bytes | None) -> bool:
        """Return whether a request with `key` would get neither a permit nor a slot in the queue."""
        if self.waiting < self.queue or self._admits(key):
            return False
        waiting = Counter(self._waiting.values())
        return waiting[key] + 1 >= max(waiting.values(), default=0)

    async def enter(self, key: bytes | None = None) -> bool:
        """Take a permit, after a wait if necessary; return whether the request has one. If so, call `leave` later."""
        if self.refuses(key):
            return False
        self._last.pop(key, None)
        self._last = {**dict(list(self._last.items())[-1:]), key: self._clock()}
        self._admit_waiting()  # others may have stopped sending requests
        if self._admits(key):
            self._take(key)
            return True
        return await self._wait(key)

    def _admits(self, key: bytes | None) -> bool:
        """Return whether there is a permit for `key`."""
        most = self.at_once - 1
        if any(each != key and self._clock() - at < SECONDS_SHARED for each, at in self._last.items()):
            heavy = self._beside._inside[key] if self._beside else 0
            most = min(most, max(2, self.at_once // 3) - heavy)
        return self.inside < self.at_once and self._inside[key] < max(most, 1)

    def _take(self, key: bytes | None) -> None:
        self.inside += 1
        self._inside[key] += 1

    async def _wait(self, key: bytes | None) -> bool:
        """Wait in the queue for a permit; return whether the request has one."""
        if self.waiting >= self.queue:
            self._free_slot()
        permit = asyncio.get_running_loop().create_future()
        self._waiting[permit] = key
        try:
            async with asyncio.timeout(self._seconds):
                await permit
        except TimeoutError:
            pass  # the permit may have been given at the same moment
        except asyncio.CancelledError:
            if _is_given(permit):
                self.leave(key)
            raise
        finally:
            self._waiting.pop(permit, None)
        return _is_given(permit)

    def _free_slot(self) -> None:
        """End the wait of the last request of the key with the most waiting requests, as if its time were over."""
        [(busiest_key, _)] = Counter(self._waiting.values()).most_common(1)
        permit = next(permit for permit, key in reversed(self._waiting.items()) if key == busiest_key)
        del self._waiting[permit]
        if not permit.done():
            permit.set_result(False)

    def leave(self, key: bytes | None = None) -> None:
        """Give the permit of `enter` back. The next waiting request, if its key may take a permit, gets it."""
        self.inside -= 1
        self._inside[key] -= 1
        if not self._inside[key]:
            del self._inside[key]
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        for permit, waiting_key in list(self._waiting.items()):
            if not permit.done() and self._admits(waiting_key):
                del self._waiting[permit]
                self._take(waiting_key)
                permit.set_result(True)


def _is_given(permit: asyncio.Future[bool]) -> bool:
    return permit.done() and not permit.cancelled() and permit.result()


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of one process, for quick and for heavy requests."""

    quick: Gate
    heavy: Gate

    @property
    def threads(self) -> int:
        """Maximum number of worker threads in use. Requests that wait for a heavy permit may hold a thread."""
        return self.quick.at_once + self.heavy.at_once + self.heavy.queue

    def of(self, scope: Scope) -> Gate:
        """Return the gate of a request by its method and path."""
        return self.heavy if is_heavy(scope) else self.quick


class Permit:
    """The permit of one request, at one gate at a time."""

    def __init__(self, gates: Gates, scope: Scope) -> None:
        self._gates = gates
        self._scope = scope
        self._key = secret_of(scope)
        self._gate: Gate | None = None
        self.late = False
        """Whether the request has been answered 503, because its time was over."""

    @property
    def heavy(self) -> bool:
        """Whether this permit is for heavy work."""
        return self._gate is self._gates.heavy

    async def enter(self, gate: Gate) -> bool:
        """Take a permit of `gate`; return whether there was one. A permit of the other gate is given back first."""
        self.leave()
        if await gate.enter(self._key):
            self._gate = gate
        return self._gate is not None

    def leave(self) -> None:
        """Give the permit back, if the request has one."""
        if self._gate is not None:
            self._gate.leave(self._key)
            self._gate = None

    async def become_heavy(self) -> None:
        """Take the further rate-limit tokens that a heavy request costs, then move to the gate of heavy requests.

        Raises:
            Problem: the caller has too few tokens left, or the gate gives no permit.
        """
        try:
            if PAY_THE_REST in self._scope:
                self._scope[PAY_THE_REST]()
            if not await self.enter(self._gates.heavy):
                raise Problem(problems.OVERLOADED, BUSY)
        except Problem as problem:
            self._scope[REFUSED] = problem.kind.slug
            raise


_permit: ContextVar[Permit | None] = ContextVar("permit", default=None)


def begin_heavy_work() -> None:
    """Take a permit for heavy work, such as encoding. Call it in the worker thread of a request before that work.

    Outside a request, and if the request already has a heavy permit, it does nothing.

    Raises:
        Problem: the caller has too few tokens left, or there is no heavy permit. Do not start the work.
    """
    permit = _permit.get()
    if permit is not None and not permit.heavy:
        from_thread.run(permit.become_heavy)


def stop_if_late() -> None:
    """Raise a Problem if the request of this worker thread has been answered 503. Call it between parts of long work.

    Outside a request it does nothing.
    """
    permit = _permit.get()
    if permit is not None and permit.late:
        raise Problem(problems.TOOK_TOO_LONG, "the time of the request is over")


class Admission:
    """Middleware that takes a permit for each request. Answers 503 if there is none, or no answer begins in `seconds`.

    A worker thread cannot be stopped. After the 503 it continues to its end, or until it calls `stop_if_late`; it keeps
    its permit until then, and its answer is discarded. Open paths (`refusals.is_open`) need no permit.
    """

    def __init__(self, app: ASGIApp, *, gates: Gates, seconds: float) -> None:
        self._app = app
        self._gates = gates
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or connection (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        permit = Permit(self._gates, scope)
        if not is_open(scope["path"]) and not await permit.enter(self._gates.of(scope)):
            await refuse(Problem(problems.OVERLOADED, BUSY), scope, receive, send)
            return
        # Set for every request, because uvicorn runs all requests of a connection in the same context.
        _permit.set(permit)
        try:
            await self._answer(permit, scope, receive, send)
        finally:
            permit.leave()

    async def _answer(self, permit: Permit, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application. If it has not started its answer within the time limit, answer 503 and discard it."""
        started = False
        refusal: asyncio.Task[None] | None = None

        def give_up() -> None:
            nonlocal refusal
            if not started:
                permit.late = True
                detail = f"the answer took more than {self._seconds:g} s; ask for less, or try again later"
                problem = Problem(problems.TOOK_TOO_LONG, detail)
                refusal = asyncio.get_running_loop().create_task(refuse(problem, scope, receive, send))

        async def send_in_time(message: Message) -> None:
            nonlocal started
            if refusal is None:
                started = True
                await send(message)

        deadline = asyncio.get_running_loop().call_later(self._seconds, give_up)
        try:
            await self._app(scope, receive, send_in_time)
        except Exception:
            if refusal is None:
                raise
            log.exception("%s %r failed after its time limit, so its client got a 503", scope["method"], scope["path"])
        finally:
            deadline.cancel()
            if refusal is not None:
                await refusal
