"""Reads messages from a Kafka topic, either without an end or up to the current end of the topic.

    messages = pipeline | ReadKafka(settings, topic="companies", group="similarity")

Each partition is read by one reader from the offset in its checkpoint mark; a job without a mark continues at the
committed offsets of the consumer group. The offsets of a Beam bundle are committed when the runner finalizes it. If the
job fails before, its messages are read again: at least once, never skipped. Unless the job reads only to the current
end, partitions that are added later are detected within a minute and read from their beginning.
"""

from typing import Any

import apache_beam as beam
from apache_beam.io.unbounded_source import ReadFromUnboundedSource

from pipelines.sources.kafka_consumers import GroupTopic
from pipelines.sources.kafka_reader import KafkaSource, OnLost, Start
from similarity.errors import InvalidInput
from similarity.ingest.messages import Message
from similarity.kafka import KafkaSettings

# Seconds until an idle reader is polled again. Each poll costs Flink some state (Beam issue 27648, fixed since).
IDLE_SECONDS = 0.5


class ReadKafka(beam.PTransform):
    """PBegin -> PCollection[Message].

    Only the addresses of `settings` are part of the job; each worker reads its login from the SIMILARITY_KAFKA_
    variables of its own environment. `max_messages` and `max_seconds` limit the Beam bundle of one reader: the messages
    that are committed, or repeated by a retry, together. `until_end`: read only to the end of the topic at the start of
    the job. `start`: where to start in partitions without a committed offset. `on_lost`: whether the job fails if
    unread messages were deleted, or continues at the earliest offset that is left.

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
            group_topic=GroupTopic(servers=settings.servers, topic=topic, group=group),
            start=start,
            on_lost=on_lost,
            until_end=until_end,
        )
        self._caps = {"max_records_per_bundle": max_messages, "max_read_time_seconds": max_seconds}
        self._idle_seconds = idle_seconds

    def expand(self, pbegin: Any) -> Any:
        """Read the topic, fused with the following transforms."""
        read = ReadFromUnboundedSource(self._source, poll_interval=self._idle_seconds, **self._caps)
        messages = pbegin | "ReadTopic" >> read.with_output_types(Message)
        messages.is_bounded = self._source.until_end
        return messages
