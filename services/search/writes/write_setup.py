"""Puts the parts of writing together, as the chosen mode wants them."""

from collections.abc import Mapping
from dataclasses import dataclass

from similarity.company import DeletedCompany
from similarity.errors import InvalidInput
from similarity.feedback.protocol import Workspace
from similarity.index.protocol import CompanyIndex
from similarity.kafka import KafkaSettings, KeyedProducer
from similarity.model.encoder_protocol import Encoder
from similarity.upkeep.audit import AuditRecord
from similarity.upkeep.erasure import Eraser

from .committing import GroupCommit, Sink
from .erasing import ErasureService, ErasureThread
from .sinks import IndexSink, KafkaSink
from .writing import WriteMode, WriteService, write_one

SECONDS_TO_DELIVER = 10.0
"""For a message that no broker acknowledges: somebody waits for the answer, and can ask again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTopic:
    """Where writes are published."""

    settings: KafkaSettings
    topic: str


@dataclass(frozen=True, slots=True)
class Writing:
    """The services behind `write_routes`, closed before the index is."""

    writes: WriteService
    erasures: ErasureService

    def close(self) -> None:
        """Finishes the writes that wait; erasures that are under way are left to the next start."""
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
) -> Writing:
    """The services for `mode`; `encoders` are needed to write directly, `kafka` to publish.

    Raises:
        InvalidInput: writes shall go to Kafka, but no topic is named.
    """
    writes = WriteService(_commits(mode, index=index, encoders=encoders, kafka=kafka, audit=audit), index)
    erasures = erasure_service(index, writes, workspace, publishes=mode is WriteMode.KAFKA, audit=audit)
    return Writing(writes, erasures)


def erasure_service(
    index: CompanyIndex,
    writes: WriteService,
    workspace: Workspace | None = None,
    *,
    publishes: bool = False,
    audit: AuditRecord | None = None,
) -> ErasureService:
    """The service that erases from `index` and `workspace`; `publishes` says that `writes` go to Kafka."""

    def publish(tombstone: DeletedCompany) -> None:
        write_one(writes.require_on(), tombstone)

    eraser = Eraser(index, workspace, publish if publishes else None)
    record = audit or AuditRecord(None)
    return ErasureService(eraser, writes, ErasureThread(eraser, audit=record), record)


def _commits(
    mode: WriteMode,
    *,
    index: CompanyIndex,
    encoders: Mapping[str, Encoder],
    kafka: KafkaTopic | None,
    audit: AuditRecord | None,
) -> GroupCommit | None:
    if mode is WriteMode.OFF:
        return None
    sink: Sink = IndexSink(index, encoders)
    if mode is WriteMode.KAFKA:
        if kafka is None:
            raise InvalidInput("writes shall go to Kafka, but no topic is named; set SIMILARITY_SERVICE_KAFKA_TOPIC")
        place = kafka
        sink = KafkaSink(lambda: KeyedProducer(place.settings, timeout=SECONDS_TO_DELIVER), place.topic, index)
    return GroupCommit(sink, audit=audit)
