"""The service as a process, beside more connections and more unfinished bodies than it takes."""

import json
import re
import resource
import selectors
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from services.search.guards.authentication import REFUSAL_COST
from services.search.guards.callers import Scope
from services.search.guards.rate_limits import OPEN_ALLOWANCE, Allowance
from services.search.keys import add
from tests.services.search.corpus import filled_index
from tests.services.search.raw_http import answer, connected, connections, is_closed, status
from tests.services.search.serving import Service, running

pytestmark = pytest.mark.integration

# The service answers "100 Continue" when it waits for the body.
UNFINISHED = b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
REFUSALS = Allowance(OPEN_ALLOWANCE.rate / REFUSAL_COST, OPEN_ALLOWANCE.burst / REFUSAL_COST)
VERDICT = json.dumps({"anchor": "acme", "hit": "boots", "verdict": "competitor"}).encode()


@pytest.fixture
def index_file(tmp_path: Path) -> Path:
    filled_index(tmp_path / "index.db").close()
    return tmp_path / "index.db"


def asked(service: Service, path: str, *, source: str = "127.0.0.1") -> tuple[int, float]:
    """Status (0: no answer) and seconds of a request on a connection of its own."""
    started = time.monotonic()
    try:
        with connected(service.port, source=source) as connection:
            connection.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path.encode())
            got = answer(connection)
    except OSError:
        got = b""
    return status(got), time.monotonic() - started


def test_the_limit_of_open_files_is_raised_to_what_the_connections_need(index_file: Path, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with running(index_file, tmp_path, connections=2000) as service:
            assert resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE) == (2500, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("address_connections", [0, 250])
def test_health_checks_answer_beside_more_idle_connections_than_are_allowed(
    index_file: Path, tmp_path: Path, address_connections: int
) -> None:
    with (
        running(index_file, tmp_path, address_connections=address_connections) as service,
        connections(service.port, 1200),
    ):
        answers = []
        for path in ("/healthz", "/readyz") * 33:
            # More keep coming.
            with connections(service.port, 10):
                answers.append(asked(service, path))
        assert asked(service, "/similar/acme")[0] == 200
    assert Counter(code for code, _ in answers) == {200: 66}
    assert max(seconds for _, seconds in answers) < 2


def test_health_checks_answer_while_every_connection_has_a_request_under_way(index_file: Path, tmp_path: Path) -> None:
    with (
        running(index_file, tmp_path, connections=20, address_connections=0) as service,
        connections(service.port, 20, UNFINISHED) as busy,
    ):
        assert all(each.recv(4096).startswith(b"HTTP/1.1 100 ") for each in busy)
        assert asked(service, "/similar/acme")[0] == 503
        answers = [asked(service, path) for path in ("/healthz", "/readyz") * 33]
        assert Counter(code for code, _ in answers) == {200: 66}
        assert max(seconds for _, seconds in answers) < 2
        with connected(service.port) as late:
            late.sendall(b"GET /similar/acme HTTP/1.1\r\nHost: localhost\r\n\r\n")
            refusal = answer(late)
        assert status(refusal) == 503
        assert b"connection: close" in refusal
        assert json.loads(refusal.partition(b"\r\n\r\n")[2])["type"] == "/docs#overloaded"
        for each in busy:
            each.sendall(b"[12]")
            assert status(each.recv(4096)) == 404
        assert asked(service, "/similar/acme")[0] == 200


def test_one_address_cannot_take_every_connection(index_file: Path, tmp_path: Path) -> None:
    with (
        running(index_file, tmp_path, connections=40, address_connections=20) as service,
        connections(service.port, 60, UNFINISHED, source="127.0.0.2") as busy,
    ):
        statuses = Counter(status(each.recv(4096)) for each in busy)
        assert statuses == {100: 20, 503: 40}
        assert asked(service, "/similar/acme", source="127.0.0.2")[0] == 503
        assert asked(service, "/healthz", source="127.0.0.2")[0] == 200
        assert asked(service, "/similar/acme")[0] == 200


@pytest.mark.parametrize(
    ("path", "answered", "allowance"),
    [("/openapi.json", 200, OPEN_ALLOWANCE), ("/similar/acme", 401, REFUSALS)],
)
def test_one_address_that_pipelines_without_a_key_delays_no_health_check(
    index_file: Path, tmp_path: Path, path: str, answered: int, allowance: Allowance
) -> None:
    keys = tmp_path / "keys.json"
    secret = add(keys, "ann", [Scope.READ])
    flood = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 20
    started = time.monotonic()
    with (
        running(index_file, tmp_path, keys=keys) as service,
        connections(service.port, 240, flood, source="127.0.0.2") as opened,
    ):
        answers = Counter[int]()
        reading = threading.Thread(target=read_answers, args=(opened, answers))
        reading.start()
        waited = [asked(service, health) for health in ("/healthz", "/readyz") * 5]
        ours = service.ask("/similar/acme", {"Authorization": f"Bearer {secret}"})
        reading.join(timeout=60)
        assert not reading.is_alive()
        seconds = time.monotonic() - started
        assert service.ask("/openapi.json")[0] == 200
    assert {code for code, _ in waited} == {200}
    assert ours[0] == 200
    # 4,800 requests: a burst is answered, and each connection ends with its first answer.
    assert answered in answers
    assert answers[answered] <= allowance.burst + allowance.rate * seconds
    assert answers[answered] + answers[429] == answers.total() <= 240


def test_one_key_that_pipelines_over_many_connections_takes_no_request_from_the_others(
    index_file: Path, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.json"
    ann, bob = (add(keys, name, [Scope.READ]) for name in ("ann", "bob"))
    flood = f"GET /similar/acme HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ann}\r\n\r\n".encode() * 500
    with (
        running(index_file, tmp_path, keys=keys, queue_seconds=30) as service,
        connections(service.port, 240, b"", source="127.0.0.2") as opened,
    ):
        answers = Counter[int]()
        for each in opened:
            each.setblocking(False)
            with suppress(BlockingIOError):
                each.send(flood)
        reading = threading.Thread(target=read_answers, args=(opened, answers))
        reading.start()
        while not answers:
            time.sleep(0.01)
        ours = Counter(service.ask("/similar/acme", {"Authorization": f"Bearer {bob}"})[0] for _ in range(40))
        theirs = sum(answers.values())
        for each in opened:
            each.shutdown(socket.SHUT_RDWR)
        reading.join(timeout=60)
        assert not reading.is_alive()
    assert ours == {200: 40}
    assert 0 < theirs < 240 * 500


CHUNKED = b"POST /similar HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKS = CHUNKED + b"1\r\na\r\n" * 50_000
PADDED_CHUNKS = CHUNKED + b"01;\r\na\r\n" * 40_000
CHUNKS_OF_16 = CHUNKED + (b"10\r\n" + b"a" * 16 + b"\r\n") * 15_000
HEADERS = (
    b"GET /similar/acme HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"h%d: v\r\n" % n for n in range(2400)) + b"\r\n"
)
BLANKS = b"GET /similar/acme HTTP/1.1\r\nHost: localhost\r\na:" + b" " * 30_000 + b"\x0b\r\n\r\n"
CHUNK_OF_BLANKS = CHUNKED + b"1;" + b" " * 30_000 + b"\n\r\n"
TRAILERS = CHUNKED + b"0\r\n" + b"a:\r\n" * 8_000 + b"\r\n"
PIPELINED = b"GET /similar/acme HTTP/1.1\r\nHost: localhost\r\n\r\n" + HEADERS.replace(b": v", b":") * 10


@pytest.mark.parametrize(
    "flood",
    [CHUNKS, PADDED_CHUNKS, CHUNKS_OF_16, HEADERS * 10, PIPELINED, BLANKS, CHUNK_OF_BLANKS, TRAILERS],
    ids=[
        *("tiny chunks", "padded sizes", "chunks of 16", "many headers", "many headers behind a request"),
        *("a header of blanks", "a chunk size of blanks", "many trailers"),
    ],
)
def test_what_is_costly_to_parse_delays_no_health_check(index_file: Path, tmp_path: Path, flood: bytes) -> None:
    keys = tmp_path / "keys.json"
    add(keys, "ann", [Scope.READ])
    with running(index_file, tmp_path, keys=keys) as service, connections(service.port, 100, b"") as opened:
        for each in opened:
            each.setblocking(False)
            with suppress(OSError):
                each.send(flood)
        waited = [asked(service, path) for path in ("/healthz", "/readyz") * 5]
    assert {code for code, _ in waited} == {200}
    assert max(seconds for _, seconds in waited) < 2


def read_answers(opened: list[socket.socket], answers: Counter[int]) -> None:
    """Counts the statuses of all answers on these connections, read in turn until each is closed."""
    with selectors.DefaultSelector() as selector:
        for each in opened:
            selector.register(each, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                part = receive(key.fileobj)
                for line in re.findall(rb"HTTP/1\.1 (\d{3}) ", part):
                    answers[int(line)] += 1
                if not part:
                    selector.unregister(key.fileobj)


def receive(connection: object) -> bytes:
    assert isinstance(connection, socket.socket)
    try:
        return connection.recv(1 << 18)
    except ConnectionError:
        return b""


def test_where_a_proxy_stands_in_front_its_address_has_no_limit(index_file: Path, tmp_path: Path) -> None:
    with (
        running(index_file, tmp_path, address_connections=5, proxies="127.0.0.1") as service,
        connections(service.port, 30, UNFINISHED) as busy,
    ):
        assert all(each.recv(4096).startswith(b"HTTP/1.1 100 ") for each in busy)
        assert asked(service, "/similar/acme")[0] == 200


def test_the_unfinished_bodies_of_one_key_stop_nobody_else(index_file: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    ann, bob = (add(keys, name, [Scope.READ, Scope.FEEDBACK]) for name in ("ann", "bob"))
    begun = (
        b"POST /feedback HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer %s\r\nContent-Length: 1900000\r\n\r\n%s" % (ann.encode(), b" " * 1_899_999)
    )
    with running(index_file, tmp_path, keys=keys) as service, connections(service.port, 52, begun) as unfinished:
        judged = {"Content-Type": "application/json", "Authorization": f"Bearer {bob}"}
        assert service.ask("/feedback", judged, VERDICT)[0] in {200, 201}
        refused = [each for each in unfinished if is_closed(each, seconds=0.05)]
        assert 52 - len(refused) == 25_000_000 // (1_900_000 + 65_536)
        mine = {**judged, "Authorization": f"Bearer {ann}"}
        assert service.ask("/similar/acme", {"Authorization": f"Bearer {ann}"})[0] == 200
        # A small body of hers still has room.
        assert service.ask("/feedback", mine, VERDICT)[0] in {200, 201}
