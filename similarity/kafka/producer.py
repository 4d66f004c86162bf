"""A producer that writes messages durably and reports those that were not written."""

from types import TracebackType
from typing import Any, Self

from similarity.kafka.client import COMMON, confluent, create_client
from similarity.kafka.records import NotDelivered
from similarity.kafka.settings import KafkaSettings

DELIVERY_SECONDS = 120.0
PRODUCER = {
    **COMMON,
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 5,
    "compression.type": "lz4",
    # The topic has its own limit; a dead letter is longer than its message.
    "message.max.bytes": 16_777_216,
}


class KeyedProducer:
    """Writes keyed messages: acknowledged by all in-sync replicas, without duplicates, in order per key.

    A message is certainly written only after `flush` has returned.
    """

    def __init__(self, settings: KafkaSettings, *, timeout: float = DELIVERY_SECONDS) -> None:
        """`timeout`: seconds after which a message that no broker has acknowledged fails."""
        self._timeout = timeout
        self._confluent = confluent()
        self._waiting: dict[int, bytes] = {}
        self._failed: list[tuple[bytes, str]] = []
        self._sent = 0
        own = {**PRODUCER, "delivery.timeout.ms": int(timeout * 1000), "error_cb": lambda error: None}
        self._producer = create_client(self._confluent.Producer, {**settings.client(), **own})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.flush()

    def send(self, topic: str, *, key: bytes, value: bytes | None) -> None:
        """Queue a message; a value of None is a tombstone. Waits while the queue is full."""
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
            except self._confluent.KafkaException as error:  # not queued, for example because it is too large
                del self._waiting[number]
                self._failed.append((key, error.args[0].str()))
                return
            else:
                self._producer.poll(0)
                return

    def flush(self) -> None:
        """Wait until every message is written.

        Raises:
            NotDelivered: some messages may not be written; send them again (a repeated write has no further effect).
        """
        self._producer.flush(self._timeout + 1)
        failed = [*self._failed, *((key, "no answer yet") for key in self._waiting.values())]
        self._failed = []
        if failed:
            keys, reasons = zip(*failed, strict=True)
            raise NotDelivered(
                f"Kafka did not accept {len(failed):,} messages ({reasons[0]}); the first has the key "
                f"{keys[0]!r:.140}; send them again",
                keys,
            )
