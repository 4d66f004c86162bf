"""Limits of request bodies: size, time and encoding, all checked before anything is parsed."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..settings import ServiceSettings
from ..wire import problems
from ..wire.problem_documents import Problem
from .callers import caller_name
from .refusals import CLOSE, header, is_open, refuse

UPLOADS = frozenset({"/companies/bulk", "/match"})
# How long the rest of a body that is too large is read and discarded. A client that is still sending when the
# connection is closed can get a reset instead of the refusal.
SECONDS_TO_DISCARD = 1.0
# How much of a body uvicorn buffers before the application reads it.
BUFFER_BYTES = 65_536
# When a caller with too many unfinished bodies may send again.
SECONDS_TO_WAIT = 1


class Bodies:
    """Reads the whole body before the application is called, so that a slow sender holds no permit.

    The limits are in `settings`: `body_bytes` or `upload_bytes` for one body, `held_bytes` for all bodies in memory,
    and `unfinished_bytes` for what has arrived of one caller's unfinished bodies, with BUFFER_BYTES more for each. A
    body must arrive within `body_seconds`.
    """

    def __init__(self, app: ASGIApp, *, settings: ServiceSettings) -> None:
        self._app = app
        self._settings = settings
        self._held = 0
        self._unfinished: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request (ASGI)."""
        if scope["type"] != "http" or not has_body(scope):
            await self._app(scope, receive, send)
            return
        body = bytearray()
        try:
            await self._read(scope, receive, body)
        except Problem as problem:
            # A part of the body may be unread, so the connection cannot be used again.
            await refuse(problem, scope, receive, send, headers=CLOSE)
        except ClientDisconnect:
            return
        else:
            await self._app(scope, _whole(bytes(body), receive), send)
        finally:
            self._held -= len(body)

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> None:
        """Append the body of the request to `body`.

        Raises:
            Problem: the body is refused.
            ClientDisconnect: the client closed the connection.
        """
        if is_open(scope["path"]):
            raise Problem(problems.BODY_TOO_LARGE, "requests for this path have no body; send none")
        encoding = (header(scope, b"content-encoding") or b"identity").strip().lower()
        if encoding != b"identity":
            raise Problem(problems.COMPRESSED_BODY, "send the body uncompressed, without Content-Encoding")
        parts, settings, caller = Request(scope, receive).stream(), self._settings, caller_name(scope)
        most = settings.upload_bytes if scope["path"] in UPLOADS else settings.body_bytes
        too_large = Problem(problems.BODY_TOO_LARGE, f"the body has more than {most:,} bytes; send less at once")
        length = header(scope, b"content-length") or b""
        if length.isdigit() and int(length) > most and header(scope, b"expect") is not None:
            # With `Expect: 100-continue`, the client waits for a response before it sends the body.
            raise too_large
        self._unfinished[caller] += BUFFER_BYTES
        try:
            self._hold(b"", body, caller)
            async with asyncio.timeout(settings.body_seconds):
                async for part in parts:
                    if len(body) + len(part) > most:
                        await _discard(parts)
                        raise too_large
                    self._hold(part, body, caller)
        except TimeoutError:
            detail = f"the body did not arrive within {settings.body_seconds:g} s; send it faster, or send less"
            raise Problem(problems.SLOW_BODY, detail) from None
        finally:
            self._unfinished[caller] -= BUFFER_BYTES + len(body)
            if not self._unfinished[caller]:
                del self._unfinished[caller]

    def _hold(self, part: bytes, body: bytearray, caller: str) -> None:
        """Append `part` to `body` and count its bytes. Raises a Problem, before that, if a limit would be exceeded."""
        if self._held + len(part) > self._settings.held_bytes:
            raise Problem(problems.OVERLOADED, "too many request bodies are in memory; send this one again later")
        if self._unfinished[caller] + len(part) > self._settings.unfinished_bytes:
            detail = (
                f"this caller's unfinished requests have more than {self._settings.unfinished_bytes:,} bytes; send "
                "fewer at once"
            )
            raise Problem(problems.RATE_LIMITED, detail, SECONDS_TO_WAIT)
        self._held += len(part)
        self._unfinished[caller] += len(part)
        body += part


def has_body(scope: Scope) -> bool:
    """Return whether the headers of a request announce a body."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b" 0"))
        for name, value in scope["headers"]
    )


async def _discard(parts: AsyncIterator[bytes]) -> None:
    """Read and discard the rest of a body, for at most SECONDS_TO_DISCARD."""
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(SECONDS_TO_DISCARD):
            async for _ in parts:
                pass


def _whole(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI `receive` that returns the body in one message, then the further messages of the server."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_whole() -> Message:
        return messages.pop() if messages else await receive()

    return receive_whole
