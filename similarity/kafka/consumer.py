"""Reading partitions from given offsets, without group rebalancing: whoever runs readers says who reads what."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from similarity.errors import InvalidInput
from similarity.kafka.client import ANSWER_SECONDS, COMMON, ClientErrors, confluent, made, translated
from similarity.kafka.records import End, KafkaUnavailable, Lost, Record
from similarity.kafka.settings import KafkaSettings

NO_OFFSET = 0  # librdkafka's marks for "none" are negative
NO_GROUP = "similarity-looks"  # the client wants one even to look
CONSUMER = {
    **COMMON,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # An offset that is not there any more is an event, never a jump.
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
    "enable.partition.eof": True,
    # Downstream may be slow, or wait for its store: that is no reason to be thrown out.
    "max.poll.interval.ms": 86_400_000,
    # Of each partition, read ahead; 64 MB by default.
    "queued.max.messages.kbytes": 4_096,
    "queued.min.messages": 2_000,
    "fetch.wait.max.ms": 200,
}
MISSING = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION")


class TopicConsumer:
    """Reads partitions of one topic from given offsets, and knows the bounds of each. Not to be shared between threads.

    Raises:
        InvalidInput: confluent-kafka is missing, a setting cannot be used, or there is no such topic.
        KafkaUnavailable: no broker answers (never by `poll`).
    """

    def __init__(self, settings: KafkaSettings, *, topic: str, group: str) -> None:
        self.topic = topic
        self.positions: dict[int, int] = {}
        """The next offset of each partition that is read."""
        self._partitions: tuple[int, ...] = ()
        self._looked = 0.0
        self._settings = settings
        self._confluent = confluent()
        self._errors = ClientErrors(settings.servers)
        own = {**CONSUMER, "group.id": group, "error_cb": self._errors.on_error}
        self._consumer = made(self._confluent.Consumer, {**settings.client(), **own})

    def partitions(self, *, max_age: float = 0.0) -> tuple[int, ...]:
        """The numbers of the topic's partitions, as they were at most so many seconds ago."""
        if not self._partitions or time.monotonic() - self._looked > max_age:
            self._partitions = self._asked_partitions()
            self._looked = time.monotonic()
        return self._partitions

    def bounds(self, partition: int) -> tuple[int, int]:
        """The first offset that is still there, and the one that will be written next."""
        # Until the client has asked for the topic, a partition that exists is "unknown".
        self.partitions(max_age=ANSWER_SECONDS)
        with self._translated(f"the bounds of {self.topic}/{partition}"):
            where = self._confluent.TopicPartition(self.topic, partition)
            low, high = self._consumer.get_watermark_offsets(where, timeout=ANSWER_SECONDS)
        return low, high

    def read_from(self, offsets: Mapping[int, int]) -> None:
        """Reads these partitions from now on, each from its offset; no others."""
        self.positions = dict(offsets)
        where = [self._confluent.TopicPartition(self.topic, number, offset) for number, offset in offsets.items()]
        with self._translated(f"{self.topic} to read"):
            self._consumer.assign(where)

    def poll(self, seconds: float) -> Record | End | Lost | None:
        """The next record or event; None where there is none in time, also while the broker is away.

        Raises:
            InvalidInput: the login is refused, or the topic is gone.
        """
        polled = self._consumer.poll(seconds)
        self._errors.raise_refusal()
        if polled is None:
            return None
        error = polled.error()
        if error is None:
            self._errors.over()
            self.positions[polled.partition()] = polled.offset() + 1
            return _record(polled)
        if error.name() == "_PARTITION_EOF":
            self._errors.over()
            # Beyond the last record there may be offsets without one: of transactions, or compacted.
            position = max(self.positions[polled.partition()], polled.offset())
            self.positions[polled.partition()] = position
            return End(partition=polled.partition(), offset=position)
        if error.name() in {"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"}:
            return Lost(partition=polled.partition())
        if error.name() in MISSING:
            raise InvalidInput(_no_topic(self.topic, self._settings.servers))
        self._errors.on_error(error)
        self._errors.raise_refusal()
        return None

    def backlog(self, partition: int, position: int) -> int | None:
        """How many offsets are left from here, as of the last answer of the broker; None before it. Asks nobody."""
        where = self._confluent.TopicPartition(self.topic, partition)
        known = self._consumer.get_watermark_offsets(where, cached=True)
        if known is None or known[1] < NO_OFFSET:
            return None
        return max(0, int(known[1]) - position)

    def close(self) -> None:
        """Lets go of the connections. Nothing is committed."""
        self._consumer.close()

    def _asked_partitions(self) -> tuple[int, ...]:
        with self._translated(f"the partitions of {self.topic}"):
            found = self._consumer.list_topics(self.topic, timeout=ANSWER_SECONDS).topics[self.topic]
            if found.error is not None and found.error.name() not in MISSING:
                raise self._confluent.KafkaException(found.error)
        if found.error is not None or not found.partitions:
            raise InvalidInput(_no_topic(self.topic, self._settings.servers))
        return tuple(sorted(found.partitions))

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            with translated(self._confluent, self._settings.servers, what):
                yield
        except KafkaUnavailable:
            self._partitions = ()
            # A refused login looks like a broker that does not answer; what is really wrong is told beside it.
            self._consumer.poll(0)
            self._errors.raise_refusal()
            raise


def topic_partitions(settings: KafkaSettings, topic: str) -> tuple[int, ...]:
    """The partitions of a topic, asked for before a job starts, so that what is wrong is said where one sees it.

    Raises:
        InvalidInput: there is no such topic, or the login is refused.
        KafkaUnavailable: no broker answers.
    """
    with closing(TopicConsumer(settings, topic=topic, group=NO_GROUP)) as consumer:
        return consumer.partitions()


def _record(polled: Any) -> Record:
    kind, timestamp = polled.timestamp()
    return Record(
        topic=polled.topic(),
        partition=polled.partition(),
        offset=polled.offset(),
        key=polled.key(),
        value=polled.value(),
        timestamp=timestamp if kind and timestamp >= 0 else None,
    )


def _no_topic(topic: str, servers: str) -> str:
    return f"there is no topic {topic!r} at {servers}; create it (its partitions are the most workers that can read it)"
