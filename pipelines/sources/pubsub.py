"""Messages from a Google Pub/Sub subscription.

    messages = pipeline | ReadPubSub("projects/acme/subscriptions/companies")

The company's id is the attribute `id`, or in the value; the value is the message's data, and none deletes
the company. The time is when the message was published.

It needs Beam's gcp extra, and runs on Dataflow, which reads and acknowledges by itself: when a bundle is
final. Beam's Python SDK has no reader of its own for FnApiRunner, Prism or Flink.
"""

from datetime import datetime

import apache_beam as beam
from apache_beam.io.gcp.pubsub import PubsubMessage, ReadFromPubSub

from pipelines.file_systems import is_installed
from similarity.errors import InvalidInput
from similarity.ingest.messages import Message

ID_ATTRIBUTE = "id"


class ReadPubSub(beam.PTransform):
    """PBegin -> PCollection[Message]: what is published, for as long as the job runs.

    Raises:
        InvalidInput: Beam's gcp extra is missing, or the subscription is not named in full.
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
        """Reads, and makes messages of what Pub/Sub has."""
        return begin | "Published" >> self._read | "Message" >> beam.Map(message_of).with_output_types(Message)


def message_of(published: PubsubMessage) -> Message:
    """What Pub/Sub delivers as a message; its id there is its position."""
    key = (published.attributes or {}).get(ID_ATTRIBUTE)
    when = published.publish_time
    return Message(
        position=f"pubsub:{published.message_id}",
        key=None if key is None else key.encode(),
        value=published.data or None,
        time=datetime.combine(when.date(), when.timetz()),  # Google's own kind of datetime stays out
    )
