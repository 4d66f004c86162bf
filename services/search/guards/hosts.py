"""By which names the service may be asked, and from which pages it may be changed.

A page of a stranger, open in the browser of somebody who may use this service, can make that browser
ask it. It cannot read the answers (CORS), unless its name is made to point at this machine (DNS
rebinding): then the `Host` header still has the stranger's name. And it cannot change anything,
because a browser says in `Origin` whose page it is.

A number is nobody's name and cannot be made to point here: who asks by address is let in (a health
check of Kubernetes does).
"""

import ipaddress
import json
from collections.abc import Collection

from starlette.types import ASGIApp, Receive, Scope, Send

from services.search.guards.refusals import header, refuse
from services.search.wire import problems
from services.search.wire.problem_documents import Problem

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
ANY = "*"
HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})


class Hosts:
    """Answers 421 to requests for another name, and 403 to changes from another site's page.

    `names`: without ports, lower case; ANY allows all. `origins`: of pages elsewhere that may ask (CORS).
    """

    def __init__(self, app: ASGIApp, *, names: Collection[str], origins: Collection[str] = ()) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection (ASGI)."""
        problem = self._problem(scope) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, receive, send)
        else:
            await refuse(problem, scope, receive, send)

    def _problem(self, scope: Scope) -> Problem | None:
        host = (header(scope, b"host") or b"").decode("latin-1").lower()
        if ANY not in self._names and host_name(host) not in self._names and not _is_address(host_name(host)):
            shown = json.dumps(host[:100])
            return Problem(problems.UNKNOWN_HOST, f"{shown} is no name of this service; add it to its settings")
        origin = header(scope, b"origin")
        if origin is None or scope["method"] in HARMLESS:
            return None
        page = origin.decode("latin-1").lower()
        if page in self._origins or page.partition("://")[2] == host:
            return None
        return Problem(problems.FOREIGN_PAGE, "only the service's own page may change something from a browser")


def host_name(host: str) -> str:
    """The name in a `Host` header: `[::1]:8080` -> `::1`, `localhost:8080` -> `localhost`."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
