"""A message to a real Kafka becomes an answer of the service: by Prism and by Flink, from a real Elasticsearch."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.index.opening import open_index
from tests.end_to_end.streaming import ROOT, Story, eventually, index_on
from tests.servers.connection import Connection
from tests.servers.flink import FlinkCluster
from tests.servers.kafka import KafkaBroker
from tests.servers.prism import Prism
from tests.tiny_bundle import write_tiny_bundle

pytestmark = pytest.mark.integration

SAMPLE = ROOT / "data" / "sample" / "companies.jsonl"


@pytest.fixture
def target(elasticsearch_connection: Connection) -> Iterator[str]:
    """Where the index is."""
    with index_on(elasticsearch_connection) as target:
        yield target


def tell(story: Story) -> None:
    """The whole story: the sample streams in, a new company is found, a text changes, one is deleted, one is poison."""
    sample = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    with story.streaming() as process:
        story.send(*sample)
        eventually(story.all_committed, story)
        with (
            closing(open_index(story.target, {})) as index,
            TestClient(create_app(index=index, encoder=None)) as client,
        ):

            def competitors(company: str) -> list[str]:
                answer = client.get(f"/similar/{company}").json()
                return [hit["company"]["id"] for hit in answer.get("hits", [])]

            description = "Newbrew is a brewery that makes lager, ale and wheat beer and sells it to pubs and shops."
            began = datetime.now(UTC)
            story.send({"id": "newbrew", "name": "Newbrew", "description": description})
            eventually(lambda: "heineken" in competitors("newbrew"), story)
            print(f"searchable after {(datetime.now(UTC) - began).total_seconds():.1f} s")
            changed = "Newbrew builds satellites and the rockets that bring them into orbit."
            story.send({"id": "newbrew", "name": "Newbrew", "description": changed})
            eventually(lambda: "spacex" in competitors("newbrew"), story)
            story.send({"id": "newbrew", "description": None}, {"id": "no good", "name": "", "description": "x"})
            eventually(lambda: client.get("/similar/newbrew").status_code == 404, story)
            eventually(story.all_committed, story)
    assert process.returncode == 0, "SIGTERM ends it in order"
    [letter] = story.dead_letters()
    assert letter.message.key == b"no good"


def test_by_prism(kafka: KafkaBroker, prism: Prism, target: str, tmp_path: Path) -> None:
    tell(Story(tmp_path, kafka=kafka, target=target, runner=prism.beam_options(streaming=True)))


def test_by_flink(kafka: KafkaBroker, flink: FlinkCluster, target: str, tmp_path: Path) -> None:
    runner = [*flink.beam_options(parallelism=2, checkpoint_ms=1000), f"--flink_master={flink.rest.url}"]
    story = Story(tmp_path, kafka=kafka, target=target, runner=runner)
    tell(story)
    assert [job.state for job in flink.jobs() if story.topic in job.name] == ["CANCELED"]


def test_on_prism_the_committed_offsets_survive_all_kills(
    startable_prism: None, kafka: KafkaBroker, target: str, tmp_path: Path
) -> None:
    bundle = write_tiny_bundle(tmp_path / "bundle").folder
    with Prism(tmp_path / "prism") as prism:
        runner = prism.beam_options(streaming=True)
        story = Story(tmp_path, kafka=kafka, target=target, runner=runner, bundle=bundle)
        companies = [
            {"id": f"c{number}", "name": "Firm", "description": "Boats, boats, boats."} for number in range(900)
        ]

        first = story.start("--bundle-messages=20")
        story.send(*companies[:300])
        eventually(lambda: story.committed() > 0, story)
        first.kill()  # its workers are in this process
        first.wait()

        second = story.start("--bundle-messages=20")
        before = story.committed()
        story.send(*companies[300:600])
        eventually(lambda: story.committed() > before, story)
        prism.kill()
        assert second.wait(60) != 0, "the job is gone, and the command says so"
        assert "Starting it again is safe" in story.said()

        prism.start()
        with story.streaming():
            story.send(*companies[600:])
            eventually(story.all_committed, story)
    with closing(open_index(target, {})) as index:
        assert index.stats(index.live().name).companies == 900
