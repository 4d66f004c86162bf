"""What comes from a topic, and what can be wrong with one; no client is needed for it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from similarity.company import CLOCK_SKEW_ALLOWANCE, EPOCH
from similarity.errors import SimilarityError
from similarity.ingest.messages import Message


class KafkaUnavailable(SimilarityError):
    """No broker answers, or not in time."""


class NotDelivered(SimilarityError):
    """Messages that no broker has acknowledged; `keys` are theirs."""

    def __init__(self, message: str, keys: Sequence[bytes]) -> None:
        super().__init__(message)
        self.keys = tuple(keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of a topic. `timestamp` in milliseconds since 1970, None where the broker has none."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int | None

    def message(self, received: datetime) -> Message:
        """The record as a message; `received` is its time where the topic keeps none.

        A time ahead of the clock would be a version that nothing later could supersede, so such a
        message is unreadable.
        """
        position = f"kafka:{self.topic}/{self.partition}/{self.offset}"
        message = Message(position=position, key=self.key, value=self.value, time=received)
        if self.timestamp is None:
            return message
        latest = (received + CLOCK_SKEW_ALLOWANCE - EPOCH) // timedelta(milliseconds=1)
        if self.timestamp > latest:
            reason = f"its Kafka timestamp, {self.timestamp} ms, is more than 5 minutes ahead of the reader's clock"
            return replace(message, unreadable=f"{reason}; set the producer's clock and send it again")
        return replace(message, time=EPOCH + timedelta(milliseconds=self.timestamp))


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """All records of a partition before `offset` have been read, and there are no more now."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The offset that would be read next is not in the partition: deleted by retention, or never written."""

    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPosition:
    """How far a group has come in a partition: everything before `committed` is done, `lag` offsets are left."""

    partition: int
    committed: int
    lag: int
