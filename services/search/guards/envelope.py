"""What all answers have in common: security headers, a request id, HEAD, and a problem for an unforeseen error."""

import asyncio
import logging
import re
import secrets
from collections.abc import Mapping
from contextvars import ContextVar
from http import HTTPStatus

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..wire import problems
from ..wire.problem_documents import MEDIA_TYPE, Problem, problem_document, problem_response
from .connections import BEYOND_LIMIT
from .lifecycle import Lifecycle
from .refusals import header

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
REQUEST_ID = "X-Request-Id"
# Random ids as proxies, traces and clients make them. The id is logged and recorded, where no erasure reaches it:
# nothing that could be a name, an id in words or a key is taken.
REQUEST_ID_PATTERN = re.compile(r"[0-9a-fA-F]{16}|[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Of the request that is being worked on, in worker threads too; empty outside of one."""

log = logging.getLogger(__name__)


class Envelope:
    """Adds the security headers and the request's id, answers HEAD like GET, and turns an unforeseen
    error into a problem.

    The server drops a HEAD's body. The id is the caller's own `X-Request-Id`, where that is 16 or 32 hexadecimal
    digits or a UUID, else a new one. While the service stops, and beyond the limit of connections, each answer
    ends its connection.
    """

    def __init__(self, app: ASGIApp, *, lifecycle: Lifecycle | None = None) -> None:
        self._app = app
        self._lifecycle = lifecycle or Lifecycle()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        identity = _identity(scope)
        request_id.set(identity)
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                headers[REQUEST_ID] = identity
                # Checked when the answer begins: the service may be told to stop while it is being made.
                if self._lifecycle.stopping or scope.get("state", {}).get(BEYOND_LIMIT):
                    headers["Connection"] = "close"
            await send(message)

        # Parts are not served: a bad Range would be answered in plain text, and RFC 9110 lets a server ignore it.
        inner = {**scope, "headers": [each for each in scope["headers"] if each[0] != b"range"]}
        if scope["method"] == "HEAD":
            inner["method"] = "GET"
        try:
            await self._app(inner, receive, send_with_headers)
        except asyncio.CancelledError:
            # The server cancels what is unfinished `finish_seconds` after SIGTERM, and would log a traceback for each.
            if not self._lifecycle.stopping:
                raise
            if not started:
                problem = Problem(problems.STOPPING, "the service stopped before the answer was ready; send it again")
                await problem_response(problem, path=scope["path"])(inner, receive, send_with_headers)
        except Exception:
            # Half an answer cannot be taken back; the server cuts the connection.
            if started:
                raise
            # Quoted: a path may hold line breaks.
            log.exception("%s %r failed", scope["method"], scope["path"])
            problem = Problem(problems.INTERNAL_ERROR, "the service failed on this request; its log says why")
            await problem_response(problem, path=scope["path"])(inner, receive, send_with_headers)


def closing_answer(problem: Problem) -> bytes:
    """Return the answer to a request that never reaches the application, as bytes; it ends the connection."""
    body = problem_document(problem, path="/").model_dump_json().encode()
    headers = {"Content-Type": MEDIA_TYPE, "Content-Length": len(body), "Connection": "close", **SECURITY_HEADERS}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    status = HTTPStatus(problem.kind.status)
    return f"HTTP/1.1 {status} {status.phrase}\r\n{lines}\r\n".encode() + body


def _identity(scope: Scope) -> str:
    given = (header(scope, b"x-request-id") or b"").decode("latin-1")
    return given if REQUEST_ID_PATTERN.fullmatch(given) else secrets.token_hex(8)
