"""Refuses requests by their head: its size, its framing, its `Host` and its `Origin`.

The page of another site, open in the browser of a user of this service, can make that browser send requests here. It
cannot read the answers (CORS), unless its name is made to resolve to this machine (DNS rebinding): then `Host` still
holds that name. It cannot change anything, because the browser sends the origin of the page in `Origin`. Requests by
IP address are accepted, because an address cannot be rebound; health checks of Kubernetes send them.
"""

import ipaddress
import json
from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from ..wire import problems
from ..wire.problem_documents import Problem
from .lifecycle import Lifecycle
from .refusals import CLOSE, header, refuse

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
ANY = "*"
MOST_HEADERS = 100
# All lists of `GET /similar` together have 459. Each parameter costs time, also where the path takes none: without a
# limit, 7,000 held up the process for a tenth of a second.
MOST_PARAMETERS = 500
HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
# Bytes of a head besides method, path, query, and names and values of headers.
BYTES_OF_LINES, BYTES_OF_HEADER = len(" ? HTTP/1.1\r\n" + "\r\n"), len(": " + "\r\n")


@dataclass(eq=False)
class Heads:
    """Answers 431 or 400 where the head is too large or the body's length ambiguous, 503 to `/readyz` while the
    service stops, 421 to another host name, and 403 to changes from another site's page; then closes the connection.

    `names`: without ports, lower case; ANY allows all. `origins`: of pages elsewhere that may ask (CORS).
    """

    app: ASGIApp
    _: KW_ONLY
    names: Collection[str]
    lifecycle: Lifecycle
    origins: Collection[str] = ()
    most_bytes: int = 32_768

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection (ASGI)."""
        if scope["type"] == "http" and (problem := self._unusable(scope) or self._unwanted(scope)):
            # A flood of refusals has to open a connection for each.
            await refuse(problem, scope, receive, send, headers=CLOSE)
            return
        await self.app(scope, receive, send)

    def _unusable(self, scope: Scope) -> Problem | None:
        # The server's own limits are for heads that arrive in several parts, or in one.
        if len(scope["headers"]) > MOST_HEADERS:
            return Problem(problems.HEAD_TOO_LARGE, f"a request may have {MOST_HEADERS} headers; send fewer")
        if scope.get("query_string", b"").count(b"&") >= MOST_PARAMETERS:
            detail = f"the address has more than {MOST_PARAMETERS} parameters; send fewer, or a body"
            return Problem(problems.HEAD_TOO_LARGE, detail)
        if head_bytes(scope) > self.most_bytes:
            detail = f"path and headers have more than {self.most_bytes:,} bytes; send less"
            return Problem(problems.HEAD_TOO_LARGE, detail)
        if ambiguous_length(scope):
            detail = "Transfer-Encoding is for HTTP/1.1 and without Content-Length; send only one of the two"
            return Problem(problems.OTHER_REFUSAL, detail)
        return None

    def _unwanted(self, scope: Scope) -> Problem | None:
        host = host_of(scope)
        if not is_known(host, self.names):
            shown = json.dumps(host[:100])
            return Problem(problems.UNKNOWN_HOST, f"{shown} is no name of this service; add it to its settings")
        if self.lifecycle.stopping and scope["path"] == "/readyz":
            return Problem(problems.STOPPING, "this process was told to stop and finishes what it has begun")
        origin = header(scope, b"origin")
        if origin is None or scope["method"] in HARMLESS:
            return None
        page = origin.decode("latin-1").lower()
        if page in self.origins or page.partition("://")[2] == host:
            return None
        return Problem(problems.FOREIGN_PAGE, "only the service's own page may change something from a browser")


def head_bytes(scope: Scope) -> int:
    """Return the size of a head in bytes."""
    line = len(scope["method"]) + len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
    return line + BYTES_OF_LINES + sum(len(name) + len(value) + BYTES_OF_HEADER for name, value in scope["headers"])


def ambiguous_length(scope: Scope) -> bool:
    """Whether a proxy may see another end of the request than this server: smuggling (RFC 9112, 6.1 and 6.3)."""
    if header(scope, b"transfer-encoding") is None:
        return False
    return scope["http_version"] == "1.0" or header(scope, b"content-length") is not None


def host_of(scope: Scope) -> str:
    """Return the `Host` of a request, in lower case."""
    return (header(scope, b"host") or b"").decode("latin-1").lower()


def is_known(host: str, names: Collection[str]) -> bool:
    """Return whether a request with this `Host` is for one of `names`, for any if ANY is one, or for an IP address."""
    name = host_name(host)
    return ANY in names or name in names or _is_address(name)


def host_name(host: str) -> str:
    """Return the name in a `Host` header: `[::1]:8080` -> `::1`, `localhost:8080` -> `localhost`."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
