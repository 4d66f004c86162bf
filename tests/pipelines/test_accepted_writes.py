"""What the service accepts in Kafka mode: through a real Kafka and the stream, to the end of its status."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from pipelines.stream import main
from services.search.writes.write_service import WriteMode
from services.search.writes.write_setup import KafkaTopic, set_up_writing
from similarity.company import utc_now
from similarity.encoder import TextEncoder
from similarity.index.sqlite import SqliteIndex
from tests.pipelines.test_kafka_source import Topic
from tests.servers.kafka import KafkaBroker
from tests.services.search.writers import NOON, client_of, direct_writing, put
from tests.tiny_bundle import write_tiny_bundle

pytestmark = [pytest.mark.pipelines, pytest.mark.integration]


def outcome(client: TestClient, accepted: Any) -> str:
    """What the status of an accepted write says."""
    assert accepted.status_code == 202, accepted.text
    return str(client.get(accepted.headers["location"]).json()["outcome"])


def write_with_a_clock_a_day_ahead(index: SqliteIndex, tmp_path: Path) -> int:
    """Stores a company through a service whose clock is wrong; returns the version."""
    bundle = write_tiny_bundle(tmp_path / "again")
    writing = direct_writing(index, {bundle.encoder_id: TextEncoder(bundle, threads=1)})
    ahead = replace(writing.writes, clock=lambda: utc_now() + timedelta(days=1))
    answer = put(client_of(replace(writing, writes=ahead)), description="anvils")
    writing.writes.close()
    assert answer.json()["outcome"] == "applied"
    return int(answer.json()["version"])


def test_accepted_writes_end_as_applied_or_superseded(
    kafka: KafkaBroker, index: SqliteIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = Topic(kafka.servers)
    monkeypatch.setenv("SIMILARITY_KAFKA_SERVERS", kafka.servers)
    dead = tmp_path / "dead"
    command = f"--kafka-topic {topic.name} --once --index {index.path} --dead-letters {dead} --threads 1"
    live = index.live().name
    frozen = write_with_a_clock_a_day_ahead(index, tmp_path)
    place = KafkaTopic(settings=topic.settings, topic=topic.name)
    writing = set_up_writing(WriteMode.KAFKA, index=index, encoders={}, kafka=place)
    client = client_of(writing)

    written = put(client, description="boats")
    timed = put(client, description="cars", event_time=NOON.isoformat())
    other = put(client, "other", description="cars", event_time=NOON.isoformat())
    assert [outcome(client, each) for each in (written, timed, other)] == ["accepted", "superseded", "accepted"]
    main(command.split())
    assert [outcome(client, each) for each in (written, timed, other)] == ["applied", "superseded", "applied"]
    assert written.json()["version"] == frozen + 2
    assert index.get(live, ["acme"])["acme"].company.description == "boats"

    deleted, back = client.delete("/companies/acme"), put(client, "other", description="boats")
    assert [outcome(client, each) for each in (deleted, back)] == ["accepted", "accepted"]
    main(command.split())
    assert [outcome(client, each) for each in (written, deleted, back)] == ["superseded", "applied", "applied"]
    assert list(index.get(live, ["acme", "other"])) == ["other"]
    assert list(dead.glob("*")) == []
    writing.writes.close()
