"""Records, events and errors of topics; this module does not need the Kafka client."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from similarity.company import EPOCH, LAST_TIME
from similarity.errors import SimilarityError
from similarity.ingest.messages import Message

LAST_MILLISECOND = (LAST_TIME - EPOCH) // timedelta(milliseconds=1)
SLOTS = 900
"""Microseconds of a millisecond that offsets give; the others order a company's changes around a multiple of SLOTS."""


class KafkaUnavailable(SimilarityError):
    """No broker answered in time."""


class NotDelivered(SimilarityError):
    """Messages that no broker has acknowledged; `keys` are their keys."""

    def __init__(self, message: str, keys: Sequence[bytes]) -> None:
        super().__init__(message)
        self.keys = tuple(keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of a topic. `timestamp`: milliseconds since 1970; None if the record has none."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int | None

    def message(self, received: datetime, *, after: datetime = EPOCH) -> Message:
        """Return the record as a message; its time is `received` if the record has no timestamp.

        Within the millisecond of the timestamp, the offset gives the microsecond, so that changes of a company keep
        their order and have the same time whenever they are read. After SLOTS offsets, microseconds start at 0 again.
        The time is then above `after`, the time of an earlier message of the same key, if the millisecond allows it.
        """
        time = received
        if self.timestamp is not None:
            millisecond = EPOCH + timedelta(milliseconds=min(self.timestamp, LAST_MILLISECOND))
            time = millisecond + timedelta(microseconds=self.offset % SLOTS)
            if millisecond <= after < millisecond + timedelta(microseconds=999):
                time = max(time, after + timedelta(microseconds=1))
        position = f"kafka:{self.topic}/{self.partition}/{self.offset}"
        return Message(position=position, key=self.key, value=self.value, time=time)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of a partition: all records before `offset` have been read."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The next offset to read is not in the partition: it was deleted by retention, or never written."""

    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPosition:
    """The position of a group in a partition: records before `committed` are processed, `lag` offsets remain."""

    partition: int
    committed: int
    lag: int
