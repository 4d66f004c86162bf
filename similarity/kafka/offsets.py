"""The committed offsets of a consumer group, as Kafka stores them."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from similarity.kafka.client import ANSWER_SECONDS, LOGIN_ERRORS, confluent, convert_errors, create_client
from similarity.kafka.consumer import CONSUMER, FIRST_VALID_OFFSET, METADATA_GROUP, TopicConsumer
from similarity.kafka.records import GroupPosition
from similarity.kafka.settings import KafkaSettings


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
        """Return the next offset to read of each partition that has a committed one.

        Raises:
            KafkaUnavailable: no broker answers.
        """
        where = [self._confluent.TopicPartition(self._topic, partition) for partition in partitions]
        with self._lock, convert_errors(self._confluent, self._settings.servers, f"the offsets of group {self._group}"):
            found = self._consumer.committed(where, timeout=ANSWER_SECONDS)
        return {each.partition: each.offset for each in found if each.offset >= FIRST_VALID_OFFSET}

    def commit(self, offsets: Mapping[int, int], *, patience: float = ANSWER_SECONDS) -> None:
        """Commit these offsets: all records before them are processed. The commit is durable when this returns.

        Raises:
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
