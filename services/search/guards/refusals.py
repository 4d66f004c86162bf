"""How a middleware says no."""

from collections.abc import Mapping

from starlette.types import Receive, Scope, Send

from services.search.wire.problems import Problem, problem_response

REFUSED = "similarity.refused"
"""Where the ASGI scope says why a request got no further than the middlewares: the problem's slug."""


async def refuse(
    problem: Problem, scope: Scope, receive: Receive, send: Send, *, headers: Mapping[str, str] | None = None
) -> None:
    """Answers with `problem` and leaves a note of it for the metrics."""
    scope[REFUSED] = problem.kind.slug
    response = problem_response(problem, path=scope["path"], headers=dict(headers or {}))
    await response(scope, receive, send)


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first header called `name` (lower case) as it came."""
    return next((value for key, value in scope["headers"] if key == name), None)


def client_address(scope: Scope) -> str:
    """The network address that asks; all of an IPv6 customer's addresses (/64) count as one."""
    client = scope.get("client")
    if client is None:
        return "unknown"
    host = str(client[0])
    return ":".join(host.split(":")[:4]) if ":" in host else host
