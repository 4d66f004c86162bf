"""Reads messages from a Kafka topic, either without an end or up to the current end of the topic.

    messages = pipeline | ReadKafka(settings, topic="companies", group="similarity")

Each partition is read by one reader from the offset in its checkpoint mark; a job without a mark continues at the
committed offsets of the consumer group. The offsets of a Beam bundle are committed when the runner finalizes it. If the
job fails before, its messages are read again: at least once, never skipped. Partitions that are added later are
detected within a minute and read from their beginning.
"""

import logging
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import apache_beam as beam
from apache_beam.coders import Coder
from apache_beam.io.unbounded_source import ReadFromUnboundedSource, UnboundedSource

from pipelines.sources.kafka_consumers import GroupTopic
from pipelines.sources.kafka_reader import HowToRead, KafkaMark, KafkaMarkCoder, KafkaReader, OnLost, Start, TopicShare
from similarity.errors import InvalidInput
from similarity.ingest.messages import Message
from similarity.kafka import KafkaSettings, KafkaUnavailable, topic_partitions

# Seconds until an idle reader is polled again. Each poll costs Flink some state (Beam issue 27648, fixed since).
IDLE_SECONDS = 0.5
SPLIT_SECONDS = 30.0
LOGGER = logging.getLogger(__name__)


class ReadKafka(beam.PTransform):
    """PBegin -> PCollection[Message].

    Only the addresses of `settings` travel with the job; each worker reads its login from the
    SIMILARITY_KAFKA_ variables of its own environment. `max_messages` and `max_seconds` bound a bundle
    of one partition: what a commit waits for, and what a retry repeats. `until_end` reads to where the
    topic ends when the job starts. `start` is where a partition starts that the group has no offset
    of. `on_lost` is what happens where retention has deleted what was not read yet: the job fails, or
    goes on with the "earliest" that is left.

    Raises:
        InvalidInput: the name of the topic or of the group is empty.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        topic: str,
        group: str,
        until_end: bool = False,
        start: Start = "earliest",
        on_lost: OnLost = "fail",
        max_messages: int = 1_000,
        max_seconds: float = 1.0,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        super().__init__()
        if not topic or not group:
            raise InvalidInput("reading Kafka needs the name of a topic and of a group")
        self._source = KafkaSource(
            reading=GroupTopic(servers=settings.servers, topic=topic, group=group),
            how=HowToRead(start=start, on_lost=on_lost, until_end=until_end),
        )
        self._caps = {"max_records_per_bundle": max_messages, "max_read_time_seconds": max_seconds}
        self._idle_seconds = idle_seconds

    def expand(self, pbegin: Any) -> Any:
        """Read the topic, fused with the following transforms."""
        read = ReadFromUnboundedSource(self._source, poll_interval=self._idle_seconds, **self._caps)
        messages = pbegin | "ReadTopic" >> read.with_output_types(Message)
        messages.is_bounded = self._source.how.until_end
        return messages


class KafkaSource(TopicShare, UnboundedSource):
    """A share of a topic as a Beam source; a whole topic is split into one share for each worker."""

    def split(self, desired_num_splits: int, options: Any = None) -> Iterable["KafkaSource"]:
        """Return one source for each partition; if there are more than `desired_num_splits`, partitions share one."""
        if self.partitions is not None:
            return [self]
        partitions = self._all_partitions()
        if partitions is None:
            return [self]  # one reader then reads all of them, once it can
        shares = [partitions[start::desired_num_splits] for start in range(min(desired_num_splits, len(partitions)))]
        return [
            replace(self, partitions=share, and_from=max(partitions) + 1 if share is shares[0] else None)
            for share in shares
        ]

    def create_reader(self, options: Any, checkpoint_mark: KafkaMark | None) -> KafkaReader:
        """Return a reader that continues after the mark."""
        return KafkaReader(self, checkpoint_mark)

    def get_checkpoint_mark_coder(self) -> Coder:
        """Return the coder of marks, which are JSON."""
        return KafkaMarkCoder(self.reading)

    def _all_partitions(self) -> tuple[int, ...] | None:
        """Return the numbers of all partitions; None if Kafka is unavailable for SPLIT_SECONDS."""
        deadline = time.monotonic() + SPLIT_SECONDS
        while True:
            try:
                return topic_partitions(self.reading.settings(), self.reading.topic)
            except KafkaUnavailable as error:
                if time.monotonic() > deadline:
                    LOGGER.warning("%s; one worker will read all partitions when it is back", error)
                    return None
            except InvalidInput:
                return None  # Beam would swallow it here; the reader will raise it
