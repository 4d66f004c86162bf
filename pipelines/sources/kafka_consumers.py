"""The Kafka consumers of a worker process, kept between bundles.

Beam keeps a reader for the next bundle only within one copy of a DoFn, and a runner that finalizes late
(Flink: at its next checkpoint) has many copies, each of which would hold connections and read ahead.
So readers own no consumer: they take one for a bundle and give it back at its end.
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
# Kafka forgets what a group committed 7 days ago, also of a partition where nothing new has come.
COMMIT_AGAIN_SECONDS = 3600.0
COMMIT_SECONDS = 5.0
LAST_COMMIT_SECONDS = 60.0
LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTopic:
    """A group's reading of a topic. How to log in is not part of it: each worker reads its own environment."""

    servers: str
    topic: str
    group: str

    def settings(self) -> KafkaSettings:
        """How this process connects."""
        return KafkaSettings.from_environment(os.environ, servers=self.servers)

    def consumer(self) -> TopicConsumer:
        """A new consumer."""
        return TopicConsumer(self.settings(), topic=self.topic, group=self.group)


@dataclass(slots=True)
class _Kept:
    consumer: TopicConsumer
    user: object
    since: float


class ConsumerPool:
    """Consumers by what they read; each is used by one reader at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[object, _Kept] = {}

    def take(self, key: object) -> TopicConsumer | None:
        """The consumer that was given back under this key, for the caller alone."""
        with self._lock:
            kept = self._kept.pop(key, None)
            idle = self._idle()
        _close(idle)
        return kept.consumer if kept else None

    def give_back(self, key: object, consumer: TopicConsumer, *, user: object) -> None:
        """Keeps a consumer for whoever takes it next; `user` is who had it."""
        with self._lock:
            other = self._kept.pop(key, None)
            self._kept[key] = _Kept(consumer, user, self._clock())
            idle = self._idle()
        _close([*idle, *([other] if other else [])])

    def drop(self, key: object, *, user: object) -> None:
        """Closes the consumer under this key, if `user` was the last to have it."""
        with self._lock:
            kept = self._kept.get(key)
            mine = [self._kept.pop(key)] if kept and kept.user is user else []
        _close(mine)

    def _idle(self) -> list[_Kept]:
        limit = self._clock() - IDLE_SECONDS
        keys = [key for key, kept in self._kept.items() if kept.since < limit]
        return [self._kept.pop(key) for key in keys]


class Committer:
    """Commits what bundles have finished: never backwards, whatever the order in which they become final."""

    def __init__(self, offsets: GroupOffsets, clock: Callable[[], float] = time.monotonic) -> None:
        self._offsets = offsets
        self._clock = clock
        self._lock = threading.Lock()
        self._done: dict[int, tuple[int, float]] = {}

    def committed(self, partitions: list[int]) -> dict[int, int]:
        """What the group has committed; from here on, commits go on.

        Raises:
            KafkaUnavailable: no broker answers.
        """
        found = self._offsets.committed(partitions)
        with self._lock:
            for partition in partitions:
                self._done.pop(partition, None)
        return found

    def start_again(self, partition: int) -> None:
        """The partition is read from an earlier offset than was committed, on purpose."""
        with self._lock:
            self._done.pop(partition, None)

    def commit(self, positions: dict[int, int], *, last: bool = False) -> None:
        """Commits positions that are beyond what is committed.

        What fails is made good by a later bundle; after the `last` there is none, so it is more patient.
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
    """That of this process."""
    return ConsumerPool()


@cache
def committer(reading: GroupTopic) -> Committer:
    """That of this process for a group and a topic."""
    return Committer(GroupOffsets(reading.settings(), topic=reading.topic, group=reading.group))


def _close(kept: list[_Kept]) -> None:
    for one in kept:
        one.consumer.close()
