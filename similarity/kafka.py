"""Kafka: a producer that says what was not delivered, and a consumer that reads partitions from given offsets.

The one home of confluent-kafka (the extra `kafka`). Reading is without group rebalancing: whoever runs
the readers decides who reads which partition, and the group only keeps how far they came.
"""

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Any, Self

from similarity.errors import InvalidInput
from similarity.kafka_records import End, GroupPosition, KafkaUnavailable, Lost, NotDelivered, Record
from similarity.kafka_settings import PREFIX, KafkaSettings

__all__ = [
    "End",
    "GroupOffsets",
    "GroupPosition",
    "KafkaSettings",
    "KafkaUnavailable",
    "KeyedProducer",
    "Lost",
    "NotDelivered",
    "Record",
    "TopicConsumer",
    "group_positions",
    "topic_partitions",
]

ANSWER_SECONDS = 10.0
DELIVERY_SECONDS = 120.0
OUTAGE_LOG_SECONDS = 60.0
NO_OFFSET = 0  # librdkafka's marks for "none" are negative
NO_GROUP = "similarity-looks"  # the client wants one even to look
LOGGER = logging.getLogger(__name__)

COMMON = {
    # What librdkafka would print itself, again and again while a broker is away; we say it once.
    "log_level": 2,
    "reconnect.backoff.ms": 250,
    "reconnect.backoff.max.ms": 2_000,
}
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
PRODUCER = {
    **COMMON,
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 5,
    "compression.type": "lz4",
    # What a topic takes is the topic's to say; a dead letter is longer than its message.
    "message.max.bytes": 16_777_216,
}
# What no waiting mends.
LOGIN_ERRORS = (
    "_AUTHENTICATION",
    "SASL_AUTHENTICATION_FAILED",
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "_SSL",
)
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
        self._confluent = _confluent()
        self._outage = _Outage(settings.servers)
        own = {**CONSUMER, "group.id": group, "error_cb": self._outage.on_error}
        self._consumer = _made(self._confluent.Consumer, {**settings.client(), **own})

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
        self._outage.raise_refusal()
        if polled is None:
            return None
        error = polled.error()
        if error is None:
            self._outage.over()
            self.positions[polled.partition()] = polled.offset() + 1
            return _record(polled)
        if error.name() == "_PARTITION_EOF":
            self._outage.over()
            # Beyond the last record there may be offsets without one: of transactions, or compacted.
            position = max(self.positions[polled.partition()], polled.offset())
            self.positions[polled.partition()] = position
            return End(partition=polled.partition(), offset=position)
        if error.name() in {"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"}:
            return Lost(partition=polled.partition())
        if error.name() in MISSING:
            raise InvalidInput(_no_topic(self.topic, self._settings.servers))
        self._outage.on_error(error)
        self._outage.raise_refusal()
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
            with _translated(self._confluent, self._settings.servers, what):
                yield
        except KafkaUnavailable:
            self._partitions = ()
            # A refused login looks like a broker that does not answer; what is really wrong is told beside it.
            self._consumer.poll(0)
            self._outage.raise_refusal()
            raise


class GroupOffsets:
    """How far a group has read a topic, kept by Kafka. Safe to share between threads.

    Not by the client's admin calls for groups: they end the process when the broker goes away meanwhile
    (librdkafka issue 4605). And not by commits that wait, because those wait 45 s for a broker.
    """

    def __init__(self, settings: KafkaSettings, *, topic: str, group: str) -> None:
        self._settings = settings
        self._topic = topic
        self._group = group
        self._confluent = _confluent()
        self._lock = threading.Lock()
        self._waiting = False
        self._answer: Any = None
        own = {**CONSUMER, "group.id": group, "error_cb": lambda error: None, "on_commit": self._on_commit}
        self._consumer = _made(self._confluent.Consumer, {**settings.client(), **own})

    def committed(self, partitions: Sequence[int]) -> dict[int, int]:
        """The next offset to read of each partition that has one.

        Raises:
            KafkaUnavailable: no broker answers.
        """
        asked = [self._confluent.TopicPartition(self._topic, partition) for partition in partitions]
        with self._lock, _translated(self._confluent, self._settings.servers, f"the offsets of group {self._group}"):
            answered = self._consumer.committed(asked, timeout=ANSWER_SECONDS)
        return {where.partition: where.offset for where in answered if where.offset >= NO_OFFSET}

    def commit(self, offsets: Mapping[int, int], *, patience: float = ANSWER_SECONDS) -> None:
        """Everything before these offsets is done. Durable when it returns.

        Raises:
            KafkaUnavailable: it was not taken within `patience` seconds; it may still be, later.
        """
        what = f"an answer to the commit of group {self._group}"
        where = [self._confluent.TopicPartition(self._topic, *position) for position in offsets.items()]
        deadline = time.monotonic() + patience
        with self._lock, _translated(self._confluent, self._settings.servers, what):
            self._await_answer(deadline)  # to an earlier commit: one at a time keeps them in order
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
        """Lets go of the connections."""
        self._consumer.close()

    def _await_answer(self, deadline: float) -> None:
        while self._waiting:
            if time.monotonic() > deadline:
                raise TimeoutError
            self._consumer.poll(0.1)

    def _on_commit(self, error: Any, _: Any) -> None:
        self._waiting, self._answer = False, error


class KeyedProducer:
    """Writes keyed messages durably: acknowledged by all in-sync replicas, each once, in order per key.

    Nothing is known to be written before `flush` has returned.
    """

    def __init__(self, settings: KafkaSettings, *, timeout: float = DELIVERY_SECONDS) -> None:
        """`timeout`: seconds after which a message that no broker took is given up."""
        self._timeout = timeout
        self._confluent = _confluent()
        self._waiting: dict[int, bytes] = {}
        self._failed: list[tuple[bytes, str]] = []
        self._sent = 0
        own = {**PRODUCER, "delivery.timeout.ms": int(timeout * 1000), "error_cb": lambda error: None}
        self._producer = _made(self._confluent.Producer, {**settings.client(), **own})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.flush()

    def send(self, topic: str, *, key: bytes, value: bytes | None) -> None:
        """Puts a message on its way; None as value is a tombstone. Waits while the queue is full."""
        number, self._sent = self._sent, self._sent + 1
        self._waiting[number] = key

        def on_delivery(error: Any, _: Any) -> None:
            del self._waiting[number]
            if error is not None:
                self._failed.append((key, error.str()))

        while True:
            try:
                self._producer.produce(topic, key=key, value=value, on_delivery=on_delivery)
            except BufferError:
                self._producer.poll(0.1)
            except self._confluent.KafkaException as error:  # too large, say: it was never queued
                del self._waiting[number]
                self._failed.append((key, error.args[0].str()))
                return
            else:
                self._producer.poll(0)
                return

    def flush(self) -> None:
        """Returns when every message is written.

        Raises:
            NotDelivered: some are not, or nobody knows; send them again, which is harmless.
        """
        self._producer.flush(self._timeout + 1)
        failed = [*self._failed, *((key, "no answer yet") for key in self._waiting.values())]
        self._failed = []
        if failed:
            keys, reasons = zip(*failed, strict=True)
            raise NotDelivered(
                f"Kafka did not take {len(failed):,} messages ({reasons[0]}), the first of them with key "
                f"{keys[0]!r:.140}; send them again",
                keys,
            )


def topic_partitions(settings: KafkaSettings, topic: str) -> tuple[int, ...]:
    """The partitions of a topic, asked for before a job starts, so that what is wrong is said where one sees it.

    Raises:
        InvalidInput: there is no such topic, or the login is refused.
        KafkaUnavailable: no broker answers.
    """
    with closing(TopicConsumer(settings, topic=topic, group=NO_GROUP)) as consumer:
        return consumer.partitions()


def group_positions(settings: KafkaSettings, *, topic: str, group: str) -> tuple[GroupPosition, ...]:
    """How far a group has come in each partition; where it has committed nothing, at the first that is there.

    Raises:
        InvalidInput: there is no such topic, or the login is refused.
        KafkaUnavailable: no broker answers.
    """
    with closing(TopicConsumer(settings, topic=topic, group=NO_GROUP)) as consumer:
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


class _Outage:
    """Says once that Kafka is away, again every minute, and that it is back."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._since: float | None = None
        self._said = 0.0
        self._refusal = ""

    def on_error(self, error: Any) -> None:
        now = time.monotonic()
        if error.name() in LOGIN_ERRORS:
            self._refusal = error.str()
        elif self._since is None or now - self._said > OUTAGE_LOG_SECONDS:
            self._since = self._since or now
            self._said = now
            LOGGER.warning("Kafka at %s is away (%s); reading goes on when it is back", self._servers, error.str())

    def over(self) -> None:
        if self._since is not None:
            LOGGER.warning("Kafka at %s is back after %.0f s", self._servers, time.monotonic() - self._since)
            self._since = None

    def raise_refusal(self) -> None:
        if self._refusal:
            raise InvalidInput(_refused(self._servers, self._refusal))


@contextmanager
def _translated(confluent: Any, servers: str, what: str) -> Iterator[None]:
    """Turns errors of the client into ours."""
    try:
        yield
    except confluent.KafkaException as error:
        reason = error.args[0]
        if reason.name() in LOGIN_ERRORS:
            raise InvalidInput(_refused(servers, reason.str())) from error
        raise KafkaUnavailable(f"Kafka at {servers} does not give {what}: {reason.str()}") from error
    except TimeoutError as error:
        raise KafkaUnavailable(f"Kafka at {servers} does not give {what}: no answer") from error


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


def _confluent() -> Any:
    try:
        import confluent_kafka
    except ImportError as error:
        raise InvalidInput(
            f"Kafka needs its client ({error.name} is missing): in a checkout of the project: pip install -e '.[kafka]'"
        ) from error
    return confluent_kafka


def _made(client: Any, configuration: Mapping[str, object]) -> Any:
    try:
        return client(configuration)
    except Exception as error:  # KafkaException, ValueError or TypeError, by what is wrong
        raise InvalidInput(f"a setting of Kafka cannot be used: {error}; see the {PREFIX} variables") from error


def _no_topic(topic: str, servers: str) -> str:
    return f"there is no topic {topic!r} at {servers}; create it (its partitions are the most workers that can read it)"


def _refused(servers: str, reason: str) -> str:
    return f"Kafka at {servers} refuses: {reason}; see the {PREFIX} variables and the rights of the user"
