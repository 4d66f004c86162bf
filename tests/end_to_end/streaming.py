"""A topic, an index, and `python -m pipelines.stream` between them, as a user runs it."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from similarity.ingest.dead_letters import DeadLetter
from similarity.kafka import KafkaSettings, KafkaUnavailable, KeyedProducer, group_positions
from similarity.kafka.records import GroupPosition
from tests.servers.connection import Connection
from tests.servers.kafka import KafkaBroker

ROOT = Path(__file__).parents[2]
GROUP = "story"
SECONDS_TO_APPEAR = 300.0
SECONDS_TO_STOP = 180.0


class Story:
    """A topic of two partitions, an index and a stream between them."""

    def __init__(
        self, folder: Path, *, kafka: KafkaBroker, target: str, runner: Sequence[str], bundle: Path | None = None
    ) -> None:
        """`bundle`: of the index, which is new; without it that which ships with the code."""
        self.folder = folder
        self.topic = f"companies-{secrets.token_hex(4)}"
        self.target = target
        self.settings = KafkaSettings(servers=kafka.servers)
        create_topic(kafka, self.topic)
        self._runner = runner
        self._bundle = bundle

    @contextmanager
    def streaming(self, *more: str) -> Iterator[subprocess.Popen[bytes]]:
        """The command, with more options, until the block ends: with SIGTERM, as an operator ends it."""
        process = self.start(*more)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        """The command; whoever starts it ends it."""
        folder = self.folder
        fixed = f"--kafka-topic {self.topic} --kafka-group {GROUP} --index {self.target} --bundles {folder}/bundles"
        command = [sys.executable, "-m", "pipelines.stream", *fixed.split(), f"--dead-letters={folder}/dead"]
        given = {"SIMILARITY_KAFKA_SERVERS": self.settings.servers, "PYTHONPATH": str(ROOT)}
        if self._bundle:
            given["SIMILARITY_BUNDLE"] = str(self._bundle)
        with (folder / "stream.log").open("ab") as log:
            return subprocess.Popen(
                [*command, "--threads=1", *self._runner, *more],
                cwd=folder,
                env={**os.environ, **given},
                stdout=log,
                stderr=log,
            )

    def send(self, *records: Mapping[str, Any]) -> None:
        """Puts records on the topic; one of None as its description deletes the company."""
        with KeyedProducer(self.settings) as producer:
            for record in records:
                send(producer, self.topic, record)

    def positions(self) -> Sequence[GroupPosition]:
        """How far the group has come; nothing while Kafka is away."""
        try:
            return group_positions(self.settings, topic=self.topic, group=GROUP)
        except KafkaUnavailable:  # also while it looks for the group's coordinator, the first time
            return ()

    def committed(self) -> int:
        """How many messages are settled."""
        return sum(position.committed for position in self.positions())

    def all_committed(self) -> bool:
        """Whether every message is settled: in the index, or among the dead letters."""
        positions = self.positions()
        return bool(positions) and all(position.lag == 0 for position in positions)

    def dead_letters(self) -> list[DeadLetter]:
        """What could not be taken; one that was tried again may be there twice."""
        files = sorted((self.folder / "dead").glob("*.jsonl"))
        return [DeadLetter.from_line(line) for file in files for line in file.read_text().splitlines()]

    def said(self) -> str:
        """The log of the command."""
        return (self.folder / "stream.log").read_text(errors="replace")


def send(producer: KeyedProducer, topic: str, record: Mapping[str, Any]) -> None:
    """Puts a record on its way; one of None as its description deletes the company."""
    deleted = record.get("description") is None
    producer.send(topic, key=record["id"].encode(), value=None if deleted else json.dumps(record).encode())


def create_topic(kafka: KafkaBroker, name: str) -> None:
    """A topic of two partitions."""
    from confluent_kafka.admin import AdminClient, NewTopic  # only where there is a broker to ask

    client = AdminClient({"bootstrap.servers": kafka.servers})
    [created] = client.create_topics([NewTopic(name, 2, 1)]).values()
    created.result(30)


def eventually(condition: Callable[[], bool], story: Story, *, seconds: float = SECONDS_TO_APPEAR) -> float:
    """Waits until it is so; returns how many seconds that took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + seconds, story.said()[-4000:]
        time.sleep(0.25)
    return time.monotonic() - began


@contextmanager
def index_on(connection: Connection) -> Iterator[str]:
    """Where a new index may be: http://HOST:PORT/NAME. Whatever was made there is removed."""
    from elasticsearch import Elasticsearch  # only where there is one to ask

    name = f"stream-{secrets.token_hex(4)}"
    yield f"{','.join(connection.urls).replace(',http://', ',')}/{name}"
    with closing(Elasticsearch(**connection.client_arguments())) as client:
        if indices := list(client.indices.get(index=f"{name}-*", filter_path="*.aliases")):
            client.indices.delete(index=indices)
