"""Builds the services of the write routes for the chosen mode."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from similarity.company import DeletedCompany
from similarity.errors import InvalidInput
from similarity.feedback.protocol import Workspace
from similarity.index.protocol import CompanyIndex
from similarity.kafka import KafkaSettings, KeyedProducer
from similarity.model.encoder_protocol import Encoder
from similarity.upkeep.audit import AuditRecord
from similarity.upkeep.erasure import Eraser

from .destinations import IndexDestination, KafkaDestination
from .erasing import ErasureService, ErasureThread
from .group_commit import MAX_WAITING_REQUESTS, Destination, GroupCommit
from .write_service import WriteMode, WriteService, write_one

SECONDS_TO_DELIVER = 10.0
"""How long brokers may take to acknowledge a message. A client waits, and can send its write again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTopic:
    """The topic to which writes are published."""

    settings: KafkaSettings
    topic: str


@dataclass(frozen=True, slots=True)
class Writing:
    """The services of the write routes. Close them before the index."""

    writes: WriteService
    erasures: ErasureService

    def close(self) -> None:
        """Finish the waiting writes; unfinished erasures are left to the next start."""
        self.erasures.thread.close()
        self.writes.close()


def set_up_writing(
    mode: WriteMode,
    *,
    index: CompanyIndex,
    encoders: Mapping[str, Encoder],
    workspace: Workspace | None = None,
    kafka: KafkaTopic | None = None,
    audit: AuditRecord | None = None,
    max_waiting: int = MAX_WAITING_REQUESTS,
) -> Writing:
    """Return the services for `mode`; direct writing needs `encoders`, publishing needs `kafka`.

    `max_waiting`: see `GroupCommit`; keep it below the limit on requests in work, so that a slow store stops no reads.

    Raises:
        InvalidInput: the mode is Kafka, but no topic is given.
    """
    destination: Destination = IndexDestination(index, encoders)
    if mode is WriteMode.KAFKA:
        if kafka is None:
            raise InvalidInput("writes go to Kafka, but no topic is given; set SIMILARITY_SERVICE_KAFKA_TOPIC")
        producer = partial(KeyedProducer, kafka.settings, timeout=SECONDS_TO_DELIVER)
        destination = KafkaDestination(producer, kafka.topic, index)
    writes = WriteService(
        None if mode is WriteMode.OFF else GroupCommit(destination, audit=audit, max_waiting=max_waiting), index
    )
    publishes = mode is WriteMode.KAFKA
    return Writing(writes, erasure_service(index, writes, workspace, publishes=publishes, audit=audit))


def erasure_service(
    index: CompanyIndex,
    writes: WriteService,
    workspace: Workspace | None = None,
    *,
    publishes: bool = False,
    audit: AuditRecord | None = None,
) -> ErasureService:
    """Return the service that erases from `index` and `workspace`. `publishes`: `writes` go to Kafka."""

    def publish(tombstone: DeletedCompany) -> int:
        return write_one(writes.require_on(), tombstone).version or tombstone.version

    eraser = Eraser(index, workspace, publish if publishes else None)
    record = audit or AuditRecord(None)
    return ErasureService(eraser, writes, ErasureThread(eraser, audit=record), record)
