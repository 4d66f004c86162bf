"""A Kafka topic as a Beam source: its split by partitions, its reader, and the checkpoint marks of the reader."""

import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, TypeAlias

from apache_beam.coders import Coder
from apache_beam.io.unbounded_source import CheckpointMark, UnboundedReader, UnboundedSource
from apache_beam.metrics import Metrics
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp

from pipelines.metrics import NAMESPACE, worker_metrics
from pipelines.sources.kafka_consumers import GroupTopic, committer, consumer_pool
from similarity.company import EPOCH, utc_now
from similarity.errors import InvalidInput, SimilarityError
from similarity.ingest.messages import Message
from similarity.kafka import End, KafkaUnavailable, Lost, Record, TopicConsumer, topic_partitions

Start: TypeAlias = Literal["earliest", "latest"]
OnLost: TypeAlias = Literal["fail", "earliest"]

# Wait for the first record of a Beam bundle. It also keeps Prism from polling without a pause: Prism resumes an idle
# reader at once, without the delay that Beam requests (Beam issue 39848).
WAIT_SECONDS = 0.25
# Wait for a further record; short, because the records read so far are written at the end of the Beam bundle.
LINGER_SECONDS = 0.01
# How long `KafkaSource.split` waits for Kafka before it gives one reader all partitions.
SPLIT_SECONDS = 30.0
# How old the list of partitions may be before it is read again.
NEW_PARTITIONS_SECONDS = 60.0
# The largest expected delay between the time of a record and its arrival in the topic.
WATERMARK_DELAY_SECONDS = 10.0
LOGGER = logging.getLogger(__name__)


class OffsetsLost(SimilarityError):
    """The next offset does not exist: messages were deleted before they were read, or the topic was created again."""


@dataclass(frozen=True, kw_only=True)
class KafkaSource(UnboundedSource):
    """A topic, or one split of it: the partitions that one reader reads. For the other options see `ReadKafka`.

    `partitions`: None for all partitions. `added_from`: the reader also reads partitions with this number or above that
    are added later.
    """

    group_topic: GroupTopic
    start: Start = "earliest"
    on_lost: OnLost = "fail"
    until_end: bool = False
    partitions: tuple[int, ...] | None = None
    added_from: int | None = None

    def wanted(self, partitions: Sequence[int]) -> tuple[int, ...]:
        """Return those of the topic's `partitions` that belong to this source."""
        if self.partitions is None:
            return tuple(partitions)
        added_from = self.added_from
        return (*self.partitions, *(number for number in partitions if added_from is not None and number >= added_from))

    def split(self, desired_num_splits: int, options: Any = None) -> Iterable["KafkaSource"]:
        """Return one source for each partition, but at most `desired_num_splits`, each then with several partitions."""
        if self.partitions is not None:
            return [self]
        partitions = self._all_partitions()
        if partitions is None:
            return [self]  # one reader then reads all partitions, once Kafka answers
        splits = [partitions[start::desired_num_splits] for start in range(min(desired_num_splits, len(partitions)))]
        return [
            replace(self, partitions=split, added_from=max(partitions) + 1 if split is splits[0] else None)
            for split in splits
        ]

    def create_reader(self, options: Any, checkpoint_mark: "KafkaMark | None") -> "KafkaReader":
        """Return a reader that continues after the mark."""
        return KafkaReader(self, checkpoint_mark)

    def get_checkpoint_mark_coder(self) -> Coder:
        """Return the coder of marks, which are JSON."""
        return KafkaMarkCoder(self.group_topic)

    def _all_partitions(self) -> tuple[int, ...] | None:
        """Return the numbers of all partitions.

        None if Kafka is unavailable for SPLIT_SECONDS, or if the topic does not exist or the login is refused.
        """
        deadline = time.monotonic() + SPLIT_SECONDS
        while True:
            try:
                return topic_partitions(self.group_topic.settings(), self.group_topic.topic)
            except KafkaUnavailable as error:
                if time.monotonic() > deadline:
                    LOGGER.warning("%s; one worker will read all partitions when it is back", error)
                    return None
            except InvalidInput:
                return None  # Beam ignores an exception here; the reader will raise it


@dataclass(frozen=True, kw_only=True)
class KafkaMark(CheckpointMark):
    """The position of a reader: the next offset of each partition and, with `until_end`, their end offsets."""

    group_topic: GroupTopic
    positions: dict[int, int]
    ends: dict[int, int]

    def finalize_checkpoint(self) -> None:
        """Commit the positions for the consumer group."""
        if self.positions:
            committer(self.group_topic).commit(self.positions, last=self.finished)

    @property
    def finished(self) -> bool:
        """Whether there is an end, and all partitions are read up to it."""
        return bool(self.ends) and all(self.positions[partition] >= end for partition, end in self.ends.items())


class KafkaMarkCoder(Coder):
    """Encodes marks as JSON, which later releases can read."""

    def __init__(self, group_topic: GroupTopic) -> None:
        self._group_topic = group_topic

    def encode(self, value: KafkaMark) -> bytes:
        """Encode positions and ends as JSON objects of offset by partition."""
        return json.dumps({"positions": value.positions, "ends": value.ends}, sort_keys=True).encode()

    def decode(self, encoded: bytes) -> KafkaMark:
        """Decode a mark."""
        held = json.loads(encoded)
        positions, ends = ({int(key): offset for key, offset in held[name].items()} for name in ("positions", "ends"))
        return KafkaMark(group_topic=self._group_topic, positions=positions, ends=ends)

    def is_deterministic(self) -> bool:
        """Return True: equal marks have equal bytes."""
        return True


class KafkaReader(UnboundedReader):
    """Reads the partitions of one source (split), one record after the other."""

    def __init__(self, source: KafkaSource, mark: KafkaMark | None, *, now: Callable[[], datetime] = utc_now) -> None:
        self._source = source
        self._positions = dict(mark.positions) if mark else {}
        self._ends = dict(mark.ends) if mark else {}
        self._now = now
        self._consumer: TopicConsumer | None = None
        self._watermarks: dict[int, Timestamp] = {}  # by partition
        self._in_bundle = 0
        self._times: dict[bytes | None, datetime] = {}  # of the last message of each key in this Beam bundle
        self._current: tuple[Message, Timestamp] | None = None

    def start(self) -> bool:
        """Read the first record; return False if there is none yet, or if Kafka is unavailable."""
        return self.advance()

    def advance(self) -> bool:
        """Wait briefly for the next record; return whether there is one.

        Raises:
            OffsetsLost: the next offset of a partition does not exist, and `on_lost` is "fail".
            InvalidInput: the topic does not exist, or the login is refused.
        """
        self._current = None
        try:
            return self._advanced()
        except KafkaUnavailable as error:
            LOGGER.warning("%s; trying again", error)
            worker_metrics().source_failures.inc()
            return False

    def get_current(self) -> Message:
        """Return the current record as a message."""
        return self._required()[0]

    def get_current_timestamp(self) -> Timestamp:
        """Return the timestamp of the current record."""
        return self._required()[1]

    def get_watermark(self) -> Timestamp:
        """Return the minimum of the watermarks of the partitions.

        The watermark of a partition is the timestamp of its last record; for a partition at its end, it is the time at
        which the end was reached, minus WATERMARK_DELAY_SECONDS.
        """
        if self._finished():
            return MAX_TIMESTAMP
        if not self._positions:
            return MIN_TIMESTAMP
        return min(self._watermarks.get(partition, MIN_TIMESTAMP) for partition in self._positions)

    def get_checkpoint_mark(self) -> KafkaMark:
        """Return the current position, and give the consumer back to the pool."""
        self._in_bundle = 0
        self._times.clear()
        if self._consumer is not None:
            self._report_lag(self._consumer)
            consumer_pool().give_back(self._key, self._consumer, user=self)
            self._consumer = None
        return self._mark()

    def close(self) -> None:
        """Close the consumer of this reader, also in the pool, unless another reader has used it since."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        consumer_pool().drop(self._key, user=self)

    @property
    def _key(self) -> object:
        return (self._source.group_topic, self._source.partitions)

    def _advanced(self) -> bool:
        if self._finished():
            return False
        consumer = self._ready_consumer()
        wait = LINGER_SECONDS if self._in_bundle else WAIT_SECONDS
        deadline = time.monotonic() + wait
        while not self._finished():
            event = consumer.poll(max(0.0, deadline - time.monotonic()))
            match event:
                case None:
                    return False
                case Record():
                    if self._take(event):
                        return True
                case End():
                    self._positions[event.partition] = event.offset
                    watermark = self._now().timestamp() - WATERMARK_DELAY_SECONDS
                    self._watermarks[event.partition] = Timestamp.of(watermark)
                case Lost():
                    low, high = consumer.bounds(event.partition)
                    position = self._positions[event.partition]
                    self._positions[event.partition] = self._existing_position(
                        event.partition, position, low=low, high=high
                    )
                    consumer.read_from(self._unfinished())
        return False

    def _take(self, record: Record) -> bool:
        """Make the record the current one and return True.

        Return False if it is at or beyond the end offset that was recorded at the start of the job (`until_end`).
        """
        end = self._ends.get(record.partition)
        if end is not None and record.offset >= end:
            self._positions[record.partition] = end
            return False
        now = self._now()
        message = record.message(now, after=self._times.get(record.key, EPOCH))
        self._times[record.key] = message.time
        time_of = Timestamp.from_utc_datetime(min(message.time, now))  # a producer's clock may be years ahead
        self._positions[record.partition] = record.offset + 1
        self._watermarks[record.partition] = time_of
        self._current = (message, time_of)
        self._in_bundle += 1
        return True

    def _required(self) -> tuple[Message, Timestamp]:
        if self._current is None:
            raise RuntimeError("there is no current record: start() or advance() did not return True")
        return self._current

    def _finished(self) -> bool:
        return bool(self._ends) and self._mark().finished

    def _mark(self) -> KafkaMark:
        positions, ends = dict(self._positions), dict(self._ends)
        return KafkaMark(group_topic=self._source.group_topic, positions=positions, ends=ends)

    def _ready_consumer(self) -> TopicConsumer:
        """Return a consumer that continues at the current positions."""
        if self._consumer is None:
            self._consumer = consumer_pool().take(self._key) or self._source.group_topic.consumer()
        if not self._in_bundle:
            self._set_start_positions(self._consumer)
        if self._consumer.positions != (unfinished := self._unfinished()):
            self._consumer.read_from(unfinished)
        return self._consumer

    def _unfinished(self) -> dict[int, int]:
        """Return the positions of partitions that are not read to their end."""
        if not self._ends:
            return self._positions
        return {partition: offset for partition, offset in self._positions.items() if offset < self._ends[partition]}

    def _set_start_positions(self, consumer: TopicConsumer) -> None:
        """Set the start of partitions without a position: the committed offset, else the one that `start` selects.

        Without a committed offset, a partition that is added while the job runs is read from its beginning.
        """
        source, first_time = self._source, not self._positions
        if source.until_end and not first_time:
            return  # partitions that were added after the job started are not read
        wanted = source.wanted(consumer.partitions(max_age=NEW_PARTITIONS_SECONDS))
        unknown = [partition for partition in wanted if partition not in self._positions]
        if not unknown:
            return
        committed = committer(source.group_topic).committed(unknown)
        positions, ends = dict(self._positions), dict(self._ends)
        for partition in unknown:
            low, high = consumer.bounds(partition)
            chosen = high if source.start == "latest" and first_time else low
            position = committed.get(partition, chosen)
            positions[partition] = self._existing_position(partition, position, low=low, high=high)
            if source.until_end:
                ends[partition] = high
        self._positions, self._ends = positions, ends

    def _existing_position(self, partition: int, position: int, *, low: int, high: int) -> int:
        """Return the position if it still exists, else, if `on_lost` is "earliest", the first existing offset.

        Raises:
            OffsetsLost: the position does not exist any more, and `on_lost` is "fail".
        """
        if low <= position <= high:
            return position
        group_topic = self._source.group_topic
        what = (
            f"the {low - position:,} offsets before {low} were deleted before they were read (retention)"
            if position < low
            else f"the topic ends at {high}: it was deleted and created again, or its last records were lost"
        )
        lost = f"{group_topic.topic}/{partition}: group {group_topic.group} has read up to {position}, but {what}"
        if self._source.on_lost == "fail":
            raise OffsetsLost(
                f"{lost}. Send the missing messages again from their source, then restart the job with --kafka-lost "
                "earliest: it continues at the first offset that still exists"
            )
        LOGGER.error("%s; continuing at %d", lost, low)
        Metrics.counter(NAMESPACE, "lost_offsets").inc(max(0, low - position))
        worker_metrics().lost_offsets.inc(max(0, low - position))
        committer(group_topic).start_again(partition)
        return low

    def _report_lag(self, consumer: TopicConsumer) -> None:
        for partition, position in self._positions.items():
            if (lag := consumer.backlog(partition, position)) is not None:
                Metrics.gauge(NAMESPACE, f"lag_messages_{partition}").set(lag)
                worker_metrics().lag.labels(str(partition)).set(lag)
