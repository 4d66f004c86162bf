"""Middleware for all answers: security headers, a request id, HEAD, and a problem for an unexpected error."""

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
# Random ids as proxies, tracers and clients make them. The id goes into the log and the audit record, from which
# nothing is erased, so a text that may be a name, a company id or a key is not accepted.
REQUEST_ID_PATTERN = re.compile(r"[0-9a-fA-F]{16}|[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the current request, also in its worker threads; empty outside a request."""

log = logging.getLogger(__name__)


class Envelope:
    """Adds security headers and a request id, answers HEAD like GET, and turns an unexpected error into a problem.

    The server drops the body of an answer to HEAD. The request id is the `X-Request-Id` of the request if that is 16 or
    32 hexadecimal digits or a UUID, otherwise a new one. While the service stops, and beyond the limit of connections,
    each answer ends its connection.
    """

    def __init__(self, app: ASGIApp, *, lifecycle: Lifecycle | None = None) -> None:
        self._app = app
        self._lifecycle = lifecycle or Lifecycle()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or connection (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        current_id = _request_id_of(scope)
        request_id.set(current_id)
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                headers[REQUEST_ID] = current_id
                # Checked when the answer begins, because the service may begin to stop while the route runs.
                if self._lifecycle.stopping or scope.get("state", {}).get(BEYOND_LIMIT):
                    headers["Connection"] = "close"
            await send(message)

        # The header Range is ignored, as RFC 9110 allows: Starlette answers an invalid one in plain text.
        inner = {**scope, "headers": [each for each in scope["headers"] if each[0] != b"range"]}
        if scope["method"] == "HEAD":
            inner["method"] = "GET"
        try:
            await self._app(inner, receive, send_with_headers)
        except asyncio.CancelledError:
            # `finish_seconds` after the drain period, the server cancels unfinished requests, and would log tracebacks.
            if not self._lifecycle.stopping:
                raise
            if not started:
                problem = Problem(problems.STOPPING, "the service stopped before the answer was ready; send it again")
                await problem_response(problem, path=scope["path"])(inner, receive, send_with_headers)
        except Exception:
            if started:  # a part of the answer is sent, so the server must cut the connection
                raise
            # Quoted, because a path may contain line breaks.
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


def _request_id_of(scope: Scope) -> str:
    given = (header(scope, b"x-request-id") or b"").decode("latin-1")
    return given if REQUEST_ID_PATTERN.fullmatch(given) else secrets.token_hex(8)
