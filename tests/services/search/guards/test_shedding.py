"""Refusing from the bytes of a request, and never where that could be misunderstood."""

import asyncio
import json
from collections.abc import Callable

import pytest

from services.search.guards.concurrency import Gate, Gates
from services.search.guards.shedding import early_refusal

GET = b"GET /similar/acme?k=3 HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"


class Case:
    def __init__(self, *, quick_full: bool = True, heavy_full: bool = False) -> None:
        self.gates = Gates(quick=Gate(at_once=1, queue=0, seconds=1), heavy=Gate(at_once=1, queue=0, seconds=1))
        for gate, full in ((self.gates.quick, quick_full), (self.gates.heavy, heavy_full)):
            assert not full or asyncio.run(gate.enter())
        self.shed = 0
        self.refusal: Callable[[bytes], bytes | None] = early_refusal(self.gates, self._count)

    def _count(self) -> None:
        self.shed += 1


def test_a_plain_request_is_refused_while_there_is_no_place() -> None:
    case = Case()
    refusal = case.refusal(GET)
    assert refusal is not None
    head, _, body = refusal.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"\r\nretry-after: 1" in head
    assert b"\r\ncontent-length: %d" % len(body) in head
    assert b"\r\nx-content-type-options: nosniff" in head
    document = json.loads(body)
    assert (document["type"], document["status"]) == ("/docs#overloaded", 503)
    assert document["instance"] == "/similar/acme"
    assert case.shed == 1


def test_nothing_is_refused_while_there_is_a_place() -> None:
    case = Case(quick_full=False)
    assert case.refusal(GET) is None
    assert case.shed == 0


def test_each_gate_refuses_its_own_requests() -> None:
    text = b"GET /similar?text=makes+leather+shoes HTTP/1.1\r\nHost: a\r\n\r\n"
    assert Case(quick_full=True).refusal(text) is None
    assert Case(quick_full=False, heavy_full=True).refusal(text) is not None
    assert Case(quick_full=False, heavy_full=True).refusal(GET) is None


@pytest.mark.parametrize(
    "data",
    [
        b"GET /" + b"a" * 200_000,
        b"GET /a?" + b"a" * 200_000 + b" HTTP/1.1\r\n",
        GET[:-2] + b"Authorization:" + b" " * 200_000,
        GET[:-2] + b"a\r\n" * 50_000,
        GET[:-2] + (b"connection" + b" " * 100) * 2_000,
    ],
)
def test_hostile_bytes_are_left_to_the_server(data: bytes) -> None:
    # Where the time grows with the square of the length, each of these takes a minute.
    assert Case().refusal(data) is None


@pytest.mark.parametrize("path", [b"/healthz", b"/readyz?x=1", b"/%72eadyz", b"/?company=acme", b"/assets/a.js"])
def test_health_checks_and_the_page_are_never_refused(path: bytes) -> None:
    assert Case().refusal(b"GET " + path + b" HTTP/1.1\r\nHost: a\r\n\r\n") is None


@pytest.mark.parametrize(
    "data",
    [
        GET[:-1],
        GET[:20],
        GET + GET,
        GET + b"x",
        b"POST /similar HTTP/1.1\r\nHost: a\r\n\r\n",
        b"HEAD /similar/a HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /a HTTP/1.0\r\nHost: a\r\n\r\n",
        b"GET /a HTTP/1.1\r\n\r\n",
        b"GET http://a/b HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /a HTTP/1.1\r\nContent-Length: 50\r\n\r\n",
        b"GET /a HTTP/1.1\r\ncontent-length : 50\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: a\r\nTRANSFER-ENCODING: chunked\r\n\r\n",
        b"GET /a HTTP/1.1\nContent-Length: 50\r\nHost: a\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: a\n\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: a\rContent-Length: 50\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Close\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
        b"",
        b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
    ],
)
def test_what_could_have_a_body_or_a_second_request_goes_the_usual_way(data: bytes) -> None:
    case = Case()
    assert case.refusal(data) is None
    assert case.shed == 0


def test_the_path_cannot_break_the_document() -> None:
    refusal = Case().refusal(b"GET /%22%0d%0aX:%20y%ff HTTP/1.1\r\nHost: a\r\n\r\n")
    assert refusal is not None
    head, _, body = refusal.partition(b"\r\n\r\n")
    assert b"X: y" not in head
    assert json.loads(body)["instance"].startswith('/"\r\nX: y')
