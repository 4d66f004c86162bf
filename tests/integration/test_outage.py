"""What the real service logs while Elasticsearch is away: a line a minute, no traceback, and one when it is back."""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.streaming import Story, eventually
from tests.faults.fault_proxy import Disturbance, FaultProxy
from tests.integration.elasticsearch_place import Place
from tests.servers.kafka import KafkaBroker
from tests.servers.prism import Prism
from tests.services.search.serving import ROOT, Service, free_port, running
from tests.similarity.cli.test_main import Shell
from tests.tiny_bundle import write_tiny_bundle

pytestmark = pytest.mark.integration

QUESTIONS = (
    "/similar/acme",
    "/companies?q=ac",
    "/companies/acme",
    "/lists",
    "/feedback",
    "/readyz",
    "/similar?text=cars+cars+cars",
)
SECONDS_OF_LOAD = 6.0


@pytest.fixture
def proxy(place: Place) -> Iterator[FaultProxy]:
    """Stands between the service and the node."""
    with FaultProxy(place.connection.url, seed=1) as proxy:
        yield proxy


@pytest.fixture
def url(place: Place, proxy: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The index behind the proxy, with two companies of a tiny bundle."""
    write_tiny_bundle(tmp_path / "tiny")
    shell = Shell(tmp_path)
    rows = [("acme", "Acme", "anvils anvils anvils", "", ""), ("boots", "Boots", "boats boats boats", "", "")]
    url = f"{proxy.url}/{place.name}"
    shell("ingest", shell.write("companies.csv", rows), "--bundle", "tiny", SIMILARITY_INDEX=url)
    monkeypatch.setenv("SIMILARITY_BUNDLES", str(tmp_path / f"{place.name}.bundles"))
    monkeypatch.setenv("SIMILARITY_AUDIT", str(tmp_path / "audit.jsonl"))
    return url


def under_load(service: Service, seconds: float) -> Counter[int]:
    """The statuses that four threads of readers and one of writers are answered."""
    statuses: Counter[int] = Counter()
    end = time.monotonic() + seconds

    def ask() -> None:
        while time.monotonic() < end:
            statuses.update(service.ask(path)[0] for path in QUESTIONS)

    def write() -> None:
        body = json.dumps({"id": "cars", "name": "Cars", "description": "cars"}).encode()
        kind = {"Content-Type": "application/x-ndjson"}
        while time.monotonic() < end:
            statuses[service.ask("/companies/bulk", kind, body)[0]] += 1

    threads = [threading.Thread(target=each) for each in (ask, ask, ask, ask, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_an_absent_elasticsearch_is_a_line_a_minute_under_load(url: str, proxy: FaultProxy, tmp_path: Path) -> None:
    with running(url, tmp_path) as service:
        assert under_load(service, 1)[200]
        before = len(service.lines)
        proxy.disturb(Disturbance(kind="request_reset"))
        statuses = under_load(service, SECONDS_OF_LOAD)
        proxy.calm()
        until(lambda: service.ask("/lists")[0] == service.ask("/similar/acme")[0] == 200)
        lines = [line for line in service.lines[before:] if line["logger"] != "services.search.requests"]
        assert statuses[503] > 50
        assert statuses[500] == 0
        assert "Traceback" not in service.log
        messages = sorted(line["message"] for line in lines)
        assert [message.split(": ")[0].split(" after ")[0] for message in messages] == [
            "the index is away",
            "the index is back",
            "the store of feedback and lists is away",
            "the store of feedback and lists is back",
        ]
        assert all("more failures since the last line" in message for message in messages if " is back " in message)


def test_a_start_without_elasticsearch_ends_with_one_line(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "services.search", "--index", f"http://127.0.0.1:{free_port()}/companies"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line.startswith("services.search: Elasticsearch at http://127.0.0.1:")


def test_a_stream_whose_store_is_away_logs_a_line_a_minute(
    place: Place, proxy: FaultProxy, kafka: KafkaBroker, prism: Prism, tmp_path: Path
) -> None:
    story = Story(
        tmp_path,
        kafka=kafka,
        target=f"{proxy.url}/{place.name}",
        runner=prism.beam_options(streaming=True),
        bundle=write_tiny_bundle(tmp_path / "tiny").folder,
    )
    with story.streaming():
        story.send({"id": "first", "name": "First", "description": "anvils"})
        eventually(story.all_committed, story)
        proxy.disturb(Disturbance(kind="request_reset"))
        story.send(*({"id": f"c{number}", "name": "C", "description": "boats"} for number in range(50)))
        time.sleep(SECONDS_OF_LOAD)
        proxy.calm()
        eventually(story.all_committed, story)
    said = story.said()
    assert "Traceback" not in said
    assert said.count("the index is away: Elasticsearch at") == 1
    assert said.count("the index is back after") == 1
    assert "elastic_transport" not in said
