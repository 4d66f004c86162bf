"""How a middleware says no."""

import ipaddress
from collections.abc import Mapping

from starlette.types import Receive, Scope, Send

from services.search.wire.problem_documents import Problem, problem_response

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
    """The network address that asks, as limits count it."""
    client = scope.get("client")
    return "unknown" if client is None else network_of(str(client[0]))


def network_of(host: str) -> str:
    """The address as limits count it: an IPv6 customer has a whole /64, and ::ffff:192.0.2.1 is an IPv4 address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    mapped = address.ipv4_mapped
    return str(mapped or ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
