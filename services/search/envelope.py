"""What every answer has in common, around the whole application: headers, HEAD, and no bare failure."""

import logging
from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.search import problems
from services.search.problems import Problem, problem_response

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

log = logging.getLogger(__name__)


class Envelope:
    """Adds the security headers, answers HEAD like GET, and turns an unforeseen error into a problem.

    Outside every other middleware, so that no answer escapes it. The server drops a HEAD's body.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        try:
            await self._app(inner, receive, send_with_headers)
        except Exception:
            # Half an answer cannot be taken back; the server cuts the connection.
            if started:
                raise
            log.exception("%s %s failed", scope["method"], scope["path"])
            problem = Problem(problems.INTERNAL_ERROR, "the service failed on this request; its log says why")
            await problem_response(problem, path=scope["path"])(inner, receive, send_with_headers)
