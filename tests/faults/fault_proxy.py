"""A small HTTP proxy that misbehaves on purpose, between a client and one Elasticsearch node.

    with FaultProxy(node_url, seed=1) as proxy:
        index = ElasticIndex(ElasticSettings(hosts=(proxy.url,), name="companies"))
        proxy.disturb(Disturbance(kind="answer_lost", chance=0.5))
        ...
        proxy.calm()

    answer_lost       forwarded, but the client's connection is closed instead of answered
    answer_late       forwarded, answered after `seconds`
    answer_cut        forwarded, answered with half of the answer
    request_reset     not forwarded, the connection is reset
    request_late      forwarded after `seconds`, when the client may have sent the same again, and more since
    request_repeated  forwarded twice; the second answer is given
    status_429, status_502, status_503    answered so, not forwarded
    too_large         requests above `bytes` are answered 413, not forwarded

A bulk request that holds `POISON` is answered 400 at all times: a document at which something on the
way to the server takes offence.
"""

import http.client
import random
import socket
import struct
import threading
import time
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

POISON = "poison-on-the-way"
KINDS = (
    "answer_lost",
    "answer_late",
    "answer_cut",
    "request_reset",
    "request_late",
    "request_repeated",
    "status_429",
    "status_502",
    "status_503",
    "too_large",
)
SECONDS_FOR_THE_SERVER = 60.0
# Of one connection, not of the exchange.
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
RESET_AT_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """What is done to requests, each with this chance, until `calm`."""

    kind: str
    chance: float = 1.0
    seconds: float = 0.0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back to the client."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class FaultProxy:
    """Forwards to `upstream`, a URL without a path. Counts bulk requests, and in `done` what it did."""

    def __init__(self, upstream: str, *, seed: int) -> None:
        parts = urlsplit(upstream)
        self.host, self.port = parts.hostname or "", parts.port or 80
        self.bulk_requests = 0
        self.done: Counter[str] = Counter()
        """Requests disturbed, by kind."""
        self._disturbance: Disturbance | None = None
        self._choice = random.Random(seed)
        self._lock = threading.Lock()
        self._in_flight = 0
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def disturb(self, disturbance: Disturbance) -> None:
        """From now on, instead of what was done before."""
        if disturbance.kind not in KINDS:
            raise ValueError(f"{disturbance.kind!r} is no disturbance; there are {', '.join(KINDS)}")
        self._disturbance = disturbance

    def calm(self) -> None:
        """From now on requests pass unharmed; those that are held back already still arrive."""
        self._disturbance = None

    def wait_until_idle(self, *, timeout: float) -> bool:
        """Whether every request that was taken has reached the server, or has been given up, in time."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self._in_flight == 0:
                return True
            time.sleep(0.02)
        return False

    def chosen(self, size: int) -> Disturbance | None:
        """What to do to a request of so many bytes."""
        with self._lock:
            disturbance = self._disturbance
            if disturbance is None or self._choice.random() >= disturbance.chance:
                return None
            if disturbance.kind == "too_large" and size <= disturbance.bytes:
                return None
            self.done[disturbance.kind] += 1
            return disturbance

    def count_bulk(self) -> None:
        with self._lock:
            self.bulk_requests += 1

    def under_way(self, change: int) -> None:
        with self._lock:
            self._in_flight += change


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    proxy: FaultProxy

    def shutdown_request(self, request: Any) -> None:
        # Without the orderly end that the standard library sends first: a reset must be one.
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients hang up and servers are killed: that is what the proxy is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self._upstream: http.client.HTTPConnection | None = None

    def finish(self) -> None:
        if self._upstream:
            self._upstream.close()
        super().finish()

    def exchange(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        bulk = self.path.partition("?")[0].endswith("/_bulk")
        if bulk:
            proxy.count_bulk()
        if bulk and POISON.encode() in body:
            self._answer(_refusal(400))
            return
        proxy.under_way(+1)
        try:
            self._pass_on(body, proxy.chosen(len(body)))
        except (OSError, http.client.HTTPException):
            self._hang_up()
        finally:
            proxy.under_way(-1)

    # The names that the standard library looks for.
    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = exchange  # noqa: N815

    def _pass_on(self, body: bytes, disturbance: Disturbance | None) -> None:
        kind = disturbance.kind if disturbance else ""
        seconds = disturbance.seconds if disturbance else 0
        if kind == "request_reset":
            self._hang_up()
            return
        if kind.startswith("status_") or kind == "too_large":
            self._answer(_refusal(413 if kind == "too_large" else int(kind.removeprefix("status_"))))
            return
        if kind == "request_late":
            time.sleep(seconds)
        answer = self._forward(body)
        if kind == "request_repeated":
            answer = self._forward(body)
        if kind == "answer_late":
            time.sleep(seconds)
        if kind == "answer_lost":
            self._hang_up()
        elif kind == "answer_cut":
            self._answer(answer, of_its_bytes=len(answer.body) // 2)
            self._hang_up()
        else:
            self._answer(answer)

    def _forward(self, body: bytes) -> Answer:
        proxy = self.server.proxy
        if self._upstream is None:
            self._upstream = http.client.HTTPConnection(proxy.host, proxy.port, timeout=SECONDS_FOR_THE_SERVER)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        try:
            self._upstream.request(self.command, self.path, body=body or None, headers=headers)
            response = self._upstream.getresponse()
            content = response.read()
        except BaseException:
            self._upstream.close()
            self._upstream = None
            raise
        kept = [(name, value) for name, value in response.getheaders() if name.lower() not in HOP_BY_HOP]
        return Answer(response.status, kept, content)

    def _answer(self, answer: Answer, *, of_its_bytes: int | None = None) -> None:
        # Not `send_response`, which adds headers of its own.
        lines = [f"HTTP/1.1 {answer.status} {http.client.responses.get(answer.status, 'unknown')}"]
        lines += [f"{name}: {value}" for name, value in [*answer.headers, ("content-length", str(len(answer.body)))]]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        self.wfile.write(head + (b"" if self.command == "HEAD" else answer.body[:of_its_bytes]))

    def _hang_up(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        self.close_connection = True

    def log_message(self, *arguments: Any) -> None:
        """Says nothing."""


def _refusal(status: int) -> Answer:
    """As a load balancer says it: not in Elasticsearch's words."""
    text = f"<html><h1>{status} {http.client.responses[status]}</h1></html>"
    return Answer(status, [("content-type", "text/html")], text.encode())
