"""Concurrency limit: a bounded number of requests is worked on, and a bounded number waits.

A service that accepts more than it can do finishes nothing in time, so the rest is refused at once (`shedding`).
Heavy requests (batches, uploads, free text) have a gate of their own and cannot take every permit from the quick ones.
API keys share the queue of a gate fairly, so that one key cannot fill it.
A request that turns out to be heavy while it is answered changes its gate then (`begin_heavy_work`).
"""

import asyncio
import logging
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass

from anyio import from_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..wire import problems
from ..wire.problem_documents import Problem
from .rate_limits import PAY_THE_REST
from .refusals import REFUSED, header, is_open, refuse, secret_in

HEAVY_PATHS = frozenset({"/similar/batch", "/companies/bulk", "/match", "/feedback/pairs", "/feedback/next"})
BUSY = "as many requests as the service can work on are under way; ask again in a second"
log = logging.getLogger(__name__)


def is_heavy(scope: Scope) -> bool:
    """Whether a request is heavy by its method and path: one of HEAVY_PATHS, or free text by GET."""
    path: str = scope["path"]
    return path in HEAVY_PATHS or (path == "/similar" and scope["method"] in {"GET", "HEAD"})


class Gate:
    """Gives out `at_once` permits; up to `queue` requests wait `seconds` each, first come, first served.

    `key` is the Authorization header of a request, None without one. In a full queue, a request whose key has fewer
    requests waiting takes the slot of the last request of the key that has the most.
    """

    def __init__(self, *, at_once: int, queue: int, seconds: float) -> None:
        self.at_once = at_once
        self.queue = queue
        self.inside = 0
        self._seconds = seconds
        self._permits = asyncio.Semaphore(at_once)
        # The key of each waiting request by its deadline, the longest waiting first.
        self._waiting: dict[asyncio.Timeout, bytes | None] = {}

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a permit."""
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether there is neither a permit nor room in the queue."""
        return self._permits.locked() and self.waiting >= self.queue

    def refuses(self, key: bytes | None) -> bool:
        """Whether a request with `key` can neither have a permit nor wait for one."""
        if not self.full:
            return False
        waiting = Counter(self._waiting.values())
        return waiting[key] + 1 >= max(waiting.values(), default=0)

    async def enter(self, key: bytes | None = None) -> bool:
        """Whether the request has a permit; if so, `leave` must follow."""
        if self.refuses(key):
            return False
        if not self._permits.locked():
            await self._permits.acquire()
        elif not await self._wait(key):
            return False
        self.inside += 1
        return True

    async def _wait(self, key: bytes | None) -> bool:
        if self.full:
            self._end_a_wait()
        deadline = asyncio.timeout(self._seconds)
        self._waiting[deadline] = key
        try:
            async with deadline:
                await self._permits.acquire()
        except TimeoutError:
            return False
        finally:
            self._waiting.pop(deadline, None)
        return True

    def _end_a_wait(self) -> None:
        """Ends the wait of the last request of the key that has the most."""
        [(most, _)] = Counter(self._waiting.values()).most_common(1)
        last = next(deadline for deadline, key in reversed(self._waiting.items()) if key == most)
        del self._waiting[last]
        last.reschedule(asyncio.get_running_loop().time())

    def leave(self) -> None:
        """Give the permit to the request that has waited longest."""
        self.inside -= 1
        self._permits.release()


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of one process, for quick and for heavy requests."""

    quick: Gate
    heavy: Gate

    @property
    def threads(self) -> int:
        """The most worker threads that requests need at once; a request may wait for a heavy permit within one."""
        return self.quick.at_once + self.heavy.at_once + self.heavy.queue

    def of(self, scope: Scope) -> Gate:
        """Return the gate of a request by its method and path."""
        return self.heavy if is_heavy(scope) else self.quick


class Permit:
    """The permit of one request, at one gate at a time."""

    def __init__(self, gates: Gates, scope: Scope) -> None:
        self._gates = gates
        self._scope = scope
        self._key = secret_in(header(scope, b"authorization"))
        self._gate: Gate | None = None

    @property
    def heavy(self) -> bool:
        """Whether it is a permit for heavy work."""
        return self._gate is self._gates.heavy

    async def enter(self, gate: Gate) -> bool:
        """Whether there is a permit at `gate`; the one at another gate is given up before this one waits."""
        self.leave()
        if await gate.enter(self._key):
            self._gate = gate
        return self._gate is not None

    def leave(self) -> None:
        """Give up the permit, if one is held."""
        if self._gate is not None:
            self._gate.leave()
            self._gate = None

    async def become_heavy(self) -> None:
        """Take the further tokens of a heavy request, then change the gate.

        Raises:
            Problem: the caller has too few tokens left, or there is no permit for the work.
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
    """Get the permit for heavy work (encoding), in the worker thread of a request; elsewhere it does nothing.

    Raises:
        Problem: the caller has too few tokens left, or there is no permit for the work; nothing was begun.
    """
    permit = _permit.get()
    if permit is not None and not permit.heavy:
        from_thread.run(permit.become_heavy)


class Admission:
    """Takes a permit for each request, and answers 503 if the application needs more than `seconds`.

    A worker thread cannot be stopped: after the 503 it works to its end and keeps its permit until then; its answer
    is discarded. Open paths need no permit.
    """

    def __init__(self, app: ASGIApp, *, gates: Gates, seconds: float) -> None:
        self._app = app
        self._gates = gates
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        permit = Permit(self._gates, scope)
        if not is_open(scope["path"]) and not await permit.enter(self._gates.of(scope)):
            await refuse(Problem(problems.OVERLOADED, BUSY), scope, receive, send)
            return
        # Always set: uvicorn begins the next request of a connection in the context of the last one.
        _permit.set(permit)
        try:
            await self._answer(scope, receive, send)
        finally:
            permit.leave()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False
        refusal: asyncio.Task[None] | None = None

        def give_up() -> None:
            nonlocal refusal
            if not started:
                detail = f"no answer within {self._seconds:g} s; ask for less, or again later"
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
            log.exception("%s %r failed after it had been given up", scope["method"], scope["path"])
        finally:
            deadline.cancel()
            if refusal is not None:
                await refusal
