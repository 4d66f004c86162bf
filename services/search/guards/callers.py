"""Who asks, and what they may do.

`authentication.py` finds out who asks, before any route runs; a route says what its caller needs:

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
"""Where the caller is in the ASGI scope of a request."""

# Only describes the header in the OpenAPI document: whoever has no valid key never gets as far as a route.
BEARER = HTTPBearer(
    scheme_name="ApiKey",
    description="A key of this service. Where it runs without keys (on one machine), everybody may do everything.",
    auto_error=False,
)


class Scope(StrEnum):
    """One thing a caller may be allowed to do."""

    READ = "read"
    """Ask for competitors and companies, look at lists, match names."""
    WRITE = "write"
    """Add, change, delete and erase companies."""
    FEEDBACK = "feedback"
    """Judge hits, export the judgements, save lists."""
    ADMIN = "admin"
    """Everything, and what is about the service itself."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request. `name` is a key's name and is kept with what they save; it is no secret."""

    name: str
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        """Whether they are allowed what `scope` stands for; an admin is allowed all."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


LOCAL = Caller(name="local", scopes=frozenset(Scope))
"""Everybody, where the service runs without keys."""


current_caller: ContextVar[Caller] = ContextVar("current_caller", default=LOCAL)
"""Of the request that is being worked on, in worker threads too."""


def who() -> str:
    """The caller of this request, as the audit record names them."""
    caller = current_caller.get()
    return "unauthenticated" if caller is LOCAL else f"key:{caller.name}"


def caller_name(scope: AsgiScope) -> str:
    """The name under which limits count whoever sent a request: a key's name, or a client's address."""
    caller = scope.get(CALLER, LOCAL)
    return f"address {client_address(scope)}" if caller is LOCAL else caller.name


def needs(scope: Scope) -> Any:
    """The FastAPI dependency that gives a route its caller, who is allowed `scope`.

    Raises (when a request is answered):
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
