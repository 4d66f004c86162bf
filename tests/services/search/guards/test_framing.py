"""Requests whose end a proxy may see elsewhere than the service does, sent to the service as a process."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.search.guards.callers import Scope
from services.search.keys import add
from tests.services.search.corpus import filled_index
from tests.services.search.raw_http import answer, connected, status
from tests.services.search.serving import Service, running

pytestmark = pytest.mark.integration

SMUGGLED = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: smuggled\r\n\r\n"
BOTH = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    filled_index(folder / "index.db").close()
    with running(folder / "index.db", folder) as started:
        yield started


def answered(service: Service, headers: bytes, *, path: bytes = b"/similar", version: bytes = b"1.1") -> bytes:
    """What the service says to a request with these headers, and to another one behind it, until it closes."""
    with connected(service.port) as connection:
        connection.settimeout(2)
        head = b"POST %s HTTP/%s\r\nHost: localhost\r\nContent-Type: application/json\r\n" % (path, version)
        connection.sendall(head + headers + b"\r\n" + SMUGGLED)
        got = b""
        while part := connection.recv(65536):
            got += part
    return got


def answers(got: bytes) -> int:
    return len(re.findall(rb"HTTP/1\.1 \d{3} ", got))


@pytest.mark.parametrize(
    ("headers", "version"),
    [
        (BOTH, b"1.1"),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", b"1.1"),
        (b"transfer-encoding:\tCHUNKED\r\ncontent-length: 4\r\n", b"1.1"),
        (b"Content-Length: 4\r\nTransfer-Encoding:\r\n chunked\r\n", b"1.1"),
        (b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", b"1.1"),
        (BOTH, b"1.0"),
        (b"Transfer-Encoding: chunked\r\n", b"1.0"),
    ],
)
@pytest.mark.parametrize("path", [b"/similar", b"/healthz", b"/nothing"])
def test_two_lengths_are_a_problem_and_end_the_connection(
    service: Service, headers: bytes, version: bytes, path: bytes
) -> None:
    got = answered(service, headers, version=version, path=path)
    assert answers(got) == 1
    assert status(got) == 400
    head, _, body = got.partition(b"\r\n\r\n")
    assert b"\r\nconnection: close" in head.lower()
    assert json.loads(body)["type"] == "/docs#refused"
    assert b"smuggled" not in got


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 5\r\nContent-Length: 4\r\n",
        b"Content-Length: 5, 4\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: -5\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length: \r\n",
        b"Content-Length : 5\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: identity, chunked\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b'Transfer-Encoding: "chunked"\r\n',
        b"Transfer-Encoding: chunked;q=1\r\n",
    ],
)
def test_a_length_that_can_be_read_in_two_ways_ends_the_connection(service: Service, headers: bytes) -> None:
    got = answered(service, headers)
    assert answers(got) == 1
    assert status(got) == 400
    assert b"smuggled" not in got


def test_the_same_length_twice_is_one_length(service: Service) -> None:
    with connected(service.port) as connection:
        same = b"Content-Length: 5\r\nContent-Length: 5\r\nConnection: close\r\n\r\n12345"
        connection.sendall(b"POST /nothing HTTP/1.1\r\nHost: localhost\r\n" + same)
        assert status(answer(connection)) == 404


@pytest.mark.parametrize("path", [b"/similar/acme", b"/healthz"])
def test_a_head_over_its_limit_is_431_and_ends_the_connection_though_it_arrives_in_one_piece(
    service: Service, path: bytes
) -> None:
    for size, expected in ((30_000, 200), (40_000, 431), (65_000, 431), (200_000, 431)):
        with connected(service.port) as connection:
            connection.settimeout(2)
            head = b"GET %s HTTP/1.1\r\nHost: localhost\r\nX-Long: %s\r\n" % (path, b"a" * size)
            connection.sendall(head + (b"Connection: close\r\n\r\n" if expected == 200 else b"\r\n"))
            got = answer(connection)
        # A very long head may arrive in parts: then the server refuses it itself.
        assert status(got) in {expected, 400 if size > 65_536 else expected}, size
        assert b"connection: close" in got.lower()
        assert answers(got) == 1
    with connected(service.port) as connection:
        head = b"GET %s?q=%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (path, b"a" * 40_000)
        connection.sendall(head)
        got = answer(connection)
    assert status(got) == 431
    assert json.loads(got.partition(b"\r\n\r\n")[2])["type"] == "/docs#head-too-large"


def test_whoever_has_no_key_is_hung_up_on_too(tmp_path: Path) -> None:
    filled_index(tmp_path / "index.db").close()
    add(tmp_path / "keys.json", "ann", [Scope.READ])
    with running(tmp_path / "index.db", tmp_path, keys=tmp_path / "keys.json") as service:
        got = answered(service, BOTH)
        assert status(got) == 400
        assert answers(got) == 1
        pipelined = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /similar HTTP/1.1\r\nHost: localhost\r\n"
        with connected(service.port) as connection:
            connection.sendall(pipelined + BOTH + b"\r\n" + SMUGGLED)
            got = answer(connection)
        assert answers(got) == 1
        assert b"smuggled" not in got
