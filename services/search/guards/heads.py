"""Refuses requests by their head: its `Host` and its `Origin` (`careful_parser`: its size and its framing).

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
HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(eq=False)
class Heads:
    """Answers 421 to another host name, 503 to `/readyz` while the service stops, and 403 to changes from the page of
    another site; then closes the connection.

    `names`: without ports, lower case; ANY allows all. `origins`: origins of other pages that may send changes (CORS).
    """

    app: ASGIApp
    _: KW_ONLY
    names: Collection[str]
    lifecycle: Lifecycle
    origins: Collection[str] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or connection (ASGI)."""
        if scope["type"] == "http" and (problem := self._unwanted(scope)):
            # A flood of refusals has to open a connection for each.
            await refuse(problem, scope, receive, send, headers=CLOSE)
            return
        await self.app(scope, receive, send)

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
