"""Reads messages from a Google Pub/Sub subscription.

    messages = pipeline | ReadPubSub("projects/acme/subscriptions/companies")

The id of the company is the attribute `id`, or in the value. The value is the data of the message; empty data delete
the company. The time is that of publication.

This needs Beam's gcp extra and runs only on Dataflow, which reads messages itself and acknowledges them when a Beam
bundle is committed. Beam's Python SDK has no Pub/Sub reader for FnApiRunner, Prism or Flink.
"""

from datetime import datetime

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage, ReadFromPubSub

from pipelines.file_systems import is_installed
from similarity.errors import InvalidInput
from similarity.ingest.messages import Message

ID_ATTRIBUTE = "id"


class ReadPubSub(beam.PTransform):
    """PBegin -> PCollection[Message]: the published messages, until the job ends.

    Raises:
        InvalidInput: Beam's gcp extra is not installed, or the name of the subscription is not complete.
    """

    def __init__(self, subscription: str) -> None:
        super().__init__()
        if not is_installed("google.cloud.pubsub"):
            raise InvalidInput("reading Pub/Sub needs Beam's gcp extra: pip install 'apache-beam[gcp]'")
        try:
            self._read = ReadFromPubSub(subscription=subscription, with_attributes=True)
        except ValueError as error:
            raise InvalidInput(f"{subscription!r} cannot be read: {error}") from error

    def expand(self, begin: beam.pvalue.PBegin) -> "beam.PCollection[Message]":
        """Read the subscription and convert its messages."""
        return begin | "Published" >> self._read | "Message" >> beam.Map(message_of).with_output_types(Message)


def message_of(published: PubsubMessage) -> Message:
    """Convert a Pub/Sub message; its position is its Pub/Sub id."""
    key = (published.attributes or {}).get(ID_ATTRIBUTE)
    when = published.publish_time
    return Message(
        position=f"pubsub:{published.message_id}",
        key=None if key is None else key.encode(),
        value=published.data or None,
        time=datetime.combine(when.date(), when.timetz()),  # a plain datetime instead of Google's subclass
    )
