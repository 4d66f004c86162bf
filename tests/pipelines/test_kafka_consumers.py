import logging
from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from pipelines.sources.kafka_consumers import (
    COMMIT_AGAIN_SECONDS,
    IDLE_SECONDS,
    Committer,
    ConsumerPool,
    GroupTopic,
)
from pipelines.sources.kafka_reader import KafkaReader, KafkaSource
from similarity.kafka import GroupOffsets, KafkaUnavailable, Record, TopicConsumer
from similarity.kafka.records import SLOTS

pytestmark = pytest.mark.pipelines
ME = "a reader"


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Consumer:
    """One that knows whether it is closed."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


class Offsets:
    """What a broker would keep, and every commit."""

    def __init__(self) -> None:
        self.kept: dict[int, int] = {}
        self.commits: list[dict[int, int]] = []
        self.patience: list[float] = []
        self.away = False

    def committed(self, partitions: Sequence[int]) -> dict[int, int]:
        return {partition: self.kept[partition] for partition in partitions if partition in self.kept}

    def commit(self, offsets: Mapping[int, int], *, patience: float) -> None:
        self.patience.append(patience)
        if self.away:
            raise KafkaUnavailable("Kafka is away")
        self.commits.append(dict(offsets))
        self.kept.update(offsets)


def consumer() -> tuple[TopicConsumer, Consumer]:
    fake = Consumer()
    return cast(TopicConsumer, fake), fake


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def offsets() -> Offsets:
    return Offsets()


@pytest.fixture
def committer(offsets: Offsets, clock: Clock) -> Committer:
    return Committer(cast(GroupOffsets, offsets), clock)


def test_a_reader_keeps_the_order_of_the_changes_of_a_key_within_a_millisecond() -> None:
    reader = KafkaReader(KafkaSource(group_topic=GroupTopic(servers="kafka:9092", topic="companies", group="g")), None)
    times = []
    for offset in (SLOTS - 1, SLOTS):
        reader._take(Record(topic="companies", partition=0, offset=offset, key=b"acme", value=None, timestamp=1_000))
        times.append(reader.get_current().time)
    assert times[0] < times[1]


def test_a_consumer_is_used_by_one_reader_at_a_time(clock: Clock) -> None:
    pool = ConsumerPool(clock)
    one, _ = consumer()
    assert pool.take("topic/0") is None
    pool.give_back("topic/0", one, user=ME)
    assert pool.take("topic/0") is one
    assert pool.take("topic/0") is None


def test_of_two_consumers_for_one_partition_the_last_stays(clock: Clock) -> None:
    pool = ConsumerPool(clock)
    (first, of_first), (second, of_second) = consumer(), consumer()
    pool.give_back("topic/0", first, user="zombie")
    pool.give_back("topic/0", second, user=ME)
    assert (of_first.closed, of_second.closed) == (True, False)
    assert pool.take("topic/0") is second


def test_a_reader_that_is_closed_late_takes_no_consumer_from_the_one_after_it(clock: Clock) -> None:
    pool = ConsumerPool(clock)
    one, of_one = consumer()
    pool.give_back("topic/0", one, user="next reader")
    pool.drop("topic/0", user=ME)
    assert not of_one.closed
    pool.drop("topic/0", user="next reader")
    assert of_one.closed
    assert pool.take("topic/0") is None


def test_a_consumer_that_nobody_takes_any_more_is_closed(clock: Clock) -> None:
    pool = ConsumerPool(clock)
    (moved, of_moved), (used, of_used) = consumer(), consumer()
    pool.give_back("topic/0", moved, user=ME)
    clock.now += IDLE_SECONDS + 1
    pool.give_back("topic/1", used, user=ME)
    assert (of_moved.closed, of_used.closed) == (True, False)


def test_commits_never_go_backwards(committer: Committer, offsets: Offsets) -> None:
    committer.commit({0: 10, 1: 5})
    committer.commit({0: 7, 1: 5})
    committer.commit({0: 11, 1: 4})
    assert offsets.commits == [{0: 10, 1: 5}, {0: 11}]


def test_a_quiet_partition_is_committed_again_before_kafka_forgets_it(
    committer: Committer, offsets: Offsets, clock: Clock
) -> None:
    committer.commit({0: 10})
    clock.now += COMMIT_AGAIN_SECONDS + 1
    committer.commit({0: 9})
    committer.commit({0: 10})
    assert offsets.commits == [{0: 10}, {0: 10}]


def test_an_operator_may_set_the_group_back_between_two_jobs(committer: Committer, offsets: Offsets) -> None:
    committer.commit({0: 10})
    offsets.kept[0] = 3
    assert committer.committed([0, 1]) == {0: 3}
    committer.commit({0: 4})
    assert offsets.kept == {0: 4}


def test_a_commit_that_fails_is_made_good_by_the_next(
    committer: Committer, offsets: Offsets, caplog: pytest.LogCaptureFixture
) -> None:
    offsets.away = True
    with caplog.at_level(logging.WARNING):
        committer.commit({0: 10})
    assert "a later commit covers it" in caplog.text
    offsets.away = False
    committer.commit({0: 10})
    assert offsets.kept == {0: 10}


def test_the_last_commit_of_a_job_waits_longer_for_a_broker_that_is_away(
    committer: Committer, offsets: Offsets
) -> None:
    committer.commit({0: 10})
    committer.commit({0: 11}, last=True)
    [first, last] = offsets.patience
    assert last > 5 * first
