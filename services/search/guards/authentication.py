"""Finds out which caller sent a request, before a route sees it."""

import time
from collections.abc import Callable
from typing import TypeAlias

from starlette.types import ASGIApp, Receive, Scope, Send

from ..wire import problems
from ..wire.problem_documents import Problem
from .callers import CALLER, LOCAL, Caller, current_caller
from .rate_limits import Allowance, TokenBuckets
from .refusals import CLOSE, client_address, header, is_open, refuse, secret_in

CHALLENGE = {"WWW-Authenticate": 'Bearer realm="company similarity"'}
WRONG_KEY = {"WWW-Authenticate": 'Bearer realm="company similarity", error="invalid_token"'}
WRONG_KEYS = Allowance(rate=0.2, burst=50)  # an office behind one address may hold a few expired keys
REFUSED_ALLOWANCE = Allowance(rate=20, burst=100)


Keys: TypeAlias = Callable[[str], Caller | None]
"""Returns the caller of a secret, None if there is none; `KeyRing.caller` is such a function."""


class Authentication:
    """Puts the caller of a request into its scope, or answers 401.

    Without `keys` every caller is LOCAL. With them, every path needs a valid key, except the open ones (`is_open`),
    whether or not a route asks for a scope. Wrong keys are counted for each client address and answered 429
    beyond 50, then one more every 5 seconds. Refusals are counted too: beyond REFUSED_ALLOWANCE the address loses its
    connection, and with it the requests that it has pipelined. A valid key always passes, so nobody can lock out
    others behind the same address.
    """

    def __init__(self, app: ASGIApp, *, keys: Keys | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._keys = keys
        self._wrong = TokenBuckets(WRONG_KEYS, clock=clock)
        self._refused = TokenBuckets(REFUSED_ALLOWANCE, clock=clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection (ASGI)."""
        if scope["type"] == "http" and not is_open(scope["path"]):
            secret = bearer(scope)
            caller = LOCAL if self._keys is None else self._keys(secret) if secret else None
            if caller is None:
                await self._refuse(secret, scope, receive, send)
                return
            scope[CALLER] = caller
            current_caller.set(caller)
        await self._app(scope, receive, send)

    async def _refuse(self, secret: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        address = client_address(scope)
        if not self._refused.take(address):
            detail = "too many requests without a valid key from this address"
            problem = Problem(problems.RATE_LIMITED, detail, self._refused.seconds_until(address))
            await refuse(problem, scope, receive, send, headers=CLOSE)
            return
        if secret is None:
            problem, headers = Problem(problems.KEY_NEEDED, "send a key: Authorization: Bearer KEY"), CHALLENGE
        elif self._wrong.take(address):
            detail = "this key is unknown, revoked or expired; ask for a new one"
            problem, headers = Problem(problems.KEY_NEEDED, detail), WRONG_KEY
        else:
            wait = self._wrong.seconds_until(address)
            detail = f"too many wrong keys from this address; try again in {wait} s"
            problem, headers = Problem(problems.RATE_LIMITED, detail, wait), {}
        await refuse(problem, scope, receive, send, headers=headers)


def bearer(scope: Scope) -> str | None:
    """Return the secret of a request; None if it has none."""
    secret = secret_in(header(scope, b"authorization"))
    return None if secret is None else secret.decode("latin-1")
