"""How many requests are worked on at once, how many may wait, and what happens to the rest.

A service that takes on more than it can do finishes nothing in time. Here a bounded number is inside,
a bounded number waits for a bounded time, and everybody else is told at once, before anything is
parsed, checked or logged: saying no costs a fraction of what an answer does.

Heavy requests (batches, uploads, free text: much work for one request) have a gate of their own, so
that they cannot take every place from the quick ones. What only shows to be heavy while it is worked on
changes from the one to the other (`heavy_work`).
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.search.guards.connections import BEYOND_LIMIT, HEALTH_PATHS
from services.search.guards.envelope import SECURITY_HEADERS
from services.search.guards.heavy_work import asked_first
from services.search.guards.rate_limits import is_free
from services.search.guards.refusals import REFUSED, refuse
from services.search.wire import problems
from services.search.wire.problem_documents import MEDIA_TYPE, Problem

HEAVY_PATHS = frozenset({"/similar/batch", "/companies/bulk", "/match", "/feedback/pairs", "/feedback/next"})
BUSY = "as many requests as the service can work on are under way; ask again in a second"

log = logging.getLogger(__name__)


def is_heavy(scope: Scope) -> bool:
    """Whether method and path say that a request is much work: one of HEAVY_PATHS, or free text by GET."""
    path: str = scope["path"]
    return path in HEAVY_PATHS or (path == "/similar" and scope["method"] in {"GET", "HEAD"})


class Gate:
    """Lets `at_once` in, keeps `queue` waiting for up to `seconds` each, first come, first served."""

    def __init__(self, *, at_once: int, queue: int, seconds: float) -> None:
        self.at_once = at_once
        self.queue = queue
        self.inside = 0
        self._seconds = seconds
        self._waiting: deque[asyncio.Future[bool]] = deque()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether nobody else may even wait."""
        return self.inside >= self.at_once and len(self._waiting) >= self.queue

    async def enter(self) -> bool:
        """Whether the request may go in; if so, `leave` must follow."""
        if self.inside < self.at_once:
            self.inside += 1
            return True
        if self.full:
            return False
        loop = asyncio.get_running_loop()
        place: asyncio.Future[bool] = loop.create_future()
        self._waiting.append(place)
        deadline = loop.call_later(self._seconds, self._give_up, place)
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.result():
                self.leave()
            else:
                self._give_up(place)
            raise
        finally:
            deadline.cancel()

    def leave(self) -> None:
        """Hands the place to whoever waits longest."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(True)
                return
        self.inside -= 1

    def _give_up(self, place: asyncio.Future[bool]) -> None:
        if place in self._waiting:
            self._waiting.remove(place)
        if not place.done():
            place.set_result(False)


class Place:
    """What a request holds while it is worked on: a place at one gate, and at another once that fits better."""

    def __init__(self) -> None:
        self._gate: Gate | None = None

    async def take(self, gate: Gate) -> bool:
        """Whether there is a place at `gate`; one at another gate is given up first, not kept while this one waits."""
        if self._gate is gate:
            return True
        self.leave()
        if await gate.enter():
            self._gate = gate
        return self._gate is gate

    def leave(self) -> None:
        """Gives the place up, if one is held."""
        if self._gate is not None:
            self._gate.leave()
            self._gate = None


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of one process: everybody's, and the one of heavy requests."""

    quick: Gate
    heavy: Gate

    @property
    def threads(self) -> int:
        """The most worker threads that requests may need at once: also those that wait for a heavy place within one."""
        return self.quick.at_once + self.heavy.at_once + self.heavy.queue

    def of(self, scope: Scope) -> Gate:
        """The gate a request has to pass."""
        return self.heavy if is_heavy(scope) else self.quick


class Shedding:
    """Says 503 at once where the gate is full, or the connection is beyond the limits.

    Outside everything else, since it must cost next to nothing. `shed` is told of each; there is no line
    in the log, which would cost more than the refusal.
    """

    def __init__(self, app: ASGIApp, *, gates: Gates, shed: Callable[[], None]) -> None:
        self._app = app
        self._gates = gates
        self._shed = shed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection (ASGI)."""
        if scope["type"] != "http" or not self._is_shed(scope):
            await self._app(scope, receive, send)
            return
        self._shed()
        body = BUSY_BODY % json.dumps(scope["path"]).encode()
        headers = [*BUSY_HEADERS, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": problems.OVERLOADED.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _is_shed(self, scope: Scope) -> bool:
        if scope.get("state", {}).get(BEYOND_LIMIT):
            return scope["path"] not in HEALTH_PATHS
        return not is_free(scope["path"]) and self._gates.of(scope).full


class Admission:
    """Takes a place for each request and answers 503 where `seconds` were not enough for it.

    A worker thread cannot be stopped: what was given up goes on to its end and keeps its place until
    then, so that no more than `at_once` are ever worked on; what it says is thrown away. Paths that are
    free (`is_free`) take no place.
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
        if is_free(scope["path"]):
            await self._answer(scope, receive, send)
            return
        place = Place()
        if not await place.take(self._gates.of(scope)):
            await refuse(Problem(problems.OVERLOADED, BUSY), scope, receive, send)
            return

        async def change_to_heavy() -> None:
            if not await place.take(self._gates.heavy):
                scope[REFUSED] = problems.OVERLOADED.slug
                raise Problem(problems.OVERLOADED, BUSY)

        try:
            with asked_first(scope, change_to_heavy):
                await self._answer(scope, receive, send)
        finally:
            place.leave()

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


BUSY_HEADERS = [
    (b"content-type", MEDIA_TYPE.encode()),
    (b"retry-after", str(problems.OVERLOADED.retry_after).encode()),
    *((name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()),
]
BUSY_BODY = (
    json.dumps(
        {
            "type": f"/docs#{problems.OVERLOADED.slug}",
            "title": problems.OVERLOADED.title,
            "status": problems.OVERLOADED.status,
            "detail": BUSY,
        }
    )[:-1].encode()
    + b', "instance": %s}'
)
