"""A real HTTP server that plays the service, and both clients as one function to call it with."""

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from similarity.client import AsyncClient, Client
from tests.servers.certificates import Certificates
from tests.similarity.client.replies import problem

Answer = Callable[[socket.socket], None]
"""Writes a response to the connection, or does something worse."""

Calls = Callable[..., Any]


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Message
    body: bytes


class Service(ThreadingHTTPServer):
    """A server that gives the answers in order, the last one again and again, and keeps the requests."""

    def __init__(self, *answers: Answer, certificates: Certificates | None = None) -> None:
        service = self
        self.requests: list[Request] = []
        self._answers = list(answers)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                # Of a larger body the answer reads the rest, or leaves it.
                body = self.rfile.read(min(int(self.headers.get("content-length", 0)), 100_000))
                service.requests.append(Request(self.command, self.path, self.headers, body))
                with suppress(OSError):
                    service.next_answer()(self.connection)

            def log_message(self, *_: object) -> None:
                """Write nothing."""

        for method in ("POST", "PUT", "DELETE"):
            setattr(Handler, f"do_{method}", Handler.do_GET)
        super().__init__(("127.0.0.1", 0), Handler)
        if certificates is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates.certificate, certificates.key)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"http{'' if certificates is None else 's'}://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def next_answer(self) -> Answer:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def handle_error(self, *_: object) -> None:
        """Ignore that the client has gone."""

    def server_close(self) -> None:
        self.shutdown()
        self.socket.close()  # and leave the threads that still answer


def answering(body: bytes, *headers: str, status: str = "200 OK") -> Answer:
    """Return the answer of a server that sends one complete response."""
    head = "\r\n".join([f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""])
    return lambda connection: connection.sendall(head.encode() + body)


def fine(members: Any) -> Answer:
    return answering(json.dumps(members).encode())


def refused(status: int, kind: str) -> Answer:
    return answering(json.dumps(problem(status, kind)).encode(), status=f"{status} No")


def hanging_up(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def call_plainly(client: dict[str, Any], method: str, *arguments: Any, **options: Any) -> Any:
    with Client(**client) as service:
        answer = getattr(service, method)(*arguments, **options)
        return list(answer) if isinstance(answer, Iterator) else answer


def call_with_async(client: dict[str, Any], method: str, *arguments: Any, **options: Any) -> Any:
    async def run() -> Any:
        async with AsyncClient(**client) as service:
            answer = getattr(service, method)(*arguments, **options)
            return [each async for each in answer] if isinstance(answer, AsyncIterator) else await answer

    return asyncio.run(run())


both_clients = pytest.mark.parametrize("call", [call_plainly, call_with_async], ids=["plain", "async"])
