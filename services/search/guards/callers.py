"""The callers of the service and their scopes.

`authentication.py` finds the caller of a request before any route runs. A route declares the scope that it needs:

    def save(caller: Annotated[Caller, needs(Scope.WRITE)]) -> ...
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.types import Scope as AsgiScope

from .. import PROGRAM
from ..wire import problems
from ..wire.problem_documents import Problem
from .refusals import client_address

CALLER = "similarity.caller"
"""The key of the caller in the ASGI scope of a request."""

# Only describes the header in the OpenAPI document: a request without a valid key is refused before the routes.
BEARER = HTTPBearer(
    scheme_name="ApiKey",
    description="A key of this service. Where it runs without keys (on one machine), everybody may do everything.",
    auto_error=False,
)


class Scope(StrEnum):
    """A permission of a caller."""

    READ = "read"
    """Search, read companies and lists, match names."""
    WRITE = "write"
    """Add, change, delete and erase companies."""
    FEEDBACK = "feedback"
    """Judge hits, export the judgements, save lists."""
    ADMIN = "admin"
    """All of these, and the operation of the service."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request. `name`: the name of the API key, which is stored with verdicts and lists; no secret."""

    name: str
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        """Return whether the caller has `scope`; an admin has all scopes."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


LOCAL = Caller(name="local", scopes=frozenset(Scope))
"""The caller of every request if the service has no keys."""


current_caller: ContextVar[Caller] = ContextVar("current_caller", default=LOCAL)
"""The caller of the current request, also in its worker threads."""


def who() -> str:
    """Return the name of the current caller in the audit record."""
    caller = current_caller.get()
    return "unauthenticated" if caller is LOCAL else f"key:{caller.name}"


def caller_name(scope: AsgiScope) -> str:
    """Return the name under which limits count the requests of a caller: a key's name, or a client's address."""
    caller = scope.get(CALLER, LOCAL)
    return f"address {client_address(scope)}" if caller is LOCAL else caller.name


def needs(scope: Scope) -> Any:
    """Return the FastAPI dependency that passes a caller with `scope` to a route.

    The dependency raises:
        Problem: the caller's key lacks that scope (403).
    """
    return Security(_allowed(scope), scopes=[scope.value])


def _allowed(scope: Scope) -> Callable[..., Awaitable[Caller]]:
    async def allowed(request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]) -> Caller:
        caller: Caller = request.scope.get(CALLER, LOCAL)
        if not caller.may(scope):
            raise Problem(
                problems.SCOPE_MISSING,
                f"the key {caller.name!r} may not do this; it needs the scope {scope.value!r}, which whoever runs "
                f"the service can give to a new key: {PROGRAM}.keys add",
            )
        return caller

    return allowed
