"""The refusal of a request by a middleware, and the facts about a request that several middlewares use."""

import ipaddress
from collections.abc import Mapping

from starlette.types import Receive, Scope, Send

from ..wire.problem_documents import Problem, problem_response

REFUSED = "similarity.refused"
"""Key in the ASGI scope. Its value is the slug of the problem with which the request was refused."""

WAITS = "similarity.waits"
"""Key in the state of an ASGI scope. Its value, while the request waits, is the event that ends the wait.

The connection counts as idle meanwhile.
"""

CLOSE = {"Connection": "close"}
HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
OPEN_PATHS = HEALTH_PATHS | {"/", "/docs", "/openapi.json"}
OPEN_FOLDER = "/assets/"


def is_open(path: str) -> bool:
    """Return whether requests for `path` need no key: health checks, the page and its files, the manual.

    These requests have no body. They take no permit and no tokens of callers, so they cannot use these up.
    """
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)


def is_health_check(scope: Scope) -> bool:
    """Return whether a request is a health check."""
    return scope["path"] in HEALTH_PATHS and scope["method"] == "GET"


async def refuse(
    problem: Problem, scope: Scope, receive: Receive, send: Send, *, headers: Mapping[str, str] | None = None
) -> None:
    """Send `problem` as the response, and store its slug in the scope for the metrics."""
    scope[REFUSED] = problem.kind.slug
    response = problem_response(problem, path=scope["path"], headers=dict(headers or {}))
    await response(scope, receive, send)


def header(scope: Scope, name: bytes) -> bytes | None:
    """Return the value of the first header called `name` (lower case); None if there is none."""
    return next((value for key, value in scope["headers"] if key == name), None)


def secret_in(authorization: bytes | None) -> bytes | None:
    """Return the secret in an `Authorization` header; None if it is not "Bearer" (case-insensitive) and one word."""
    words = (authorization or b"").split()
    return words[1] if len(words) == 2 and words[0].lower() == b"bearer" else None


def secret_of(scope: Scope) -> bytes | None:
    """Return the secret of a request (see `secret_in`); None if it has none."""
    return secret_in(header(scope, b"authorization"))


def client_address(scope: Scope) -> str:
    """Return the client's address as rate limits count it (see `network_of`)."""
    client = scope.get("client")
    return "unknown" if client is None else network_of(str(client[0]))


def network_of(host: str) -> str:
    """Return the address as rate limits count it; for IPv6, its /64 network, because one client can use all of it.

    An IPv4-mapped address such as ::ffff:192.0.2.1 counts as its IPv4 address. All texts that are no address, for
    example in X-Forwarded-For, count as one address.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "unknown"
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    mapped = address.ipv4_mapped
    return str(mapped or ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
