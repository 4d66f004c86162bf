"""Finds out who asks, before anything else looks at the request."""

import time
from collections.abc import Callable
from typing import Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from services.search.guards.callers import CALLER, LOCAL, Caller, current_caller
from services.search.guards.rate_limits import Allowance, Buckets
from services.search.guards.refusals import client_address, header, refuse
from services.search.wire import problems
from services.search.wire.problem_documents import Problem

OPEN_PATHS = frozenset({"/", "/docs", "/openapi.json", "/healthz", "/readyz"})
OPEN_FOLDER = "/assets/"
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="company similarity"'}
WRONG_KEY = {"WWW-Authenticate": 'Bearer realm="company similarity", error="invalid_token"'}
WRONG_KEYS = Allowance(rate=0.2, burst=20)


class Keys(Protocol):
    """What authentication needs of the keys; `key_ring.KeyRing` is one."""

    def caller(self, secret: str) -> Caller | None:
        """Whose secret it is."""


class Authentication:
    """Lets a request through with its caller in the scope, or answers 401.

    Without `keys` everybody is LOCAL. With them, everything but the page, the manual and the health
    checks takes a valid key, whether or not a route asks for a scope. Wrong keys are counted per
    client address and answered 429 beyond 20, then one more every 5 seconds; a valid key always
    passes, so nobody can lock out others behind the same address.
    """

    def __init__(self, app: ASGIApp, *, keys: Keys | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._keys = keys
        self._wrong = Buckets(WRONG_KEYS, clock=clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection (ASGI)."""
        if scope["type"] != "http" or is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        if self._keys is None:
            scope[CALLER] = LOCAL
            await self._app(scope, receive, send)
            return
        secret = bearer(scope)
        if secret is None:
            problem = Problem(problems.KEY_NEEDED, "send a key: Authorization: Bearer KEY")
            await refuse(problem, scope, receive, send, headers=CHALLENGE)
            return
        caller = self._keys.caller(secret)
        if caller is None:
            await self._refuse_wrong_key(scope, receive, send)
            return
        scope[CALLER] = caller
        current_caller.set(caller)
        await self._app(scope, receive, send)

    async def _refuse_wrong_key(self, scope: Scope, receive: Receive, send: Send) -> None:
        bucket = self._wrong.of(client_address(scope))
        if bucket.take():
            problem = Problem(problems.KEY_NEEDED, "this key is unknown, revoked or expired; ask for a new one")
            await refuse(problem, scope, receive, send, headers=WRONG_KEY)
            return
        wait = bucket.seconds_until()
        problem = Problem(problems.RATE_LIMITED, f"too many wrong keys from this address; try again in {wait} s")
        await refuse(problem, scope, receive, send, headers={"Retry-After": str(wait)})


def is_open(path: str) -> bool:
    """Whether `path` may be asked for without a key."""
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)


def bearer(scope: Scope) -> str | None:
    """The secret that a request carries; None where it carries none."""
    value = header(scope, b"authorization")
    scheme, _, secret = (value or b"").decode("latin-1").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" and secret.strip() else None
