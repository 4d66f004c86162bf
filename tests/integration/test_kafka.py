"""The broker that tests start, and similarity.kafka on it."""

import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from similarity.errors import InvalidInput
from similarity.kafka import (
    End,
    GroupOffsets,
    KafkaSettings,
    KafkaUnavailable,
    KeyedProducer,
    Lost,
    NotDelivered,
    Record,
    TopicConsumer,
    group_positions,
    topic_partitions,
)
from tests.servers.kafka import KafkaBroker
from tests.servers.ports import free_ports
from tests.servers.program import NotReady

pytestmark = pytest.mark.integration

GROUP = "tests"


@pytest.fixture(scope="module")
def settings(kafka: KafkaBroker) -> KafkaSettings:
    return KafkaSettings(servers=kafka.servers)


@pytest.fixture
def topic(settings: KafkaSettings) -> str:
    """Two partitions."""
    return made_topic(settings)


def made_topic(settings: KafkaSettings, **configuration: str) -> str:
    # Imported here, because "make test" collects this file without the client being installed.
    from confluent_kafka.admin import AdminClient, NewTopic

    name = f"companies-{uuid.uuid4().hex}"
    admin = AdminClient({**settings.client(), "log_level": 2})
    admin.create_topics([NewTopic(name, 2, 1, config=configuration)])[name].result()
    return name


@pytest.fixture
def nobody() -> KafkaSettings:
    """An address where no broker listens."""
    [port] = free_ports(1)
    return KafkaSettings(servers=f"127.0.0.1:{port}")


def events(consumer: TopicConsumer, wanted: type, count: int = 1) -> list[Any]:
    found: list[Any] = []
    for _ in range(200):
        event = consumer.poll(0.2)
        found += [event] if isinstance(event, wanted) else []
        if len(found) == count:
            return found
    raise AssertionError(f"{len(found)} of {count} came")


def test_what_is_produced_is_read_back_in_order_of_its_key(settings: KafkaSettings, topic: str) -> None:
    with KeyedProducer(settings) as producer:
        for number in range(50):
            producer.send(topic, key=b"acme", value=str(number).encode())
        producer.send(topic, key=b"acme", value=None)
    consumer = TopicConsumer(settings, topic=topic, group=GROUP)
    assert consumer.partitions() == (0, 1)
    consumer.read_from({0: 0, 1: 0})
    records = events(consumer, Record, 51)
    assert [record.value for record in records] == [*(str(number).encode() for number in range(50)), None]
    assert {record.key for record in records} == {b"acme"}
    [partition] = {record.partition for record in records}
    assert consumer.bounds(partition) == (0, 51)
    assert (consumer.backlog(partition, 51), consumer.backlog(partition, 40)) == (0, 11)
    consumer.close()


def test_the_end_of_a_partition_is_an_event(settings: KafkaSettings, topic: str) -> None:
    consumer = TopicConsumer(settings, topic=topic, group=GROUP)
    consumer.read_from({1: 0})
    assert events(consumer, End) == [End(partition=1, offset=0)]
    consumer.close()


def test_an_offset_that_is_not_there_is_an_event_and_never_a_jump(settings: KafkaSettings, topic: str) -> None:
    consumer = TopicConsumer(settings, topic=topic, group=GROUP)
    consumer.read_from({0: 99})
    assert events(consumer, Lost) == [Lost(partition=0)]
    assert consumer.poll(0.5) is None
    consumer.close()


def test_a_group_keeps_how_far_it_came(settings: KafkaSettings, topic: str) -> None:
    offsets = GroupOffsets(settings, topic=topic, group=GROUP)
    assert offsets.committed([0, 1]) == {}
    offsets.commit({1: 3})
    offsets.commit({1: 4})
    assert offsets.committed([0, 1]) == {1: 4}
    assert [position.committed for position in group_positions(settings, topic=topic, group=GROUP)] == [0, 4]
    offsets.close()


def test_what_no_broker_takes_is_named(settings: KafkaSettings) -> None:
    topic = made_topic(settings, **{"max.message.bytes": "1000"})
    producer = KeyedProducer(settings, timeout=20)
    producer.send(topic, key=b"small", value=b"v")
    producer.send(topic, key=b"large", value=os.urandom(5_000))
    producer.send(topic, key=b"huge", value=os.urandom(5_000_000))
    with pytest.raises(NotDelivered, match="did not accept 2 messages") as error:
        producer.flush()
    assert set(error.value.keys) == {b"large", b"huge"}
    producer.flush()


def test_without_a_broker_nothing_is_delivered_and_that_is_said(nobody: KafkaSettings) -> None:
    producer = KeyedProducer(nobody, timeout=1)
    producer.send("companies", key=b"acme", value=b"v")
    with pytest.raises(NotDelivered) as error:
        producer.flush()
    assert error.value.keys == (b"acme",)


def test_a_missing_topic_is_named_and_not_made(settings: KafkaSettings) -> None:
    for _ in range(2):
        with pytest.raises(InvalidInput, match="there is no topic 'no-such'"):
            topic_partitions(settings, "no-such")


def test_a_broker_that_is_not_there_is_named(nobody: KafkaSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("similarity.kafka.consumer.ANSWER_SECONDS", 1.0)
    with pytest.raises(KafkaUnavailable, match=nobody.servers):
        topic_partitions(nobody, "companies")
    offsets = GroupOffsets(nobody, topic="companies", group=GROUP)
    with pytest.raises(KafkaUnavailable, match="does not give the offsets of group tests"):
        offsets.committed([0])
    with pytest.raises(KafkaUnavailable, match="no answer"):
        offsets.commit({0: 1}, patience=0.5)


def test_a_login_that_is_refused_is_said(startable_kafka: None, tmp_path: Path) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    # All clients must log in; the broker talks to itself over a second listener.
    [inner] = free_ports(1)
    broker = KafkaBroker(tmp_path / "secured")
    own = f"PLAINTEXT://{broker.servers}"
    broker.configure(
        {
            "listeners": broker.listeners.replace(own, f"SASL_PLAINTEXT://{broker.servers},INNER://127.0.0.1:{inner}"),
            "listener.security.protocol.map": (
                "CONTROLLER:PLAINTEXT,INNER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT"
            ),
            "inter.broker.listener.name": "INNER",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{module} required user_me="right";',
        }
    )
    with broker:
        right = KafkaSettings(servers=broker.servers, username="me", password="right", mechanism="PLAIN", tls=False)
        topic = made_topic(right)
        assert topic_partitions(right, topic) == (0, 1)
        wrong = KafkaSettings(servers=broker.servers, username="me", password="wr0ng", mechanism="PLAIN", tls=False)
        with pytest.raises(InvalidInput, match="refuses") as refused:
            topic_partitions(wrong, topic)
        assert "wr0ng" not in str(refused.value)


def test_what_was_acknowledged_is_there_after_a_crash_and_a_pause(startable_kafka: None, tmp_path: Path) -> None:
    with KafkaBroker(tmp_path / "crashing") as broker:
        settings = KafkaSettings(servers=broker.servers)
        topic = made_topic(settings)
        with KeyedProducer(settings) as producer:
            producer.send(topic, key=b"acme", value=b"v")
        before = broker.pid
        broker.kill()
        assert not broker.running
        broker.start()
        assert broker.pid != before
        broker.pause()
        broker.resume()
        broker.stop()
        broker.start()
        assert sum(position.lag for position in group_positions(settings, topic=topic, group=GROUP)) == 1


def test_a_broker_that_cannot_start_says_why(startable_kafka: None, tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path / "bad", settings={"node.id": "no number"})
    with pytest.raises(NotReady, match="Invalid value no number"), broker:
        pass
    assert not broker.running
