"""The Kafka consumers of a worker process, pooled across Beam bundles.

Beam reuses a reader for the next Beam bundle only within one copy of a DoFn. A runner that finalizes late (Flink: at
its next checkpoint) has many copies, each of which would hold connections and read ahead. So a reader does not own a
consumer: it takes one from the pool for a Beam bundle and gives it back at the end.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from similarity.kafka import GroupOffsets, KafkaSettings, KafkaUnavailable, TopicConsumer

IDLE_SECONDS = 120.0
# Kafka deletes committed offsets after 7 days, also for a partition without new records; so commit them again.
COMMIT_AGAIN_SECONDS = 3600.0
COMMIT_SECONDS = 5.0
LAST_COMMIT_SECONDS = 60.0
LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTopic:
    """A consumer group and the topic it reads. The login is not part of it: each worker reads its own environment."""

    servers: str
    topic: str
    group: str

    def settings(self) -> KafkaSettings:
        """Return the connection settings of this process."""
        return KafkaSettings.from_environment(os.environ, servers=self.servers)

    def consumer(self) -> TopicConsumer:
        """Return a new consumer."""
        return TopicConsumer(self.settings(), topic=self.topic, group=self.group)


@dataclass(slots=True)
class _Kept:
    consumer: TopicConsumer
    user: object
    since: float


class ConsumerPool:
    """Idle consumers by key (topic, group and partitions); each is used by one reader at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[object, _Kept] = {}

    def take(self, key: object) -> TopicConsumer | None:
        """Remove and return the consumer with this key, or None."""
        with self._lock:
            kept = self._kept.pop(key, None)
            idle = self._idle()
        _close(idle)
        return kept.consumer if kept else None

    def give_back(self, key: object, consumer: TopicConsumer, *, user: object) -> None:
        """Return a consumer to the pool; `user` is the reader that used it."""
        with self._lock:
            other = self._kept.pop(key, None)
            self._kept[key] = _Kept(consumer, user, self._clock())
            idle = self._idle()
        _close([*idle, *([other] if other else [])])

    def drop(self, key: object, *, user: object) -> None:
        """Close the consumer with this key if `user` was the last reader to use it."""
        with self._lock:
            kept = self._kept.get(key)
            to_close = [self._kept.pop(key)] if kept and kept.user is user else []
        _close(to_close)

    def _idle(self) -> list[_Kept]:
        limit = self._clock() - IDLE_SECONDS
        keys = [key for key, kept in self._kept.items() if kept.since < limit]
        return [self._kept.pop(key) for key in keys]


class Committer:
    """Commits the offsets of finalized Beam bundles, never backwards, in whatever order they are finalized."""

    def __init__(self, offsets: GroupOffsets, clock: Callable[[], float] = time.monotonic) -> None:
        self._offsets = offsets
        self._clock = clock
        self._lock = threading.Lock()
        self._done: dict[int, tuple[int, float]] = {}

    def committed(self, partitions: list[int]) -> dict[int, int]:
        """Return the committed offsets of the group, and forget this process's earlier commits of these partitions.

        Raises:
            KafkaUnavailable: no broker answers.
        """
        found = self._offsets.committed(partitions)
        with self._lock:
            for partition in partitions:
                self._done.pop(partition, None)
        return found

    def start_again(self, partition: int) -> None:
        """Allow commits below the last one: the partition is deliberately read from an earlier offset."""
        with self._lock:
            self._done.pop(partition, None)

    def commit(self, positions: dict[int, int], *, last: bool = False) -> None:
        """Commit positions above the last ones that this process committed; repeat an old one if nothing is new.

        A later Beam bundle makes up for a failed commit. No commit follows the `last`, so it is retried for longer.
        """
        with self._lock:
            new = {partition: offset for partition, offset in positions.items() if self._is_new(partition, offset)}
            if not new:
                return
            try:
                self._offsets.commit(new, patience=LAST_COMMIT_SECONDS if last else COMMIT_SECONDS)
            except KafkaUnavailable as error:
                LOGGER.warning("%s; a later commit covers it, until then a restart reads it again", error)
                return
            now = self._clock()
            self._done |= {partition: (offset, now) for partition, offset in new.items()}

    def _is_new(self, partition: int, offset: int) -> bool:
        done, when = self._done.get(partition, (-1, 0.0))
        return offset > done or (offset == done and self._clock() - when > COMMIT_AGAIN_SECONDS)


@cache
def consumer_pool() -> ConsumerPool:
    """Return the consumer pool of this process."""
    return ConsumerPool()


@cache
def committer(group_topic: GroupTopic) -> Committer:
    """Return the committer of this process for a group and a topic."""
    return Committer(GroupOffsets(group_topic.settings(), topic=group_topic.topic, group=group_topic.group))


def _close(kept: list[_Kept]) -> None:
    for one in kept:
        one.consumer.close()
