"""The reader of a topic's partitions, and the mark that says how far a bundle of it came."""

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from apache_beam.coders import Coder
from apache_beam.io.unbounded_source import CheckpointMark, UnboundedReader
from apache_beam.metrics import Metrics
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp

from pipelines.metrics import NAMESPACE, worker_metrics
from pipelines.sources.kafka_consumers import GroupTopic, committer, consumer_pool
from similarity.company import utc_now
from similarity.errors import SimilarityError
from similarity.ingest.messages import Message
from similarity.kafka import End, KafkaUnavailable, Lost, Record, TopicConsumer

Start: TypeAlias = Literal["earliest", "latest"]
OnLost: TypeAlias = Literal["fail", "earliest"]

# For the first record of a bundle. It also paces runners that resume an idle reader at once (Beam issue 39848).
WAIT_SECONDS = 0.25
# For a further record: what has been read waits for the end of the bundle to be written.
LINGER_SECONDS = 0.01
NEW_PARTITIONS_SECONDS = 60.0
# How much later than its time a record may be written.
WATERMARK_DELAY_SECONDS = 10.0
LOGGER = logging.getLogger(__name__)


class OffsetsLost(SimilarityError):
    """Messages that were not read yet are not in the topic any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HowToRead:
    """Where reading starts and ends; see `ReadKafka`."""

    start: Start = "earliest"
    on_lost: OnLost = "fail"
    until_end: bool = False


@dataclass(frozen=True, kw_only=True)
class TopicShare:
    """A topic, or those of its partitions that one reader reads.

    `partitions` None: all that there are. `and_from`: also those with this number and above, when they
    are added.
    """

    reading: GroupTopic
    how: HowToRead = field(default_factory=HowToRead)
    partitions: tuple[int, ...] | None = None
    and_from: int | None = None

    def wanted(self, partitions: Sequence[int]) -> tuple[int, ...]:
        """Which of a topic's partitions belong to this share."""
        if self.partitions is None:
            return tuple(partitions)
        own, more = self.partitions, self.and_from
        return (*own, *(number for number in partitions if more is not None and number >= more))


@dataclass(frozen=True, kw_only=True)
class KafkaMark(CheckpointMark):
    """How far a bundle came: the next offset of each partition, and where each ends (with `until_end`)."""

    reading: GroupTopic
    positions: dict[int, int]
    ends: dict[int, int]

    def finalize_checkpoint(self) -> None:
        """Commits the positions for the group."""
        if self.positions:
            committer(self.reading).commit(self.positions, last=self.finished)

    @property
    def finished(self) -> bool:
        """Whether there is an end, and everything before it is read."""
        return bool(self.ends) and all(self.positions[partition] >= end for partition, end in self.ends.items())


class KafkaMarkCoder(Coder):
    """Marks as JSON, to be read by later releases."""

    def __init__(self, reading: GroupTopic) -> None:
        self._reading = reading

    def encode(self, value: KafkaMark) -> bytes:
        """Two objects of partition and offset."""
        return json.dumps({"positions": value.positions, "ends": value.ends}, sort_keys=True).encode()

    def decode(self, encoded: bytes) -> KafkaMark:
        """What `encode` was given."""
        held = json.loads(encoded)
        positions, ends = ({int(key): offset for key, offset in held[name].items()} for name in ("positions", "ends"))
        return KafkaMark(reading=self._reading, positions=positions, ends=ends)

    def is_deterministic(self) -> bool:
        """Equal marks have equal bytes."""
        return True


class KafkaReader(UnboundedReader):
    """Reads the partitions of a share, one record after the other."""

    def __init__(self, source: TopicShare, mark: KafkaMark | None, *, now: Callable[[], datetime] = utc_now) -> None:
        self._source = source
        self._positions = dict(mark.positions) if mark else {}
        self._ends = dict(mark.ends) if mark else {}
        self._now = now
        self._consumer: TopicConsumer | None = None
        self._seen: dict[int, Timestamp] = {}
        self._in_bundle = 0
        self._current: tuple[Message, Timestamp] | None = None

    def start(self) -> bool:
        """Positions at the first record; False where there is none yet, or Kafka is away."""
        return self.advance()

    def advance(self) -> bool:
        """Waits a moment for the next record.

        Raises:
            OffsetsLost: messages were deleted before they were read, and the source is not to skip them.
            InvalidInput: there is no such topic, or the login is refused.
        """
        self._current = None
        try:
            return self._advanced()
        except KafkaUnavailable as error:
            LOGGER.warning("%s; trying again", error)
            worker_metrics().source_failures.inc()
            return False

    def get_current(self) -> Message:
        """The record as a message."""
        return self._required()[0]

    def get_current_timestamp(self) -> Timestamp:
        """The time that the topic keeps of it."""
        return self._required()[1]

    def get_watermark(self) -> Timestamp:
        """The oldest of the partitions' latest times; of one that is read to its end, a little before now."""
        if self._finished():
            return MAX_TIMESTAMP
        if not self._positions:
            return MIN_TIMESTAMP
        return min(self._seen.get(partition, MIN_TIMESTAMP) for partition in self._positions)

    def get_checkpoint_mark(self) -> KafkaMark:
        """How far this bundle came. The consumer is free for the next one."""
        self._in_bundle = 0
        if self._consumer is not None:
            self._report_lag(self._consumer)
            consumer_pool().give_back(self._key, self._consumer, user=self)
            self._consumer = None
        return self._mark()

    def close(self) -> None:
        """Lets the consumer go, unless another reader goes on with it."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        consumer_pool().drop(self._key, user=self)

    @property
    def _key(self) -> object:
        return (self._source.reading, self._source.partitions)

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
                    self._seen[event.partition] = Timestamp.of(self._now().timestamp() - WATERMARK_DELAY_SECONDS)
                case Lost():
                    low, high = consumer.bounds(event.partition)
                    position = self._positions[event.partition]
                    self._positions[event.partition] = self._kept_or_lost(event.partition, position, low=low, high=high)
                    consumer.read_from(self._unfinished())
        return False

    def _take(self, record: Record) -> bool:
        """Makes a record the current one; not one behind the end that was agreed on."""
        end = self._ends.get(record.partition)
        if end is not None and record.offset >= end:
            self._positions[record.partition] = end
            return False
        message = record.message(self._now())
        time_of = Timestamp.from_utc_datetime(message.time)
        self._positions[record.partition] = record.offset + 1
        self._seen[record.partition] = time_of
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
        return KafkaMark(reading=self._source.reading, positions=dict(self._positions), ends=dict(self._ends))

    def _ready_consumer(self) -> TopicConsumer:
        """A consumer that goes on at the positions."""
        if self._consumer is None:
            self._consumer = consumer_pool().take(self._key) or self._source.reading.consumer()
        if not self._in_bundle:
            self._settle_positions(self._consumer)
        if self._consumer.positions != (unfinished := self._unfinished()):
            self._consumer.read_from(unfinished)
        return self._consumer

    def _unfinished(self) -> dict[int, int]:
        """The positions of partitions that are not read to the agreed end."""
        if not self._ends:
            return self._positions
        return {partition: offset for partition, offset in self._positions.items() if offset < self._ends[partition]}

    def _settle_positions(self, consumer: TopicConsumer) -> None:
        """Decides where partitions start that no mark tells of: where the group has committed, else as was chosen."""
        how, first_time = self._source.how, not self._positions
        if how.until_end and not first_time:
            return  # only what was there when the job started
        wanted = self._source.wanted(consumer.partitions(max_age=NEW_PARTITIONS_SECONDS))
        unknown = [partition for partition in wanted if partition not in self._positions]
        if not unknown:
            return
        committed = committer(self._source.reading).committed(unknown)
        positions, ends = dict(self._positions), dict(self._ends)
        for partition in unknown:
            low, high = consumer.bounds(partition)
            # What was added while the job runs is all new.
            chosen = high if how.start == "latest" and first_time else low
            position = committed.get(partition, chosen)
            positions[partition] = self._kept_or_lost(partition, position, low=low, high=high)
            if how.until_end:
                ends[partition] = high
        self._positions, self._ends = positions, ends

    def _kept_or_lost(self, partition: int, position: int, *, low: int, high: int) -> int:
        """Where to go on: at the position if it is still there, else at the first offset, if that is allowed."""
        if low <= position <= high:
            return position
        reading = self._source.reading
        what = (
            f"the {low - position:,} offsets before {low} were deleted before they were read (retention)"
            if position < low
            else f"the topic ends at {high}: it was made anew, or it lost its end"
        )
        lost = f"{reading.topic}/{partition}: group {reading.group} has read up to {position}, but {what}"
        if self._source.how.on_lost == "fail":
            raise OffsetsLost(
                f"{lost}. Send what is missing again from where it is kept, and let the job go on with what is left "
                "(--kafka-lost earliest)"
            )
        LOGGER.error("%s; going on at %d", lost, low)
        Metrics.counter(NAMESPACE, "lost_offsets").inc(max(0, low - position))
        worker_metrics().lost_offsets.inc(max(0, low - position))
        committer(reading).start_again(partition)
        return low

    def _report_lag(self, consumer: TopicConsumer) -> None:
        for partition, position in self._positions.items():
            if (lag := consumer.backlog(partition, position)) is not None:
                Metrics.gauge(NAMESPACE, f"lag_messages_{partition}").set(lag)
                worker_metrics().lag.labels(str(partition)).set(lag)
