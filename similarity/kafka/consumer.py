"""Consumes given partitions from given offsets (group rebalancing is not used), and commits the offsets of a group."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from similarity.errors import InvalidInput
from similarity.kafka.client import (
    ANSWER_SECONDS,
    COMMON,
    LOGIN_ERRORS,
    ClientErrors,
    confluent,
    convert_errors,
    create_client,
)
from similarity.kafka.records import End, GroupPosition, KafkaUnavailable, Lost, Record
from similarity.kafka.settings import KafkaSettings

FIRST_VALID_OFFSET = 0  # librdkafka returns negative offsets for "no offset"
METADATA_GROUP = "similarity-looks"  # the client requires a group id even for metadata requests
CONSUMER = {
    **COMMON,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # If an offset no longer exists, `poll` returns `Lost`; the position is never reset silently.
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
    "enable.partition.eof": True,
    # Processing may be slow or wait for the store; the broker must not remove the consumer for that.
    "max.poll.interval.ms": 86_400_000,
    # Prefetched per partition; 64 MB by default.
    "queued.max.messages.kbytes": 4_096,
    "queued.min.messages": 2_000,
    "fetch.wait.max.ms": 200,
}
MISSING = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION")


class TopicConsumer:
    """Reads partitions of one topic from given offsets. Not thread-safe.

    Raises:
        InvalidInput: confluent-kafka is missing, a setting is invalid, or the topic does not exist.
        KafkaUnavailable: no broker answers (never raised by `poll`).
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
        self._consumer = create_client(self._confluent.Consumer, {**settings.client(), **own})

    def partitions(self, *, max_age: float = 0.0) -> tuple[int, ...]:
        """Return the partition numbers of the topic. A cached answer is used if it is at most `max_age` seconds old."""
        if not self._partitions or time.monotonic() - self._looked > max_age:
            self._partitions = self._fetch_partitions()
            self._looked = time.monotonic()
        return self._partitions

    def bounds(self, partition: int) -> tuple[int, int]:
        """Return the low and the high watermark: the first stored offset, and the offset of the next record."""
        # Until the client has requested the topic's metadata, an existing partition is "unknown" to it.
        self.partitions(max_age=ANSWER_SECONDS)
        with self._convert_errors(f"the bounds of {self.topic}/{partition}"):
            where = self._confluent.TopicPartition(self.topic, partition)
            low, high = self._consumer.get_watermark_offsets(where, timeout=ANSWER_SECONDS)
        return low, high

    def read_from(self, offsets: Mapping[int, int]) -> None:
        """Assign these partitions, each from its offset, and unassign all others."""
        self.positions = dict(offsets)
        where = [self._confluent.TopicPartition(self.topic, number, offset) for number, offset in offsets.items()]
        with self._convert_errors(f"{self.topic} to read"):
            self._consumer.assign(where)

    def poll(self, seconds: float) -> Record | End | Lost | None:
        """Return the next record or event; None after `seconds` without one, also if no broker is available.

        Raises:
            InvalidInput: the login is refused, or the topic no longer exists.
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
            # Offsets after the last record may hold no record (transaction markers, compaction).
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
        """Return the lag of `position` behind the cached high watermark; None if none is cached. Sends no request."""
        where = self._confluent.TopicPartition(self.topic, partition)
        known = self._consumer.get_watermark_offsets(where, cached=True)
        if known is None or known[1] < FIRST_VALID_OFFSET:
            return None
        return max(0, int(known[1]) - position)

    def close(self) -> None:
        """Close the consumer without committing offsets."""
        self._consumer.close()

    def _fetch_partitions(self) -> tuple[int, ...]:
        with self._convert_errors(f"the partitions of {self.topic}"):
            found = self._consumer.list_topics(self.topic, timeout=ANSWER_SECONDS).topics[self.topic]
            if found.error is not None and found.error.name() not in MISSING:
                raise self._confluent.KafkaException(found.error)
        if found.error is not None or not found.partitions:
            raise InvalidInput(_no_topic(self.topic, self._settings.servers))
        return tuple(sorted(found.partitions))

    @contextmanager
    def _convert_errors(self, what: str) -> Iterator[None]:
        try:
            with convert_errors(self._confluent, self._settings.servers, what):
                yield
        except KafkaUnavailable:
            self._partitions = ()
            # A refused login first appears as a timeout; the reason is reported to the error callback, which
            # `poll` runs.
            self._consumer.poll(0)
            self._errors.raise_refusal()
            raise


def topic_partitions(settings: KafkaSettings, topic: str) -> tuple[int, ...]:
    """Return the partitions of a topic.

    Called before a job starts, so that configuration errors appear on the command line and not in a worker's log.

    Raises:
        InvalidInput: the topic does not exist, or the login is refused.
        KafkaUnavailable: no broker answers.
    """
    with closing(TopicConsumer(settings, topic=topic, group=METADATA_GROUP)) as consumer:
        return consumer.partitions()


class GroupOffsets:
    """Reads and commits the offsets of a group in one topic. Thread-safe.

    It does not use the client's admin calls for groups: they end the process if the broker disappears meanwhile
    (librdkafka issue 4605). It does not use synchronous commits, because they wait 45 s for a broker.
    """

    def __init__(self, settings: KafkaSettings, *, topic: str, group: str) -> None:
        self._settings = settings
        self._topic = topic
        self._group = group
        self._confluent = confluent()
        self._lock = threading.Lock()
        self._waiting = False
        self._answer: Any = None
        own = {**CONSUMER, "group.id": group, "error_cb": lambda error: None, "on_commit": self._on_commit}
        self._consumer = create_client(self._confluent.Consumer, {**settings.client(), **own})

    def committed(self, partitions: Sequence[int]) -> dict[int, int]:
        """Return the next offset to read of each partition that has a committed offset.

        Raises:
            InvalidInput: the login is refused.
            KafkaUnavailable: no broker answers.
        """
        where = [self._confluent.TopicPartition(self._topic, partition) for partition in partitions]
        with self._lock, convert_errors(self._confluent, self._settings.servers, f"the offsets of group {self._group}"):
            found = self._consumer.committed(where, timeout=ANSWER_SECONDS)
        return {each.partition: each.offset for each in found if each.offset >= FIRST_VALID_OFFSET}

    def commit(self, offsets: Mapping[int, int], *, patience: float = ANSWER_SECONDS) -> None:
        """Commit these offsets: all records before them are processed. The commit is durable when this returns.

        Raises:
            InvalidInput: the login is refused.
            KafkaUnavailable: no broker confirmed it within `patience` seconds; it may still succeed later.
        """
        what = f"an answer to the commit of group {self._group}"
        where = [self._confluent.TopicPartition(self._topic, *position) for position in offsets.items()]
        deadline = time.monotonic() + patience
        with self._lock, convert_errors(self._confluent, self._settings.servers, what):
            self._await_answer(deadline)  # to an earlier commit, so that commits stay in order
            while True:
                self._waiting = True
                self._consumer.commit(offsets=where, asynchronous=True)
                self._await_answer(deadline)
                if self._answer is None:
                    return
                if time.monotonic() > deadline or self._answer.name() in LOGIN_ERRORS:
                    raise self._confluent.KafkaException(self._answer)
                time.sleep(0.2)  # a broker that has just started does not know its groups yet

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def _await_answer(self, deadline: float) -> None:
        while self._waiting:
            if time.monotonic() > deadline:
                raise TimeoutError
            self._consumer.poll(0.1)

    def _on_commit(self, error: Any, _: Any) -> None:
        self._waiting, self._answer = False, error


def group_positions(settings: KafkaSettings, *, topic: str, group: str) -> tuple[GroupPosition, ...]:
    """Return the position of a group in each partition: its committed offset, by default the low watermark.

    Raises:
        InvalidInput: the topic does not exist, or the login is refused.
        KafkaUnavailable: no broker answers.
    """
    with closing(TopicConsumer(settings, topic=topic, group=METADATA_GROUP)) as consumer:
        bounds = {partition: consumer.bounds(partition) for partition in consumer.partitions()}
    with closing(GroupOffsets(settings, topic=topic, group=group)) as offsets:
        committed = offsets.committed(list(bounds))
    return tuple(
        GroupPosition(
            partition=partition,
            committed=(done := committed.get(partition, low)),
            lag=max(0, high - max(done, low)),
        )
        for partition, (low, high) in bounds.items()
    )


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
    return f"there is no topic {topic!r} at {servers}; create it (at most one worker can read each of its partitions)"
