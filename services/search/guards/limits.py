"""What a request may send: how much, how fast, in what form. Nothing is parsed before that is known."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.search.guards.callers import caller_name
from services.search.guards.json_depth import too_deep
from services.search.guards.rate_limits import is_free
from services.search.guards.refusals import header, refuse
from services.search.wire import problems
from services.search.wire.problem_documents import Problem
from services.search.wire.problems import Kind

CLOSE = {"Connection": "close"}
UPLOADS = frozenset({"/companies/bulk", "/match"})
# Beyond this, even counting brackets is work for another thread.
QUICKLY_CHECKED = 100_000
# How long an upload that is refused may go on, so that its sender reads the refusal and not a reset.
SECONDS_TO_LINGER = 1.0
# What uvicorn takes of a body before anybody reads it.
BUFFER_BYTES = 65_536
SECONDS_TO_WAIT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """`most_bytes` of a body, `most_upload_bytes` of one to `uploads`; all of it within `seconds`.

    `depth`: of JSON. `held_bytes`: of all bodies that this process holds at once. `unfinished_bytes`: of
    those of one caller that have not arrived completely, with BUFFER_BYTES more for each.
    """

    most_bytes: int = 2_000_000
    most_upload_bytes: int = 10_000_000
    uploads: Collection[str] = UPLOADS
    seconds: float = 30.0
    depth: int = 32
    held_bytes: int = 100_000_000
    unfinished_bytes: int = 25_000_000

    def most(self, path: str) -> int:
        """The most bytes that may be sent to `path`."""
        return self.most_upload_bytes if path in self.uploads else self.most_bytes


class Refused(Exception):
    """The body is not taken."""

    def __init__(self, kind: Kind, detail: str, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.problem = Problem(kind, detail, retry_after)


class Gone(Exception):
    """The client hung up before its request was complete."""


class Bodies:
    """Reads a body before the application is asked, so that a slow sender holds no place in it."""

    def __init__(self, app: ASGIApp, *, limits: BodyLimits) -> None:
        self._app = app
        self._limits = limits
        self._held = 0
        self._unfinished: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection (ASGI)."""
        if scope["type"] != "http" or not has_body(scope):
            await self._app(scope, receive, send)
            return
        body = bytearray()
        try:
            try:
                _check_framing(scope)
                if is_free(scope["path"]):
                    # Anybody may ask here, and what they send would take the room of those who have a key.
                    raise Refused(problems.BODY_TOO_LARGE, "this address takes no body")
                await self._read(scope, receive, body)
                await self._check_depth(scope, body)
            except Refused as refused:
                # What is still on its way is not read: the connection cannot be used again.
                await refuse(refused.problem, scope, receive, send, headers=CLOSE)
                return
            except Gone:
                return
            await self._app(scope, _whole(bytes(body), receive), send)
        finally:
            self._held -= len(body)

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> None:
        encoding = (header(scope, b"content-encoding") or b"identity").strip().lower()
        if encoding != b"identity":
            raise Refused(problems.COMPRESSED_BODY, "send the body uncompressed, without Content-Encoding")
        most, seconds = self._limits.most(scope["path"]), self._limits.seconds
        too_large = Refused(problems.BODY_TOO_LARGE, f"the body has more than {most:,} bytes; send less at once")
        if _declared(scope) > most and header(scope, b"expect") is not None:
            # The client waits for our word before it sends anything.
            raise too_large
        caller = caller_name(scope)
        try:
            with self._unfinished_body(body, caller):
                async with asyncio.timeout(seconds):
                    async for part in _parts(receive):
                        if len(body) + len(part) > most:
                            await _linger(receive)
                            raise too_large
                        self._hold(part, body, caller)
        except TimeoutError:
            detail = f"the body was not there within {seconds:g} s; send it faster, or less of it"
            raise Refused(problems.SLOW_BODY, detail) from None

    def _hold(self, part: bytes, body: bytearray, caller: str) -> None:
        if self._held + len(part) > self._limits.held_bytes:
            raise Refused(problems.OVERLOADED, "too many large requests are under way; ask again later")
        if self._unfinished[caller] + len(part) > self._limits.unfinished_bytes:
            most = self._limits.unfinished_bytes
            detail = (
                f"more than {most:,} bytes of this caller's requests have not arrived completely; send fewer at once"
            )
            raise Refused(problems.RATE_LIMITED, detail, SECONDS_TO_WAIT)
        self._held += len(part)
        self._unfinished[caller] += len(part)
        body += part

    @contextmanager
    def _unfinished_body(self, body: bytearray, caller: str) -> Iterator[None]:
        """Within the block, `body` counts among those of `caller` that have not arrived completely."""
        self._unfinished[caller] += BUFFER_BYTES
        try:
            self._hold(b"", body, caller)
            yield
        finally:
            self._unfinished[caller] -= BUFFER_BYTES + len(body)
            if not self._unfinished[caller]:
                del self._unfinished[caller]

    async def _check_depth(self, scope: Scope, body: bytearray) -> None:
        media_type = (header(scope, b"content-type") or b"json").lower().partition(b";")[0]
        if b"json" not in media_type:
            return
        most, lines = self._limits.depth, b"ndjson" in media_type or b"jsonl" in media_type

        def check() -> bool:
            return too_deep(bytes(body), most, lines=lines)

        if check() if len(body) <= QUICKLY_CHECKED else await run_sync(check):
            raise Refused(problems.NESTED_TOO_DEEPLY, f"the JSON is nested more than {most} deep")


def has_body(scope: Scope) -> bool:
    """Whether a request says that it brings a body."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b" 0"))
        for name, value in scope["headers"]
    )


def ambiguous_length(scope: Scope) -> bool:
    """Whether a proxy may see another end of the request than we do: smuggling (RFC 9112, 6.1 and 6.3)."""
    if header(scope, b"transfer-encoding") is None:
        return False
    return scope["http_version"] == "1.0" or header(scope, b"content-length") is not None


def _check_framing(scope: Scope) -> None:
    if ambiguous_length(scope):
        detail = "Transfer-Encoding is for HTTP/1.1 and without Content-Length; send only one of the two"
        raise Refused(problems.OTHER_REFUSAL, detail)


def _declared(scope: Scope) -> int:
    length = header(scope, b"content-length") or b""
    return int(length) if length.isdigit() else 0


async def _parts(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        more = message.get("more_body", False)
        yield message.get("body", b"")


async def _linger(receive: Receive) -> None:
    """Reads on and keeps nothing."""
    with suppress(TimeoutError, Gone):
        async with asyncio.timeout(SECONDS_TO_LINGER):
            async for _ in _parts(receive):
                pass


def _whole(body: bytes, receive: Receive) -> Receive:
    """Gives the body in one message, then whatever else the server has to say."""
    given = False

    async def receive_whole() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_whole
