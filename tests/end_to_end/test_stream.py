"""A message to a real Kafka becomes an answer of the service: by Prism and by Flink, from a real Elasticsearch."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from elasticsearch import Elasticsearch
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.dead_letters import DeadLetter
from similarity.index.opening import open_index
from similarity.kafka import KafkaSettings, KafkaUnavailable, KeyedProducer, group_positions
from tests.servers.connection import Connection
from tests.servers.flink import FlinkCluster
from tests.servers.kafka import KafkaBroker
from tests.servers.prism import Prism

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "data" / "sample" / "companies.jsonl"
SECONDS_TO_APPEAR = 300.0


class Story:
    """A topic, an index and a stream between them."""

    def __init__(self, folder: Path, *, kafka: KafkaBroker, target: str, runner: Sequence[str]) -> None:
        self.folder = folder
        self.topic = f"companies-{secrets.token_hex(4)}"
        self.target = target
        self.settings = KafkaSettings(servers=kafka.servers)
        create_topic(kafka, self.topic)
        self._kafka = kafka
        self._runner = runner

    @contextmanager
    def streaming(self) -> Iterator[subprocess.Popen[bytes]]:
        """The command as a user runs it, until the block ends: with SIGTERM, as an operator ends it."""
        folder = self.folder
        fixed = f"--kafka-topic {self.topic} --kafka-group story --index {self.target} --bundles {folder}/bundles"
        command = [sys.executable, "-m", "pipelines.stream", *fixed.split(), f"--dead-letters={folder}/dead"]
        environment = {**os.environ, "SIMILARITY_KAFKA_SERVERS": self._kafka.servers, "PYTHONPATH": str(ROOT)}
        with (folder / "stream.log").open("ab") as log:
            process = subprocess.Popen(
                [*command, "--threads=1", *self._runner], cwd=folder, env=environment, stdout=log, stderr=log
            )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def send(self, *records: dict[str, Any]) -> None:
        """Puts records on the topic; one of None as its description deletes the company."""
        with KeyedProducer(self.settings) as producer:
            for record in records:
                deleted = record.get("description") is None
                value = None if deleted else json.dumps(record).encode()
                producer.send(self.topic, key=record["id"].encode(), value=value)

    def all_committed(self) -> bool:
        """Whether every message is settled: in the index, or among the dead letters."""
        try:
            positions = group_positions(self.settings, topic=self.topic, group="story")
        except KafkaUnavailable:  # it looks for the group's coordinator, the first time
            return False
        return all(position.lag == 0 for position in positions)

    def said(self) -> str:
        """The log of the command."""
        return (self.folder / "stream.log").read_text(errors="replace")


def create_topic(kafka: KafkaBroker, name: str) -> None:
    client = AdminClient({"bootstrap.servers": kafka.servers})
    [created] = client.create_topics([NewTopic(name, 2, 1)]).values()
    created.result(30)


def eventually(condition: Callable[[], bool], story: Story, *, seconds: float = SECONDS_TO_APPEAR) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, story.said()[-4000:]
        time.sleep(0.25)


@pytest.fixture
def target(elasticsearch_connection: Connection) -> Iterator[str]:
    """Where the index is: http://HOST:PORT/NAME. Whatever was made there is removed."""
    name = f"stream-{secrets.token_hex(4)}"
    yield f"{','.join(elasticsearch_connection.urls).replace(',http://', ',')}/{name}"
    with closing(Elasticsearch(**elasticsearch_connection.client_arguments())) as client:
        if indices := list(client.indices.get(index=f"{name}-*", filter_path="*.aliases")):
            client.indices.delete(index=indices)


def tell(story: Story) -> None:
    """The whole story: the sample streams in, a new company is found, a text changes, one is deleted, one is poison."""
    sample = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    with story.streaming():
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
    [letter] = [
        DeadLetter.from_line(line)
        for file in (story.folder / "dead").glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    assert letter.message.key == b"no good"


def test_by_prism(kafka: KafkaBroker, prism: Prism, target: str, tmp_path: Path) -> None:
    tell(Story(tmp_path, kafka=kafka, target=target, runner=prism.beam_options(streaming=True)))


def test_by_flink(kafka: KafkaBroker, flink: FlinkCluster, target: str, tmp_path: Path) -> None:
    runner = [*flink.beam_options(parallelism=2, checkpoint_ms=1000), "--streaming"]
    tell(Story(tmp_path, kafka=kafka, target=target, runner=runner))
