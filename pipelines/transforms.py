"""From messages to documents in the index, and dead letters for the rest.

    taken, dead = messages | Ingest(workplace)

    Decode          Message -> Decoded, or the DeadLetter it became
    EmbedAndWrite   Decoded -> Taken, and DeadLetter as a second output

Both are ParDo of one fused stage without state or shuffle, and what EmbedAndWrite buffers it settles
before its bundle ends. So when a runner calls a bundle final, and the source acknowledges it, each of
its messages is in the index or among the dead letters: nothing waits anywhere else. Messages may come
twice (a bundle is tried again), which changes nothing: writes are idempotent by version.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import apache_beam as beam
import numpy as np
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.shared import Shared
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue
from numpy.typing import NDArray

from pipelines.metrics import JobMetrics, worker_metrics
from pipelines.workplace import OpenWorkplace, Workplace
from similarity.company import utc_now
from similarity.errors import InvalidCompany
from similarity.index.protocol import WriteOutcome
from similarity.ingest import messages
from similarity.ingest.dead_letters import DeadLetter, Stage
from similarity.ingest.delivery import PATIENCE_SECONDS, Delivery, DeliveryResult
from similarity.ingest.messages import NO_COLUMNS, Message
from similarity.ingest.records import Change, Columns, VersionedCompany
from similarity.ingest.writer_leases import WriterLease
from similarity.model.encoder_protocol import Encoder
from similarity.text import TextSettings

# The longer, the better texts of like length meet; a poison costs 2 log2 of it in calls of the encoder.
BATCH_MESSAGES = 1_024
# However long the descriptions are, a worker holds no more than about this of each bundle.
BATCH_BYTES = 4_000_000
DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A message, and the change it asks for."""

    message: Message
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A message that is in the index now: applied, unchanged or superseded by a newer one."""

    position: str
    id: str
    outcome: WriteOutcome


class Ingested(NamedTuple):
    """The two outputs of Ingest."""

    taken: "beam.PCollection[Taken]"
    dead: "beam.PCollection[DeadLetter]"


class Ingest(beam.PTransform):
    """PCollection[Message] -> Ingested.

    `columns` are the names that files have for the fields. `patience` is how many seconds a worker
    waits for a store that takes nothing before its bundle fails. With a `metrics_port` each worker
    process serves Prometheus' metrics there, or on the next free port.
    """

    def __init__(
        self,
        workplace: Workplace,
        *,
        columns: Columns = NO_COLUMNS,
        batch_messages: int = BATCH_MESSAGES,
        patience: float = PATIENCE_SECONDS,
        metrics_port: int | None = None,
    ) -> None:
        super().__init__()
        self._columns = columns
        self._writing = EmbedAndWrite(
            workplace, batch_messages=batch_messages, patience=patience, metrics_port=metrics_port
        )

    def expand(self, pcoll: "beam.PCollection[Message]") -> Any:  # Beam warns of a hint of two outputs
        """Decodes, embeds and writes; returns Ingested."""
        decoded = pcoll | "Decode" >> beam.ParDo(Decode(self._columns))
        outputs = decoded | "EmbedAndWrite" >> beam.ParDo(self._writing).with_outputs(DEAD, main="taken")
        return Ingested(taken=outputs.taken, dead=outputs[DEAD])


class Decode(beam.DoFn):
    """Message -> Decoded | DeadLetter: both go the same way, so that no stage is cut in two."""

    def __init__(self, columns: Columns = NO_COLUMNS) -> None:
        super().__init__()
        self._columns = columns

    def process(self, message: Message) -> Iterator[Decoded | DeadLetter]:
        """Yields the change that a message holds, or its dead letter."""
        try:
            parsed = messages.decode(message, columns=self._columns)
        except InvalidCompany as error:
            yield DeadLetter(message=message, stage=Stage.DECODE, reason=str(error))
        else:
            yield Decoded(message=message, change=parsed.change)


Waiting: TypeAlias = tuple[Decoded, Timestamp]
Output: TypeAlias = "WindowedValue | beam.pvalue.TaggedOutput"


class EmbedAndWrite(beam.DoFn):
    """Decoded | DeadLetter -> Taken, and DeadLetter under the tag DEAD. Batches lie inside a bundle."""

    def __init__(
        self,
        workplace: Workplace,
        *,
        batch_messages: int = BATCH_MESSAGES,
        patience: float = PATIENCE_SECONDS,
        metrics_port: int | None = None,
    ) -> None:
        super().__init__()
        self._workplace = workplace
        self._batch_messages = batch_messages
        self._patience = patience
        self._metrics_port = metrics_port
        self._shared = Shared()  # one open workplace for all threads of a process

    def setup(self) -> None:
        """Opens the index, or finds it open, and takes a writer's lease."""
        if self._metrics_port is not None:
            worker_metrics().serve(self._metrics_port)
        self._metrics = JobMetrics()
        self._place: OpenWorkplace = self._shared.acquire(self._workplace.open)
        self._encoders = CountedEncoders(self._place.encoders)
        self._writer = WriterLease(self._place.index)
        self._writer.__enter__()
        self._delivery = Delivery(
            self._writer,
            self._encoders,
            patience=self._patience,
            on_retry=lambda changes, _: self._metrics.retried(changes),
        )

    def teardown(self) -> None:
        """Gives the lease back."""
        self._writer.__exit__(None, None, None)

    def start_bundle(self) -> None:
        """Nothing is left over from the bundle before: it settled everything, or failed and comes again."""
        self._waiting: list[Waiting] = []
        self._bytes = 0

    def process(
        self, decoded: Decoded | DeadLetter, timestamp: Timestamp = beam.DoFn.TimestampParam
    ) -> Iterator["Output"]:
        """Buffers a change; a full batch is settled at once."""
        if isinstance(decoded, DeadLetter):
            self._metrics.ended(DEAD)
            yield _dead(decoded, timestamp)
            return
        self._waiting.append((decoded, timestamp))
        self._bytes += len(decoded.message.value or b"")
        if len(self._waiting) >= self._batch_messages or self._bytes >= BATCH_BYTES:
            yield from self._settle()

    def finish_bundle(self) -> Iterator["Output"]:
        """Settles what is left."""
        yield from self._settle()

    def _settle(self) -> list["Output"]:
        if not self._waiting:
            return []
        batch, self._waiting, self._bytes = self._waiting, [], 0
        began = time.monotonic()
        ends = self._delivery.deliver([decoded.change for decoded, _ in batch])
        self._count([decoded for decoded, _ in batch], ends, seconds=time.monotonic() - began)
        return [_output(decoded.message, end, when) for (decoded, when), end in zip(batch, ends, strict=True)]

    def _count(self, batch: Sequence[Decoded], ends: Sequence[DeliveryResult], *, seconds: float) -> None:
        now = utc_now()
        self._metrics.batch(len(batch), seconds)
        texts = self._encoders.taken()
        companies = sum(isinstance(decoded.change, VersionedCompany) for decoded in batch)
        self._metrics.embedded(texts)
        self._metrics.reused(max(0, companies - texts))
        for decoded, end in zip(batch, ends, strict=True):
            self._metrics.ended(DEAD if end.stage else end.outcome.value)
            if end.outcome is WriteOutcome.APPLIED:
                self._metrics.delay(max(0.0, (now - decoded.message.time).total_seconds()))


class CountedEncoders(Mapping[str, Encoder]):
    """Encoders that count the texts they read. For one thread."""

    def __init__(self, encoders: Mapping[str, Encoder]) -> None:
        self._encoders = encoders
        self._texts = 0

    def taken(self) -> int:
        """How many texts were read since this was last asked."""
        texts, self._texts = self._texts, 0
        return texts

    def count(self, texts: int) -> None:
        """So many texts were read."""
        self._texts += texts

    def __getitem__(self, encoder_id: str) -> Encoder:
        return _Counted(self._encoders[encoder_id], self)

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoders)

    def __len__(self) -> int:
        return len(self._encoders)


class _Counted:
    def __init__(self, encoder: Encoder, counter: CountedEncoders) -> None:
        self._encoder = encoder
        self._counter = counter

    @property
    def encoder_id(self) -> str:
        return self._encoder.encoder_id

    @property
    def text_settings(self) -> TextSettings:
        return self._encoder.text_settings

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = self._encoder.encode(texts)
        self._counter.count(len(texts))
        return vectors


def _output(message: Message, end: DeliveryResult, timestamp: Timestamp) -> "Output":
    if end.stage is not None:
        return _dead(DeadLetter(message=message, stage=end.stage, reason=end.reason), timestamp)
    return _at(Taken(position=message.position, id=end.id, outcome=end.outcome), timestamp)


def _dead(letter: DeadLetter, timestamp: Timestamp) -> "Output":
    return beam.pvalue.TaggedOutput(DEAD, _at(letter, timestamp))


def _at(value: Taken | DeadLetter, timestamp: Timestamp) -> WindowedValue:
    """Sources of messages are not windowed, so neither is what becomes of them."""
    return WindowedValue(value, timestamp, (GlobalWindow(),))
