"""Both clients against a server that does its worst, on real sockets."""

import asyncio
import gzip
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import httpx2
import pytest

from similarity.client import AsyncClient, Client, InternalFailure, Question, Retries, TimedOut, UnreadableAnswer
from similarity.errors import InvalidInput, SimilarityError
from tests.servers.certificates import Certificates, make_certificates
from tests.similarity.client.replies import ranking

DEADLINE = 0.5
ONCE = Retries(attempts=1, deadline=DEADLINE)
DEEP = b'{"hits":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

Answer = Callable[[socket.socket], None]


def read_request(connection: socket.socket, *, at_most: int) -> None:
    """Read a request, or at most so many bytes of it: a server that leaves some unread resets the connection."""
    received = b""
    missing = 1
    while missing > 0 and len(received) < at_most:
        received += connection.recv(65536)
        head, _, body = received.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        missing = (int(length[1]) if length else 0) - len(body)


class HostileServer:
    """A server that reads one request and then calls `answer` with the socket."""

    def __init__(self, answer: Answer, certificates: Certificates | None = None) -> None:
        class Handler(BaseRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):
                    read_request(self.request, at_most=100_000)
                    answer(self.request)

        self._server = ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if certificates is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates.certificate, certificates.key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if certificates is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> str:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self.url

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.socket.close()


def call_plainly(url: str, method: str, *arguments: Any) -> Any:
    with Client(url, retries=ONCE) as client:
        answer = getattr(client, method)(*arguments)
        return list(answer) if isinstance(answer, Iterator) else answer


def call_with_async(url: str, method: str, *arguments: Any) -> Any:
    async def run() -> Any:
        async with AsyncClient(url, retries=ONCE) as client:
            answer = getattr(client, method)(*arguments)
            return [each async for each in answer] if hasattr(answer, "__aiter__") else await answer

    return asyncio.run(run())


Calls = Callable[..., Any]


@pytest.fixture(params=[call_plainly, call_with_async], ids=["plain", "async"])
def call(request: pytest.FixtureRequest) -> Calls:
    calls: Calls = request.param
    return calls


def repeating(part: bytes, *, before: bytes = b"", pause: float = 0.05) -> Answer:
    """Return the answer of a server that sends `part` until the client goes away, or for ten seconds."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(before)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            connection.sendall(part)
            time.sleep(pause)

    return answer


def reading_slowly(connection: socket.socket) -> None:
    for _ in range(1000):
        connection.recv(65536)
        time.sleep(0.01)


def answering(body: bytes, *headers: str, status: str = "200 OK") -> Answer:
    """Return the answer of a server that sends one complete response."""
    head = "\r\n".join([f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""])
    return lambda connection: connection.sendall(head.encode() + body)


@pytest.mark.parametrize(
    "answer",
    [
        repeating(b"a", before=b"HTTP/1.1 200 OK\r\nX: "),
        repeating(b"HTTP/1.1 100 Continue\r\n\r\n"),
        repeating(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, pause=0),
        repeating(b" ", before=b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"),
        repeating(b"", before=b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"),
    ],
    ids=["head", "continue", "many-continue", "body", "silence"],
)
def test_the_deadline_bounds_an_answer_that_never_ends(call: Calls, answer: Answer) -> None:
    with HostileServer(answer) as url:
        start = time.monotonic()
        with pytest.raises(TimedOut, match="did not answer in time"):
            call(url, "similar", "nike")
    assert time.monotonic() - start < 4 * DEADLINE


def test_the_deadline_bounds_a_request_that_is_read_slowly(call: Calls) -> None:
    with HostileServer(reading_slowly) as url:
        start = time.monotonic()
        with pytest.raises(TimedOut):
            call(url, "similar_text", "a" * 40_000_000)
    assert time.monotonic() - start < 4 * DEADLINE


def test_the_deadline_bounds_an_encrypted_answer_to_a_client_of_the_users_own(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    context = ssl.create_default_context(cafile=str(certificates.authority))
    answer = repeating(b"a", before=b"HTTP/1.1 200 OK\r\nX: ")
    with HostileServer(answer, certificates) as url, httpx2.Client(verify=context) as http:
        start = time.monotonic()
        with pytest.raises(TimedOut):
            Client(url, retries=ONCE, http=http).similar("nike")
    assert time.monotonic() - start < 4 * DEADLINE


def test_each_call_on_a_kept_connection_has_its_own_deadline() -> None:
    fine = json.dumps(ranking("adidas")).encode()

    def answer(connection: socket.socket) -> None:
        answering(fine)(connection)
        read_request(connection, at_most=100_000)
        answering(fine)(connection)
        read_request(connection, at_most=100_000)
        repeating(b"a", before=b"HTTP/1.1 200 OK\r\nX: ")(connection)

    with HostileServer(answer) as url, Client(url, retries=ONCE) as client:
        client.similar("nike")
        time.sleep(DEADLINE)
        client.similar("nike")
        with pytest.raises(TimedOut):
            client.similar("nike")


@pytest.mark.parametrize(
    "body",
    [
        DEEP,
        b'{"hits":' * 100_000,
        json.dumps(ranking("adidas")).replace("0.9", "1" * 5000).encode(),
        json.dumps(ranking("adidas")).replace("Adidas", "\\ud800").encode(),
        json.dumps(ranking("adidas")).encode("utf-16"),
        b"\xff\xfe\x00",
    ],
    ids=["deep", "deep-unclosed", "5000-digits", "surrogate", "utf-16", "no-text"],
)
def test_an_answer_that_python_cannot_hold_is_unreadable(call: Calls, body: bytes) -> None:
    with HostileServer(answering(body)) as url:
        with pytest.raises(UnreadableAnswer):
            call(url, "similar", "nike")
        with pytest.raises(UnreadableAnswer):
            call(url, "batch", ["nike"])


def test_a_number_beyond_a_float_is_infinite(call: Calls) -> None:
    body = json.dumps(ranking("adidas")).replace("0.9", "1" + "0" * 400).encode()
    with HostileServer(answering(body)) as url:
        assert call(url, "similar", "nike").hits[0].score == inf


@pytest.mark.parametrize("arguments", [("pairs",), ("bulk", [{"id": "a"}])], ids=["pairs", "bulk"])
@pytest.mark.parametrize("body", [DEEP, b'{"line": ' + b"1" * 5000 + b"}\n"], ids=["deep", "5000-digits"])
def test_a_line_that_python_cannot_hold_is_unreadable(call: Calls, arguments: tuple[Any, ...], body: bytes) -> None:
    with HostileServer(answering(body)) as url, pytest.raises(UnreadableAnswer):
        call(url, *arguments)


def test_a_table_that_is_not_utf_8_is_unreadable(call: Calls) -> None:
    with HostileServer(answering(b"name\n\xff\n")) as url, pytest.raises(UnreadableAnswer, match="UTF-8"):
        call(url, "table", Question.about("nike"))


@pytest.mark.parametrize("detail", [DEEP, b"1" * 5000, b'"\\ud800"'], ids=["deep", "5000-digits", "surrogate"])
def test_a_problem_that_python_cannot_hold_is_a_problem_without_a_reason(call: Calls, detail: bytes) -> None:
    with (
        HostileServer(answering(b'{"detail": ' + detail + b"}", status="500 Internal Server Error")) as url,
        pytest.raises(InternalFailure, match="status 500 without a reason"),
    ):
        call(url, "similar", "nike")


def test_a_compressed_answer_is_not_unpacked(call: Calls) -> None:
    bomb = gzip.compress(json.dumps(ranking("adidas")).encode() + b" " * 50_000_000)
    with (
        HostileServer(answering(bomb, "content-encoding: gzip")) as url,
        pytest.raises(UnreadableAnswer, match="compressed"),
    ):
        call(url, "similar", "nike")


def test_an_answer_that_is_too_large_is_given_up(call: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("similarity.client.connection.MOST_BYTES", 1_000_000)
    endless = repeating(
        b"10000\r\n" + b" " * 0x10000 + b"\r\n",
        before=b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        pause=0,
    )
    with HostileServer(endless) as url, pytest.raises(UnreadableAnswer, match="more than 1000000 bytes"):
        call(url, "similar", "nike")


@pytest.mark.parametrize("method", ["company", "delete", "erase", "find"])
def test_a_name_that_is_no_text_is_refused_before_it_is_sent(call: Calls, method: str) -> None:
    with pytest.raises(InvalidInput, match="half a surrogate pair"):
        call("http://127.0.0.1:1", method, "\ud800")


@pytest.mark.parametrize(
    "headers",
    [
        ["retry-after: " + "9" * 400],
        ["retry-after: Fri, 31 Dec 9999 23:59:59 -2400", "date: Fri, 01 Jan 0001 00:00:00 +2359"],
        ["retry-after: Fri, 31 Dec 9999 23:59:59 GMT", "date: Fri, 31 Dec 9999 23:59:59"],
    ],
)
def test_an_absurd_retry_after_ends_in_the_clients_own_error(call: Calls, headers: list[str]) -> None:
    with (
        HostileServer(answering(b"{}", *headers, status="503 Service Unavailable")) as url,
        pytest.raises(SimilarityError),
    ):
        call(url, "similar", "nike")
