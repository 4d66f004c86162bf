"""Both clients against a server that does its worst, on real sockets."""

import gzip
import json
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path
from typing import Any

import httpx2
import pytest

from similarity.client import Client, InternalFailure, Question, Retries, TimedOut, UnreadableAnswer
from similarity.errors import InvalidInput
from tests.servers.certificates import make_certificates
from tests.similarity.client.replies import ranking
from tests.similarity.client.service import Answer, Calls, Service, answering, both_clients, fine

DEADLINE = 0.5
# Without the deadline each of these calls takes more than six seconds; a busy machine needs some time, too.
TOO_LATE = 4.0
ONCE = Retries(attempts=1, deadline=DEADLINE)
DEEP = b'{"hits":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def client_of(service: Service) -> dict[str, Any]:
    return {"url": service.url, "retries": ONCE}


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


@both_clients
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
    with Service(answer) as service:
        start = time.monotonic()
        with pytest.raises(TimedOut, match="did not answer in time"):
            call(client_of(service), "similar", "nike")
    assert time.monotonic() - start < TOO_LATE


@both_clients
def test_the_deadline_bounds_a_request_that_is_read_slowly(call: Calls) -> None:
    with Service(reading_slowly) as service:
        start = time.monotonic()
        with pytest.raises(TimedOut):
            call(client_of(service), "similar_text", "a" * 40_000_000)
    assert time.monotonic() - start < TOO_LATE


def test_the_deadline_bounds_an_encrypted_answer_to_a_client_of_the_users_own(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    context = ssl.create_default_context(cafile=str(certificates.authority))
    answer = repeating(b"a", before=b"HTTP/1.1 200 OK\r\nX: ")
    with Service(answer, certificates=certificates) as service, httpx2.Client(verify=context) as http:
        start = time.monotonic()
        with pytest.raises(TimedOut):
            Client(service.url, retries=ONCE, http=http).similar("nike")
    assert time.monotonic() - start < TOO_LATE


def test_the_deadline_bounds_connecting_after_a_wait_for_a_free_connection() -> None:
    drip = repeating(b"a", before=b"HTTP/1.1 200 OK\r\nX: ")
    with (
        Service(drip) as service,
        socket.create_server(("127.0.0.1", 0), backlog=0) as full,
        socket.create_connection(full.getsockname()),
        httpx2.Client(limits=httpx2.Limits(max_connections=1)) as http,
        ThreadPoolExecutor() as threads,
    ):
        first = Client(service.url, retries=Retries(attempts=1, deadline=2), http=http)
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        second = Client(url, retries=Retries(attempts=1, deadline=3), http=http)
        call = threads.submit(first.similar, "nike")
        time.sleep(0.1)
        start = time.monotonic()
        with pytest.raises(TimedOut, match=url):
            second.similar("nike")
        assert time.monotonic() - start < TOO_LATE
        assert isinstance(call.exception(), TimedOut)


def test_a_deadline_holds_for_its_call_and_not_for_later_uses_of_the_connection() -> None:
    drip = repeating(b"a", before=b"HTTP/1.1 200 OK\r\nX: ")
    with (
        Service(fine(ranking("adidas")), fine(ranking("adidas")), fine({}), drip) as service,
        httpx2.Client() as http,
    ):
        client = Client(service.url, retries=ONCE, http=http)
        client.similar("nike")
        time.sleep(DEADLINE)
        client.similar("nike")
        time.sleep(DEADLINE)
        assert http.get(service.url).is_success
        with pytest.raises(TimedOut):
            client.similar("nike")


@both_clients
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
    with Service(answering(body)) as service:
        with pytest.raises(UnreadableAnswer):
            call(client_of(service), "similar", "nike")
        with pytest.raises(UnreadableAnswer):
            call(client_of(service), "batch", ["nike"])


@both_clients
def test_a_number_beyond_a_float_is_infinite(call: Calls) -> None:
    body = json.dumps(ranking("adidas")).replace("0.9", "1" + "0" * 400).encode()
    with Service(answering(body)) as service:
        assert call(client_of(service), "similar", "nike").hits[0].score == inf


@both_clients
@pytest.mark.parametrize("arguments", [("pairs",), ("bulk", [{"id": "a"}])], ids=["pairs", "bulk"])
@pytest.mark.parametrize("body", [DEEP, b'{"line": ' + b"1" * 5000 + b"}\n"], ids=["deep", "5000-digits"])
def test_a_line_that_python_cannot_hold_is_unreadable(call: Calls, arguments: tuple[Any, ...], body: bytes) -> None:
    with Service(answering(body)) as service, pytest.raises(UnreadableAnswer):
        call(client_of(service), *arguments)


@both_clients
def test_a_table_that_is_not_utf_8_is_unreadable(call: Calls) -> None:
    with Service(answering(b"name\n\xff\n")) as service, pytest.raises(UnreadableAnswer, match="UTF-8"):
        call(client_of(service), "table", Question.about("nike"))


@both_clients
@pytest.mark.parametrize("detail", [DEEP, b"1" * 5000, b'"\\ud800"'], ids=["deep", "5000-digits", "surrogate"])
def test_a_problem_that_python_cannot_hold_is_a_problem_without_a_reason(call: Calls, detail: bytes) -> None:
    with (
        Service(answering(b'{"detail": ' + detail + b"}", status="500 Internal Server Error")) as service,
        pytest.raises(InternalFailure, match="status 500 without a reason"),
    ):
        call(client_of(service), "similar", "nike")


@both_clients
def test_a_compressed_answer_is_not_unpacked(call: Calls) -> None:
    bomb = gzip.compress(json.dumps(ranking("adidas")).encode() + b" " * 50_000_000)
    with (
        Service(answering(bomb, "content-encoding: gzip")) as service,
        pytest.raises(UnreadableAnswer, match="compressed"),
    ):
        call(client_of(service), "similar", "nike")


@both_clients
def test_an_answer_that_is_too_large_is_given_up(call: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("similarity.client.connection.MOST_BYTES", 1_000_000)
    endless = repeating(
        b"10000\r\n" + b" " * 0x10000 + b"\r\n",
        before=b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        pause=0,
    )
    with Service(endless) as service, pytest.raises(UnreadableAnswer, match="more than 1000000 bytes"):
        call(client_of(service), "similar", "nike")


@both_clients
@pytest.mark.parametrize("method", ["company", "delete", "erase", "find"])
def test_a_name_that_is_no_text_is_refused_before_it_is_sent(call: Calls, method: str) -> None:
    with pytest.raises(InvalidInput, match="half a surrogate pair"):
        call({"url": "http://127.0.0.1:1"}, method, "\ud800")
