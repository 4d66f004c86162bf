"""Starting and stopping the service."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from fastapi import FastAPI

from services.search import __main__ as service_main
from services.search.__main__ import encoders_of, main, serve
from services.search.guards.guards import Guards
from services.search.guards.lifecycle import DrainingServer
from services.search.guards.metrics import ServiceMetrics
from services.search.settings import Address, ServiceSettings
from similarity.errors import InvalidBundle, InvalidInput
from similarity.index.sqlite import SqliteIndex
from similarity.settings import Settings
from tests.servers.ports import free_ports
from tests.services.search.corpus import filled_index

ROOT = Path(__file__).parents[3]


def test_it_does_not_start_without_an_index(tmp_path: Path) -> None:
    missing = tmp_path / "none.db"
    with pytest.raises(
        InvalidInput, match=r"there is no index .*none\.db yet; create one with: similarity ingest FILE"
    ):
        serve(Settings(index=str(missing)))
    assert not missing.exists()


def test_it_does_not_listen_to_the_network_without_keys() -> None:
    with pytest.raises(InvalidInput, match="there are no keys"):
        serve(Settings(), host="0.0.0.0")


def test_it_does_not_start_where_its_port_is_published_to_the_network_without_keys(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"the network can reach 10\.0\.0\.7 and there are no keys"):
        serve(Settings(), service=ServiceSettings(published_address="10.0.0.7"), host="0.0.0.0")
    empty = tmp_path / "keys.json"
    empty.write_text('{"keys": []}')
    with pytest.raises(InvalidInput, match="holds no key"):
        serve(Settings(), service=ServiceSettings(published_address="10.0.0.7", keys=empty), host="0.0.0.0")


def test_a_bundle_that_is_named_must_be_one(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index, pytest.raises(InvalidBundle, match="manifest"):
        encoders_of(Settings(bundle=tmp_path), index, ServiceMetrics())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "Make a key: python -m services.search.keys add NAME"),
        (["--port", "0"], "port 0 is out of range"),
        (["--index", "/nowhere/none.db"], "there is no index /nowhere/none.db yet"),
    ],
)
def test_a_bad_start_is_one_line_and_a_failure(arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert str(exit_.value.code).startswith("services.search: ")
    assert message in str(exit_.value.code)


def test_a_misspelt_variable_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMILARITY_INDX", "x.db")
    with pytest.raises(SystemExit, match="SIMILARITY_INDX is not a setting"):
        main([])


def test_a_taken_port_is_said_before_the_encoder_is_loaded(tmp_path: Path) -> None:
    filled_index(tmp_path / "index.db").close()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match=rf"another program listens on 127\.0\.0\.1:{port}.* with --port"):
            serve(Settings(index=str(tmp_path / "index.db"), bundle=tmp_path / "none"), port=port)


def test_a_port_of_the_metrics_that_is_taken_is_named() -> None:
    before = sys.getswitchinterval()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = ServiceSettings(metrics_host="127.0.0.1", metrics_port=taken.getsockname()[1])
        try:
            with pytest.raises(InvalidInput, match=r"metrics cannot be served .* with SIMILARITY_SERVICE_METRICS_PORT"):
                service_main.run(FastAPI(), Address(), Guards(settings=settings))
        finally:
            sys.setswitchinterval(before)


def test_a_busy_thread_gives_way_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    intervals: list[float] = []

    class Server(DrainingServer):
        def run(self, sockets: list[socket.socket] | None = None) -> None:
            self.started = True
            intervals.append(sys.getswitchinterval())

    monkeypatch.setattr(service_main, "DrainingServer", Server)
    before = sys.getswitchinterval()
    try:
        service_main.run(FastAPI(), Address(), Guards())
    finally:
        sys.setswitchinterval(before)
    assert intervals == [pytest.approx(service_main.SECONDS_BETWEEN_THREADS)]
    assert intervals[0] < before


def test_declared_types_are_in_the_audit_record_and_a_refused_size_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    filled_index(tmp_path / "index.db").close()
    monkeypatch.setattr(service_main, "run", lambda *_: None)
    settings = Settings(index=str(tmp_path / "index.db"))
    [port] = free_ports(1)
    serve(settings, service=ServiceSettings(attributes="employees:number", size="employees"), port=port)
    audit = (tmp_path / "index.db.audit.jsonl").read_text()
    assert '"declare"' in audit
    assert "employees" in audit
    with pytest.raises(InvalidInput, match=r"the size 'staff' must be declared .* SIMILARITY_SERVICE_ATTRIBUTES="):
        serve(settings, service=ServiceSettings(size="staff"), port=port)
    assert "the size of a company is now" not in caplog.text
    assert (tmp_path / "index.db.audit.jsonl").read_text() == audit


def test_writes_to_kafka_need_its_client_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled_index(tmp_path / "index.db").close()
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    [port] = free_ports(1)
    with pytest.raises(InvalidInput, match=r"Kafka needs its client .* pip install"):
        serve(Settings(index=str(tmp_path / "index.db")), service=ServiceSettings(writes="kafka"), port=port)


def test_the_demo_says_that_its_port_is_taken_before_it_works(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    for stamp in ("python", "search"):
        (tmp_path / stamp).touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = ["make", "--no-print-directory", "demo", f"VENV={tmp_path}", f"PORT={port}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stdout.startswith(f"Port {port} is taken")
    assert "make demo PORT=NUMBER" in done.stdout
    assert "Open http" not in done.stdout


COMMANDS = {"services.search": ["-m", "services.search"], "similarity serve": ["-m", "similarity", "serve"]}


@pytest.mark.integration
@pytest.mark.parametrize("command", COMMANDS)
def test_either_command_keeps_to_the_settings_of_the_service(tmp_path: Path, command: str) -> None:
    filled_index(tmp_path / "index.db").close()
    make_key = ["-m", "services.search.keys", "add", "ann", "--scope", "read", "--file", str(tmp_path / "keys.json")]
    subprocess.run([sys.executable, *make_key], cwd=ROOT, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "SIMILARITY_INDEX": str(tmp_path / "index.db"),
        "SIMILARITY_SERVICE_KEYS": str(tmp_path / "keys.json"),
        "SIMILARITY_SERVICE_LOGS": "json",
    }
    arguments = [sys.executable, *COMMANDS[command], "--port", str(port)]
    process = subprocess.Popen(arguments, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert b"ready" in fetched(f"http://127.0.0.1:{port}/readyz", process)
        with pytest.raises(HTTPError, match="401"):
            urlopen(f"http://127.0.0.1:{port}/similar/acme", timeout=5)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert '"status": 401' in log


@pytest.mark.parametrize("command", COMMANDS)
def test_either_command_refuses_a_misspelt_setting(tmp_path: Path, command: str) -> None:
    filled_index(tmp_path / "index.db").close()
    environment = {**os.environ, "SIMILARITY_INDEX": str(tmp_path / "index.db"), "SIMILARITY_SERVICE_KEY": "x"}
    arguments = [sys.executable, *COMMANDS[command], "--port", "1"]
    finished = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 1
    assert "SIMILARITY_SERVICE_KEY is not a setting" in finished.stderr


@pytest.mark.integration
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_and_stops_cleanly_when_told(tmp_path: Path, stop: signal.Signals) -> None:
    filled_index(tmp_path / "index.db").close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "SIMILARITY_INDEX": str(tmp_path / "index.db")}
    command = [sys.executable, "-m", "services.search", "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        answer = fetched(f"http://127.0.0.1:{port}/similar/acme?k=1", process)
        assert b'"boots"' in answer
        process.send_signal(stop)
        _, log = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, log
    assert "Traceback" not in log
    # Both were closed: SQLite has folded their write-ahead logs into the files. The audit record is tried at the start.
    expected = ["index.db", "index.db.audit.jsonl", "index.db.workspace"]
    assert sorted(path.name for path in tmp_path.iterdir()) == expected


def fetched(url: str, process: subprocess.Popen[str]) -> bytes:
    deadline = time.monotonic() + 30
    while True:
        try:
            with urlopen(url, timeout=5) as response:
                body: bytes = response.read()
                return body
        except OSError:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
