"""How a middleware refuses a request, and what several of them need to know about one."""

import ipaddress
from collections.abc import Mapping

from starlette.types import Receive, Scope, Send

from ..wire.problem_documents import Problem, problem_response

REFUSED = "similarity.refused"
"""The key in an ASGI scope of the reason why a request was refused: the problem's slug."""

CLOSE = {"Connection": "close"}
HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
OPEN_PATHS = HEALTH_PATHS | {"/", "/docs", "/openapi.json"}
OPEN_FOLDER = "/assets/"


def is_open(path: str) -> bool:
    """Whether requests for `path` need no key: health checks, the page and its files, the manual.

    They take no body, no permit and no token of the callers with a key, so nobody without a key can use those up.
    """
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)


async def refuse(
    problem: Problem, scope: Scope, receive: Receive, send: Send, *, headers: Mapping[str, str] | None = None
) -> None:
    """Answers with `problem` and notes its slug for the metrics."""
    scope[REFUSED] = problem.kind.slug
    response = problem_response(problem, path=scope["path"], headers=dict(headers or {}))
    await response(scope, receive, send)


def header(scope: Scope, name: bytes) -> bytes | None:
    """The value of the first header called `name` (lower case); None if there is none."""
    return next((value for key, value in scope["headers"] if key == name), None)


def secret_in(authorization: bytes | None) -> bytes | None:
    """The secret in an `Authorization` header, which may write its scheme in any case and with any spaces before it."""
    words = (authorization or b"").split()
    return words[-1] if words else None


def client_address(scope: Scope) -> str:
    """The client's network address, as limits count it."""
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
