"""Where no broker answers, writes fail and the log has one line about it."""

import pytest

from services.search.writes.destinations import KafkaDestination
from services.search.writes.write_schemas import Outcome
from similarity.company import DeletedCompany
from similarity.index.sqlite import SqliteIndex
from similarity.kafka import KafkaSettings, KeyedProducer
from tests.services.search.serving import free_port


def test_an_absent_broker_is_one_line(read_only_index: SqliteIndex, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("confluent_kafka")
    settings = KafkaSettings(servers=f"127.0.0.1:{free_port()}")
    destination = KafkaDestination(lambda: KeyedProducer(settings, timeout=0.5), "companies", read_only_index)
    with destination.opened() as commit:
        for version in (1, 3):
            [written] = commit([DeletedCompany(id="acme", version=version)])
            assert written.outcome is Outcome.FAILED
    [line] = caplog.records
    assert line.getMessage() == "Kafka is away: it did not acknowledge messages in time"
    assert line.exc_info is None
