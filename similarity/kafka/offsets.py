"""How far a group has come in a topic, as Kafka keeps it."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from similarity.kafka.client import ANSWER_SECONDS, LOGIN_ERRORS, confluent, made, translated
from similarity.kafka.consumer import CONSUMER, NO_GROUP, NO_OFFSET, TopicConsumer
from similarity.kafka.records import GroupPosition
from similarity.kafka.settings import KafkaSettings


class GroupOffsets:
    """How far a group has read a topic, kept by Kafka. Safe to share between threads.

    Not by the client's admin calls for groups: they end the process when the broker goes away meanwhile
    (librdkafka issue 4605). And not by commits that wait, because those wait 45 s for a broker.
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
        self._consumer = made(self._confluent.Consumer, {**settings.client(), **own})

    def committed(self, partitions: Sequence[int]) -> dict[int, int]:
        """The next offset to read of each partition that has one.

        Raises:
            KafkaUnavailable: no broker answers.
        """
        asked = [self._confluent.TopicPartition(self._topic, partition) for partition in partitions]
        with self._lock, translated(self._confluent, self._settings.servers, f"the offsets of group {self._group}"):
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
        with self._lock, translated(self._confluent, self._settings.servers, what):
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
