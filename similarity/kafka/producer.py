"""Writing messages durably, and saying which were not written."""

from types import TracebackType
from typing import Any, Self

from similarity.kafka.client import COMMON, confluent, made
from similarity.kafka.records import NotDelivered
from similarity.kafka.settings import KafkaSettings

DELIVERY_SECONDS = 120.0
PRODUCER = {
    **COMMON,
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 5,
    "compression.type": "lz4",
    # What a topic takes is the topic's to say; a dead letter is longer than its message.
    "message.max.bytes": 16_777_216,
}


class KeyedProducer:
    """Writes keyed messages durably: acknowledged by all in-sync replicas, each once, in order per key.

    Nothing is known to be written before `flush` has returned.
    """

    def __init__(self, settings: KafkaSettings, *, timeout: float = DELIVERY_SECONDS) -> None:
        """`timeout`: seconds after which a message that no broker took is given up."""
        self._timeout = timeout
        self._confluent = confluent()
        self._waiting: dict[int, bytes] = {}
        self._failed: list[tuple[bytes, str]] = []
        self._sent = 0
        own = {**PRODUCER, "delivery.timeout.ms": int(timeout * 1000), "error_cb": lambda error: None}
        self._producer = made(self._confluent.Producer, {**settings.client(), **own})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.flush()

    def send(self, topic: str, *, key: bytes, value: bytes | None) -> None:
        """Puts a message on its way; None as value is a tombstone. Waits while the queue is full."""
        number, self._sent = self._sent, self._sent + 1
        self._waiting[number] = key

        def on_delivery(error: Any, _: Any) -> None:
            del self._waiting[number]
            if error is not None:
                self._failed.append((key, error.str()))

        while True:
            try:
                self._producer.produce(topic, key=key, value=value, on_delivery=on_delivery)
            except BufferError:
                self._producer.poll(0.1)
            except self._confluent.KafkaException as error:  # too large, say: it was never queued
                del self._waiting[number]
                self._failed.append((key, error.args[0].str()))
                return
            else:
                self._producer.poll(0)
                return

    def flush(self) -> None:
        """Returns when every message is written.

        Raises:
            NotDelivered: some are not, or nobody knows; send them again, which is harmless.
        """
        self._producer.flush(self._timeout + 1)
        failed = [*self._failed, *((key, "no answer yet") for key in self._waiting.values())]
        self._failed = []
        if failed:
            keys, reasons = zip(*failed, strict=True)
            raise NotDelivered(
                f"Kafka did not take {len(failed):,} messages ({reasons[0]}), the first of them with key "
                f"{keys[0]!r:.140}; send them again",
                keys,
            )
