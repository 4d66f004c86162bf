"""Asks an ASGI application directly: no server, no client library, every message in sight."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

DISCONNECT: Message = {"type": "http.disconnect"}


@dataclass
class Answer:
    messages: list[Message] = field(default_factory=list)

    @property
    def status(self) -> int:
        status: int = self.messages[0]["status"]
        return status

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    @property
    def problem(self) -> str:
        """The slug of a problem document."""
        kind: str = json.loads(self.body)["type"]
        return kind.removeprefix("/docs#")


def http(path: str = "/similar/acme", method: str = "GET", **headers: str) -> Scope:
    """A request; `accept_encoding="gzip"` becomes the header Accept-Encoding."""
    named = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    client = ("10.0.0.1", 50000)
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "headers": named,
        "client": client,
    }


async def asked(app: ASGIApp, scope: Scope, parts: Iterable[bytes | float] = ()) -> Answer:
    """The answer of `app`; `parts` of the body arrive one by one, a number is a pause in seconds."""
    answer, bodies = Answer(), list(parts)

    async def receive() -> Message:
        while bodies and isinstance(bodies[0], int | float):
            await asyncio.sleep(float(bodies.pop(0)))
        if not bodies:
            return DISCONNECT
        return {"type": "http.request", "body": bodies.pop(0), "more_body": any(isinstance(b, bytes) for b in bodies)}

    async def send(message: Message) -> None:
        # As a server would: middlewares may not change what was sent.
        answer.messages.append(dict(message))

    await app(scope, receive, send)
    return answer


def ask(app: ASGIApp, scope: Scope, parts: Iterable[bytes | float] = ()) -> Answer:
    return asyncio.run(asked(app, scope, parts))


class Inner:
    """The application behind a middleware: answers 200 with the body it got, and remembers what it was asked."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.scopes: list[Scope] = []
        self.bodies: list[bytes] = []
        self.inside = 0
        self.most_inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        if scope["type"] != "http":
            return
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        try:
            await asyncio.sleep(self.seconds)
            body = await body_of(receive) if scope["method"] in {"POST", "PUT"} else b""
            self.bodies.append(body)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": body})
        finally:
            self.inside -= 1


async def body_of(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            break
        body += message["body"]
        more = message["more_body"]
    return body


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
