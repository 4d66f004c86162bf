"""The service as a process: stopping, promoting, keys, slow clients, and what its log never says."""

import http.client
import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest

from services.search.guards.callers import Scope
from services.search.keys import add, revoke
from similarity.index.sqlite import SqliteIndex
from tests.services.search.corpus import add_generation, companies, filled_index
from tests.services.search.raw_http import answer, status
from tests.services.search.serving import Service, free_port, running

pytestmark = pytest.mark.integration


@pytest.fixture
def index_file(tmp_path: Path) -> Path:
    filled_index(tmp_path / "index.db").close()
    return tmp_path / "index.db"


class Askers:
    """Threads that ask again and again, over kept connections as well-behaved clients do."""

    def __init__(self, service: Service, threads: int = 4) -> None:
        self.service = service
        self.statuses: Counter[int] = Counter()
        self.generations: Counter[str] = Counter()
        self.failures: list[str] = []
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(threads)]

    def __enter__(self) -> "Askers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def finish(self) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=20)
        while not self._enough.is_set():
            try:
                connection.request("GET", "/similar/acme?k=2")
                response = connection.getresponse()
                body = json.loads(response.read())
            except OSError as error:
                self.failures.append(repr(error))
                return
            self.statuses[response.status] += 1
            self.generations[body.get("generation", "none")] += 1
        connection.close()


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_while_it_stops_readiness_ends_first_and_no_request_is_dropped(index_file: Path, tmp_path: Path) -> None:
    with running(index_file, tmp_path, drain_seconds=8) as service, Askers(service) as askers:
        until(lambda: askers.statuses[200] > 20)
        service.process.terminate()
        until(lambda: service.ask("/readyz")[0] == 503)
        before = askers.statuses[200]
        until(lambda: askers.statuses[200] > before + 20)
        assert service.process.poll() is None
        # As a load balancer does when readiness has ended: nothing new is sent.
        askers.finish()
        assert service.process.wait(timeout=30) == 0
    assert askers.failures == []
    assert set(askers.statuses) == {200}
    assert "Traceback" not in service.log


def test_a_request_under_way_is_finished_after_the_server_listens_no_more(index_file: Path, tmp_path: Path) -> None:
    with running(index_file, tmp_path, drain_seconds=0) as service:
        with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
            # Half of a body: the request is under way and cannot be answered yet.
            connection.sendall(b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n[1")
            time.sleep(0.2)
            service.process.terminate()
            until(lambda: refused(service.port))
            connection.sendall(b"2]")
            assert status(answer(connection)) == 404
        assert service.process.wait(timeout=30) == 0


def refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_promoted_generation_is_picked_up_without_a_dropped_request(index_file: Path, tmp_path: Path) -> None:
    with running(index_file, tmp_path) as service, closing(SqliteIndex(index_file)) as index:
        with Askers(service) as askers:
            until(lambda: askers.generations["first"] > 20)
            for name in ("second", "third"):
                add_generation(index, name, companies())
                index.promote(name)
                until(lambda name=name: askers.generations[name] > 20)  # type: ignore[misc]
            index.retire("first")
            reached = askers.generations["third"]
            until(lambda: askers.generations["third"] > reached + 50)
        assert service.stop() == 0
    assert askers.failures == []
    assert set(askers.statuses) == {200}
    assert set(askers.generations) == {"first", "second", "third"}


def test_keys_are_checked_replaced_and_revoked_without_a_restart_and_never_logged(
    index_file: Path, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.json"
    first = add(keys, "ann", [Scope.READ])
    with running(index_file, tmp_path, keys=keys) as service:

        def asked_with(secret: str) -> int:
            return service.ask("/similar/acme", {"Authorization": f"Bearer {secret}"})[0]

        assert service.ask("/similar/acme")[0] == 401
        assert service.ask("/")[0] == 200
        assert asked_with(first) == 200
        wrong = first[:-4] + "AAAA"
        assert asked_with(wrong) == 401
        second = add(keys, "ann", [Scope.READ])
        until(lambda: asked_with(second) == 200)
        assert asked_with(first) == 200
        revoke(keys, "ann", identity=first.split("_")[1])
        until(lambda: asked_with(first) == 401)
        keys.write_text("broken")
        until(lambda: asked_with(second) == 200 and "the earlier keys stay in use" in service.log)
        # Wherever a careless client puts its key, the log does not show it.
        service.ask(
            f"/similar/{second}?key={second}", {"Authorization": f"Bearer {second}", "X-Request-Id": second[:60]}
        )
        service.ask("/nothing", {"X-Api-Key": second, "User-Agent": second})
        assert service.stop() == 0
        for secret in (first, second, wrong):
            assert secret.split("_", 2)[2][:20] not in service.log
        requests = [line for line in service.lines if line["logger"] == "services.search.requests"]
        assert {line["caller"] for line in requests} == {"ann", None}
        assert {line["route"] for line in requests} >= {"/similar/{company_id:path}", "/readyz", "/"}


def test_a_client_that_never_finishes_its_head_is_hung_up_on(index_file: Path, tmp_path: Path) -> None:
    with running(index_file, tmp_path, head_seconds=0.3) as service:
        with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
            connection.sendall(b"GET /similar/acme HTTP/1.1\r\nHost: local")
            started = time.monotonic()
            assert connection.recv(100) == b""
            assert 0.1 < time.monotonic() - started < 5
        assert service.ask("/similar/acme")[0] == 200


def test_metrics_are_on_a_port_of_their_own_and_name_no_company(index_file: Path, tmp_path: Path) -> None:
    port = free_port()
    with running(index_file, tmp_path, metrics_port=port) as service:
        for path in ("/similar/acme", "/similar/nobody-at-all", "/nothing/here"):
            service.ask(path)
        assert service.ask("/metrics")[0] == 404
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as exposed:
            text = exposed.read().decode()
        assert service.stop() == 0
    assert 'search_request_seconds_count{method="GET",route="/similar/{company_id:path}",status="200"} 1.0' in text
    assert re.search(r'search_index_seconds_count\{call="similar"\} \d', text)
    for name in ("acme", "nobody-at-all", "/nothing"):
        assert name not in text


def test_a_strangers_name_for_this_machine_is_refused(index_file: Path, tmp_path: Path) -> None:
    with running(index_file, tmp_path) as service:
        assert service.ask("/similar/acme", {"Host": f"evil.example:{service.port}"})[0] == 421
        assert service.ask("/similar/acme", {"Host": f"localhost:{service.port}"})[0] == 200
