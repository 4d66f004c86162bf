"""ReadKafka and its reader on a real broker."""

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.metrics import MetricsFilter
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp

from pipelines.options import Source
from pipelines.sources.kafka import ReadKafka
from pipelines.sources.kafka_consumers import GroupTopic, consumer_pool
from pipelines.sources.kafka_reader import KafkaMark, KafkaReader, KafkaSource, OffsetsLost
from pipelines.stream import topic_progress
from pipelines.watch import Progress
from similarity.errors import InvalidInput
from similarity.ingest.messages import Message
from similarity.kafka import GroupOffsets, KafkaSettings, KeyedProducer, group_positions
from tests.servers.kafka import KafkaBroker

pytestmark = [pytest.mark.pipelines, pytest.mark.integration]

GROUP = "tests"


class Topic:
    """A topic of one test."""

    def __init__(self, servers: str, *, partitions: int = 3, **settings: str) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        self.name = f"companies-{uuid.uuid4().hex}"
        self.settings = KafkaSettings(servers=servers)
        self.group_topic = GroupTopic(servers=servers, topic=self.name, group=GROUP)
        self.admin = AdminClient({**self.settings.client(), "log_level": 2})
        self.admin.create_topics([NewTopic(self.name, partitions, 1, config=settings)])[self.name].result()

    def send(self, *keys: str) -> None:
        with KeyedProducer(self.settings) as producer:
            for key in keys:
                producer.send(self.name, key=key.encode(), value=f"about {key}".encode())

    def read(self, **options: Any) -> ReadKafka:
        options = {"topic": self.name, "group": GROUP, "until_end": True, **options}
        return ReadKafka(self.settings, **options)

    def source(self, **how: Any) -> KafkaSource:
        return KafkaSource(group_topic=self.group_topic, **how)

    def delete_before(self, offset: int, partition: int = 0) -> None:
        from confluent_kafka import TopicPartition

        where = TopicPartition(self.name, partition, offset)
        self.admin.delete_records([where])[where].result()

    def committed(self) -> dict[int, int]:
        return GroupOffsets(self.settings, topic=self.name, group=GROUP).committed([0, 1, 2])

    @property
    def lag(self) -> int:
        return sum(position.lag for position in group_positions(self.settings, topic=self.name, group=GROUP))


@pytest.fixture
def topic(kafka: KafkaBroker) -> Topic:
    """Three partitions."""
    return Topic(kafka.servers)


@pytest.fixture
def single(kafka: KafkaBroker) -> Topic:
    """One partition."""
    return Topic(kafka.servers, partitions=1)


@pytest.fixture(autouse=True)
def no_consumer_is_left(kafka: KafkaBroker) -> Iterator[None]:
    yield
    for kept in list(consumer_pool()._kept.values()):
        kept.consumer.close()
    consumer_pool()._kept.clear()


def names(count: int, prefix: str = "c") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def keys_of(messages: "beam.PCollection[Message]") -> "beam.PCollection[str]":
    return messages | beam.Map(lambda message: message.key.decode())


def run(read: ReadKafka, expected: list[str]) -> Any:
    pipeline = beam.Pipeline(runner="FnApiRunner")
    assert_that(keys_of(pipeline | read), equal_to(expected))
    result = pipeline.run()
    result.wait_until_finish()
    return result


def drain(reader: KafkaReader, count: int, seconds: float = 30) -> list[Message]:
    """The next so many messages, and no more within a moment."""
    deadline = time.monotonic() + seconds
    found: list[Message] = []
    while len(found) < count and time.monotonic() < deadline:
        if reader.advance():
            found.append(reader.get_current())
    if reader.advance():
        found.append(reader.get_current())
    return found


def keys(messages: list[Message]) -> list[str]:
    return [(message.key or b"").decode() for message in messages]


def test_a_job_reads_to_the_end_of_all_partitions_and_commits(topic: Topic) -> None:
    topic.send(*names(300))
    run(topic.read(max_messages=40), names(300))
    assert sum(topic.committed().values()) == 300
    assert len(topic.committed()) == 3
    assert topic.lag == 0


def test_the_next_job_reads_only_what_is_new(topic: Topic) -> None:
    topic.send(*names(20))
    run(topic.read(), names(20))
    topic.send(*names(7, "new"))
    assert topic.lag == 7
    run(topic.read(), names(7, "new"))
    run(topic.read(), [])


def fail_at(key: str) -> Callable[[Message], Message]:
    def failing(message: Message) -> Message:
        if message.key == key.encode():
            raise RuntimeError("the bundle fails")
        return message

    return failing


def test_what_a_failed_bundle_read_is_read_again(single: Topic) -> None:
    single.send(*names(30))
    with pytest.raises(Exception, match="the bundle fails"), beam.Pipeline(runner="FnApiRunner") as pipeline:
        _ = pipeline | single.read(max_messages=10) | beam.Map(fail_at("c15"))
    assert single.committed() == {0: 10}
    run(single.read(), names(30)[10:])


def test_the_lag_of_each_partition_is_a_gauge(single: Topic) -> None:
    single.send(*names(30))
    result = run(single.read(max_messages=30), names(30))
    gauges = result.metrics().query(MetricsFilter().with_name("lag_messages_0"))["gauges"]
    assert [gauge.result.value for gauge in gauges] == [0]


def test_a_missing_topic_is_named(kafka: KafkaBroker) -> None:
    read = ReadKafka(KafkaSettings(servers=kafka.servers), topic="no-such", group=GROUP, until_end=True)
    with pytest.raises(Exception, match="there is no topic 'no-such' at 127"), beam.Pipeline(runner="FnApiRunner") as p:
        _ = p | read


def test_a_message_has_its_place_its_time_and_its_bytes(single: Topic) -> None:
    with KeyedProducer(single.settings) as producer:
        producer.send(single.name, key=b"\xff", value=None)
    before = datetime.now(UTC)
    reader = single.source().create_reader(None, None)
    [message] = drain(reader, 1)
    assert (message.position, message.key, message.value) == (f"kafka:{single.name}/0/0", b"\xff", None)
    assert abs((message.time - before).total_seconds()) < 60
    reader.close()


def test_a_reader_goes_on_after_its_mark_whatever_is_committed(single: Topic) -> None:
    single.send(*names(5))
    source = single.source()
    first = source.create_reader(None, None)
    assert keys(drain(first, 5)) == names(5)
    mark = first.get_checkpoint_mark()
    coder = source.get_checkpoint_mark_coder()
    assert coder.decode(coder.encode(mark)) == mark
    first.close()
    single.send("c5")
    second = source.create_reader(None, coder.decode(coder.encode(mark)))
    assert keys(drain(second, 1)) == ["c5"]
    assert single.committed() == {}
    mark.finalize_checkpoint()
    mark.finalize_checkpoint()
    assert single.committed() == {0: 5}
    second.close()


def test_a_parked_reader_goes_on_with_its_consumer(single: Topic) -> None:
    single.send("a")
    reader = single.source().create_reader(None, None)
    drain(reader, 1)
    assert reader._consumer is not None
    consumer = reader._consumer
    reader.get_checkpoint_mark()
    single.send("b")
    assert keys(drain(reader, 1)) == ["b"]
    assert reader._consumer is consumer
    reader.close()


def test_a_topic_is_split_by_partition_as_far_as_wanted(topic: Topic) -> None:
    assert [part.partitions for part in topic.source().split(20)] == [(0,), (1,), (2,)]
    assert [part.partitions for part in topic.source().split(2)] == [(0, 2), (1,)]
    [part, *_] = topic.source().split(20)
    assert list(part.split(20)) == [part]


def test_partitions_that_are_added_are_found_and_read_from_their_beginning(
    single: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    from confluent_kafka.admin import NewPartitions

    monkeypatch.setattr("pipelines.sources.kafka_reader.NEW_PARTITIONS_SECONDS", 0.0)
    [source] = single.source(start="latest").split(20)
    reader = source.create_reader(None, None)
    assert drain(reader, 0) == []
    reader.get_checkpoint_mark()
    single.admin.create_partitions([NewPartitions(single.name, 3)])[single.name].result()
    single.send(*names(20))
    assert sorted(keys(drain(reader, 20))) == sorted(names(20))
    assert set(reader.get_checkpoint_mark().positions) == {0, 1, 2}
    reader.close()


def test_reading_may_start_with_what_comes_from_now_on(single: Topic) -> None:
    single.send("old")
    reader = single.source(start="latest").create_reader(None, None)
    assert drain(reader, 0) == []
    mark = reader.get_checkpoint_mark()
    mark.finalize_checkpoint()
    assert single.committed() == {0: 1}, "a job that starts again before the first message skips nothing"
    reader.close()


def test_offsets_without_a_record_are_no_reason_to_wait(single: Topic) -> None:
    from confluent_kafka import Producer

    producer = Producer({**single.settings.client(), "transactional.id": single.name})
    producer.init_transactions()
    for key, keep in (("kept", True), ("aborted", False)):
        producer.begin_transaction()
        producer.produce(single.name, key=key, value=b"v")
        producer.flush()
        _ = producer.commit_transaction() if keep else producer.abort_transaction()
    run(single.read(), ["kept"])
    # A record and the end of each transaction.
    assert single.committed() == {0: 4}
    assert single.lag == 0


def test_the_end_is_the_one_that_was_there_when_reading_began(single: Topic) -> None:
    single.send(*names(3))
    reader = single.source(until_end=True).create_reader(None, None)
    assert reader.start()
    single.send("late")
    mark = reader.get_checkpoint_mark()
    again = single.source(until_end=True).create_reader(None, mark)
    assert keys(drain(again, 2)) == names(3)[1:]
    assert again.get_watermark() == MAX_TIMESTAMP
    assert again.get_checkpoint_mark().positions == {0: 3}
    again.close()
    reader.close()


def test_a_reader_of_several_partitions_ends_where_each_ended(topic: Topic) -> None:
    topic.send(*names(60))
    reader = topic.source(until_end=True).create_reader(None, None)
    assert reader.start()
    first = reader.get_current()
    topic.send(*names(60, "late"))
    assert sorted(keys([first, *drain(reader, 59)])) == sorted(names(60))
    assert reader.get_watermark() == MAX_TIMESTAMP
    mark = reader.get_checkpoint_mark()
    assert mark.positions == mark.ends
    reader.close()


def test_the_watermark_follows_the_messages_and_then_the_clock(single: Topic) -> None:
    single.send("a")
    reader = single.source().create_reader(None, None)
    assert reader.get_watermark() == MIN_TIMESTAMP
    assert reader.start()
    assert reader.get_watermark() == reader.get_current_timestamp()
    of_message = reader.get_current_timestamp()
    deadline = time.monotonic() + 30
    while reader.get_watermark() == of_message and time.monotonic() < deadline:
        assert not reader.advance()
    assert 9 < Timestamp.now() - reader.get_watermark() < 40
    reader.close()


@pytest.mark.parametrize("marked", [False, True])
def test_messages_that_retention_took_before_they_were_read_stop_the_job(single: Topic, marked: bool) -> None:
    single.send(*names(10))
    mark = KafkaMark(group_topic=single.group_topic, positions={0: 2}, ends={})
    if not marked:
        mark.finalize_checkpoint()
    single.delete_before(6)
    reader = single.source().create_reader(None, mark if marked else None)
    with pytest.raises(OffsetsLost, match=r"has read up to 2, but the 4 offsets before 6 were deleted"):
        drain(reader, 1)
    reader.close()


def test_a_job_goes_on_with_what_is_left_if_it_is_told_to(single: Topic) -> None:
    single.send(*names(10))
    KafkaMark(group_topic=single.group_topic, positions={0: 2}, ends={}).finalize_checkpoint()
    single.delete_before(6)
    result = run(single.read(on_lost="earliest"), names(10)[6:])
    counters = result.metrics().query(MetricsFilter().with_name("lost_offsets"))["counters"]
    assert [counter.result for counter in counters] == [4]
    assert single.committed() == {0: 10}


def test_a_topic_that_was_deleted_and_created_again_is_noticed(single: Topic) -> None:
    single.send(*names(3))
    GroupOffsets(single.settings, topic=single.name, group=GROUP).commit({0: 50})
    with pytest.raises(OffsetsLost, match="the topic ends at 3: it was deleted and created again"):
        single.source().create_reader(None, None).start()
    run(single.read(on_lost="earliest"), names(3))
    assert single.committed() == {0: 3}


def test_a_group_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="needs the name of a topic and of a group"):
        ReadKafka(KafkaSettings(), topic="companies", group="")


def test_a_password_does_not_travel_with_the_job() -> None:
    import pickle

    settings = KafkaSettings(username="me", password="s3cret")
    read = ReadKafka(settings, topic="companies", group=GROUP)
    assert b"s3cret" not in pickle.dumps(read._source)


def hold_at(key: str, asked: Path, done: Path) -> Callable[[Message], Message]:
    def holding(message: Message) -> Message:
        if message.key == key.encode():
            asked.touch()
            wait_for(done)
        return message

    return holding


def wait_for(file: Path, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert file.exists()


def test_a_job_survives_a_crash_of_the_broker(startable_kafka: None, tmp_path: Path) -> None:
    asked, done = tmp_path / "asked", tmp_path / "done"
    with KafkaBroker(tmp_path / "crashing") as broker:
        topic = Topic(broker.servers)
        topic.send(*names(200))

        def crash() -> None:
            wait_for(asked)
            broker.kill()
            done.touch()
            time.sleep(2)
            broker.start()

        with ThreadPoolExecutor() as others:
            crashed = others.submit(crash)
            with beam.Pipeline(runner="FnApiRunner") as pipeline:
                passed = pipeline | topic.read(max_messages=20) | "Hold" >> beam.Map(hold_at("c77", asked, done))
                assert_that(keys_of(passed), equal_to(names(200)))
            crashed.result()
        # What could not be committed while the broker was away was committed by later bundles.
        assert sum(topic.committed().values()) == 200


def test_a_reader_waits_for_a_broker_that_is_away(
    startable_kafka: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with KafkaBroker(tmp_path / "away") as broker:
        topic = Topic(broker.servers, partitions=1)
        topic.send("a")
        reader = topic.source().create_reader(None, None)
        assert keys(drain(reader, 1)) == ["a"]
        broker.kill()
        for _ in range(8):
            assert not reader.advance()
            reader.get_checkpoint_mark()
        assert caplog.text.count("is away") == 1
        broker.start()
        topic.send("b")
        assert keys(drain(reader, 1)) == ["b"]
        assert "is back" in caplog.text
        reader.close()


def test_the_progress_of_a_topic_is_its_committed_offsets_and_its_lag(topic: Topic) -> None:
    source, environ = Source(topic=topic.name, group=GROUP), {"SIMILARITY_KAFKA_SERVERS": topic.settings.servers}
    topic.send(*names(5))
    assert topic_progress(source, environ) == Progress(acknowledged=0, backlog=5)
    run(topic.read(), names(5))
    assert topic_progress(source, environ) == Progress(acknowledged=5, backlog=0)
