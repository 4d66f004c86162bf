import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.faults.fault_proxy import POISON, Disturbance, FaultProxy

ANSWER = b'{"items": [{"index": {"status":429}}, {"index": {"status":201}}]}'
ENDS = (http.client.HTTPException, ConnectionError)


@contextmanager
def recording(arrived: list[tuple[str, str, bytes]]) -> Iterator[str]:
    """The URL of a server that notes what arrives."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def note(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            arrived.append((self.command, self.path, body))
            self.send_response(200)
            self.send_header("content-length", str(len(ANSWER)))
            self.send_header("x-elastic-product", "Elasticsearch")
            self.end_headers()
            self.wfile.write(ANSWER)

        do_GET = do_POST = note  # noqa: N815 - the names that the standard library looks for

        def log_message(self, *arguments: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def arrived() -> list[tuple[str, str, bytes]]:
    return []


@pytest.fixture
def proxy(arrived: list[tuple[str, str, bytes]]) -> Iterator[FaultProxy]:
    with recording(arrived) as url, FaultProxy(url, seed=1) as proxy:
        yield proxy


def send(proxy: FaultProxy, body: bytes = b"x", *, path: str = "/i/_bulk", timeout: float = 5) -> tuple[int, bytes]:
    host, port = proxy.url.removeprefix("http://").split(":")
    with closing(http.client.HTTPConnection(host, int(port), timeout=timeout)) as connection:
        connection.request("POST", path, body=body)
        with connection.getresponse() as response:
            return response.status, response.read()


def test_a_calm_proxy_forwards_and_counts(proxy: FaultProxy, arrived: list[Any]) -> None:
    assert send(proxy, b"hello", path="/i/_bulk?x=1") == (200, ANSWER)
    assert send(proxy, path="/i/_search")[0] == 200
    assert arrived[0] == ("POST", "/i/_bulk?x=1", b"hello")
    assert proxy.bulk_requests == 1
    assert proxy.wait_until_idle(timeout=1)


def test_many_requests_pass_over_one_connection(proxy: FaultProxy, arrived: list[Any]) -> None:
    host, port = proxy.url.removeprefix("http://").split(":")
    with closing(http.client.HTTPConnection(host, int(port), timeout=5)) as connection:
        for number in range(3):
            connection.request("GET", f"/{number}")
            assert connection.getresponse().read() == ANSWER
    assert [path for _, path, _ in arrived] == ["/0", "/1", "/2"]


@pytest.mark.parametrize(("kind", "arrivals"), [("answer_lost", 1), ("answer_cut", 1), ("request_reset", 0)])
def test_a_broken_connection_gives_no_whole_answer(
    proxy: FaultProxy, arrived: list[Any], kind: str, arrivals: int
) -> None:
    proxy.disturb(Disturbance(kind=kind))
    with pytest.raises(ENDS):
        send(proxy)
    assert len(arrived) == arrivals
    assert proxy.done[kind] == 1
    proxy.calm()
    assert send(proxy)[0] == 200


@pytest.mark.parametrize("kind", ["answer_late", "request_late"])
def test_what_is_late_still_reaches_the_server(proxy: FaultProxy, arrived: list[Any], kind: str) -> None:
    proxy.disturb(Disturbance(kind=kind, seconds=3.0))
    with pytest.raises(TimeoutError):
        send(proxy, timeout=1.0)
    assert len(arrived) == (1 if kind == "answer_late" else 0)
    assert proxy.wait_until_idle(timeout=5)
    assert len(arrived) == 1


def test_a_request_can_arrive_twice(proxy: FaultProxy, arrived: list[Any]) -> None:
    proxy.disturb(Disturbance(kind="request_repeated"))
    assert send(proxy, b"once") == (200, ANSWER)
    assert [body for _, _, body in arrived] == [b"once", b"once"]


@pytest.mark.parametrize("status", [429, 502, 503])
def test_something_on_the_way_answers_instead(proxy: FaultProxy, arrived: list[Any], status: int) -> None:
    proxy.disturb(Disturbance(kind=f"status_{status}"))
    assert send(proxy)[0] == status
    assert arrived == []


def test_only_large_requests_are_too_large(proxy: FaultProxy, arrived: list[Any]) -> None:
    proxy.disturb(Disturbance(kind="too_large", bytes=10))
    assert send(proxy, b"x" * 10)[0] == 200
    assert send(proxy, b"x" * 11)[0] == 413
    assert len(arrived) == 1


def test_poison_is_refused_in_bulk_requests_only(proxy: FaultProxy, arrived: list[Any]) -> None:
    assert send(proxy, f"a {POISON} b".encode())[0] == 400
    assert arrived == []
    assert send(proxy, POISON.encode(), path="/_search")[0] == 200


def test_a_disturbance_strikes_by_chance(proxy: FaultProxy) -> None:
    proxy.disturb(Disturbance(kind="status_503", chance=0.5))
    statuses = {send(proxy)[0] for _ in range(30)}
    assert statuses == {200, 503}


def test_a_server_that_is_gone_resets_the_connection(arrived: list[Any]) -> None:
    with recording(arrived) as url:
        gone = url
    with FaultProxy(gone, seed=1) as proxy, pytest.raises(ENDS):
        send(proxy)


def test_an_unknown_disturbance_is_refused(proxy: FaultProxy) -> None:
    with pytest.raises(ValueError, match="there are answer_lost"):
        proxy.disturb(Disturbance(kind="answer_lots"))


def test_a_request_is_under_way_until_it_is_answered(proxy: FaultProxy) -> None:
    proxy.disturb(Disturbance(kind="answer_late", seconds=3.0))
    sender = threading.Thread(target=send, args=(proxy,), kwargs={"timeout": 30})
    sender.start()
    time.sleep(1.0)
    assert not proxy.wait_until_idle(timeout=0.05)
    sender.join()
    assert proxy.wait_until_idle(timeout=1)
