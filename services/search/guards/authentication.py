"""Finds out which caller sent a request, before a route sees it."""

from collections.abc import Callable
from typing import TypeAlias

from starlette.types import ASGIApp, Receive, Scope, Send

from ..wire import problems
from ..wire.problem_documents import Problem
from .callers import CALLER, LOCAL, Caller, current_caller
from .rate_limits import TokenBuckets, take
from .refusals import CLOSE, client_address, is_open, refuse, secret_of

CHALLENGE = {"WWW-Authenticate": 'Bearer realm="company similarity"'}
WRONG_KEY = {"WWW-Authenticate": 'Bearer realm="company similarity", error="invalid_token"'}
# Tokens of OPEN_ALLOWANCE for one refusal: an address gets 100 refusals at once, and 25 a second in the long run.
REFUSAL_COST = 4.0


Keys: TypeAlias = Callable[[str], Caller | None]
"""Returns the caller with a secret; None if no caller has it. `KeyRing.caller` is such a function."""


class Authentication:
    """Puts the caller of a request into its scope, or answers 401.

    Without `keys` every caller is LOCAL. With them, every path needs a valid key, except the open ones (`is_open`),
    whether or not a route asks for a scope. Each refusal takes REFUSAL_COST tokens from the client's address in
    `strangers`, which also limits requests without a key. If too few are left, the answer is 429, and the connection
    is closed. A valid key always passes, so nobody can lock out others behind the same address.
    """

    def __init__(self, app: ASGIApp, *, keys: Keys | None, strangers: TokenBuckets) -> None:
        self._app = app
        self._keys = keys
        self._strangers = strangers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or connection (ASGI)."""
        if scope["type"] == "http" and not is_open(scope["path"]):
            secret = secret_of(scope)
            caller = LOCAL if self._keys is None else self._keys(secret.decode("latin-1")) if secret else None
            if caller is None:
                await self._refuse(secret, scope, receive, send)
                return
            scope[CALLER] = caller
            current_caller.set(caller)
        await self._app(scope, receive, send)

    async def _refuse(self, secret: bytes | None, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            take(self._strangers, client_address(scope), "this address", REFUSAL_COST)
        except Problem as too_many:
            await refuse(too_many, scope, receive, send, headers=CLOSE)
            return
        if secret is None:
            problem, headers = Problem(problems.KEY_NEEDED, "send a key: Authorization: Bearer KEY"), CHALLENGE
        else:
            detail = "this key is unknown, revoked or expired; ask for a new one"
            problem, headers = Problem(problems.KEY_NEEDED, detail), WRONG_KEY
        await refuse(problem, scope, receive, send, headers=headers)
