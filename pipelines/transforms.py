"""Beam transforms that write messages to the index, and return a dead letter for each message that they cannot write.

    stored, dead = messages | Ingest(worker_settings)

    Decode          Message -> Decoded or DeadLetter
    EmbedAndWrite   Decoded -> StoredMessage, and DeadLetter as a second output

Both DoFns run in one fused stage, without state or shuffle, and EmbedAndWrite writes its buffer before finish_bundle
returns. Therefore each message is in the index or among the dead letters when the runner commits a Beam bundle and the
source acknowledges its messages. A Beam bundle may be retried. Writes are idempotent by version, so a message that is
processed again changes nothing.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.shared import Shared
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.metrics import JobMetrics, worker_metrics
from pipelines.worker_settings import WorkerResources, WorkerSettings
from similarity.company import CLOCK_SKEW_ALLOWANCE, utc_now
from similarity.errors import IndexUnavailable, InvalidCompany
from similarity.index.protocol import WriteOutcome
from similarity.ingest import messages
from similarity.ingest.dead_letters import DeadLetter, Stage
from similarity.ingest.delivery import PATIENCE_SECONDS, Delivery, DeliveryResult
from similarity.ingest.messages import NO_COLUMNS, Message
from similarity.ingest.records import Change, Columns, VersionedCompany
from similarity.ingest.writer_leases import WriterLease

BATCH_MESSAGES = 1_024
"""The buffer is written when it has this many messages.

In a large batch the encoder can group texts of similar length. But if the encoder fails on one text, the text is found
by bisection, which needs about 2 * log2(BATCH_MESSAGES) further calls.
"""
BATCH_BYTES = 4_000_000
"""The buffer is written when its messages have this many bytes."""
DEAD = "dead"
"""Tag of the output of dead letters. In the metrics, the outcome of their messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A message and the change that it contains."""

    message: Message
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message with a final outcome in the index: applied, unchanged, or superseded by a newer version."""

    position: str
    id: str
    outcome: WriteOutcome


class Ingested(NamedTuple):
    """The two outputs of Ingest."""

    stored: "beam.PCollection[StoredMessage]"
    dead: "beam.PCollection[DeadLetter]"


class Ingest(beam.PTransform):
    """PCollection[Message] -> Ingested.

    `columns`: names of the columns of files, by field. `batch_messages`: maximum number of messages that are encoded
    and written together. `patience`: seconds for which a worker retries while the index accepts no write; then the Beam
    bundle fails. `metrics_port`: each worker process serves Prometheus metrics on this port or, if another process uses
    it, on the next free port; None for no metrics.
    """

    def __init__(
        self,
        worker_settings: WorkerSettings,
        *,
        columns: Columns = NO_COLUMNS,
        batch_messages: int = BATCH_MESSAGES,
        patience: float = PATIENCE_SECONDS,
        metrics_port: int | None = None,
    ) -> None:
        super().__init__()
        self._columns = columns
        self._embed_and_write = EmbedAndWrite(
            worker_settings, batch_messages=batch_messages, patience=patience, metrics_port=metrics_port
        )

    # The return type is Any, because Beam's type inference warns about a return type with two outputs.
    def expand(self, pcoll: "beam.PCollection[Message]") -> Any:
        """Decode, embed and write; return Ingested."""
        decoded = pcoll | "Decode" >> beam.ParDo(Decode(self._columns))
        outputs = decoded | "EmbedAndWrite" >> beam.ParDo(self._embed_and_write).with_outputs(DEAD, main="stored")
        return Ingested(stored=outputs.stored, dead=outputs[DEAD])


class Decode(beam.DoFn):
    """Message -> Decoded | DeadLetter.

    Dead letters are in the main output too, because a second output would split the fused stage.
    """

    def __init__(self, columns: Columns = NO_COLUMNS) -> None:
        super().__init__()
        self._columns = columns

    def setup(self) -> None:
        """Make the counters."""
        self._metrics = JobMetrics()

    def process(self, message: Message) -> Iterator[Decoded | DeadLetter]:
        """Yield the decoded message, or a dead letter if the message is invalid."""
        try:
            # Such a time would be a version that later changes could not supersede.
            if message.time > utc_now() + CLOCK_SKEW_ALLOWANCE:
                reason = f"{message.time} is more than 5 minutes ahead of the worker's clock"
                raise InvalidCompany("time", f"{reason}; if that was behind, replay the message, else send it again")
            parsed = messages.decode(message, columns=self._columns)
        except InvalidCompany as error:
            yield DeadLetter(message=message, stage=Stage.DECODE, reason=str(error))
        else:
            self._metrics.count("warned_values", len(parsed.warnings))
            yield Decoded(message=message, change=parsed.change)


BufferedMessage: TypeAlias = tuple[Decoded, Timestamp]
Output: TypeAlias = "WindowedValue | beam.pvalue.TaggedOutput"


class EmbedAndWrite(beam.DoFn):
    """Decoded | DeadLetter -> StoredMessage in the main output, and DeadLetter in the output with the tag DEAD.

    A batch contains messages of one Beam bundle only. Parameters: see `Ingest`.
    """

    def __init__(
        self,
        worker_settings: WorkerSettings,
        *,
        batch_messages: int = BATCH_MESSAGES,
        patience: float = PATIENCE_SECONDS,
        metrics_port: int | None = None,
    ) -> None:
        super().__init__()
        self._worker_settings = worker_settings
        self._batch_messages = batch_messages
        self._patience = patience
        self._metrics_port = metrics_port
        self._shared = Shared()  # one WorkerResources for all threads of a process

    def setup(self) -> None:
        """Open the index, shared by the threads of this process."""
        if self._metrics_port is not None:
            worker_metrics().serve(self._metrics_port)
        self._metrics = JobMetrics()
        self._open: WorkerResources = self._shared.acquire(self._worker_settings.open)
        # The first batch takes the lease: a runner starts further instances at any time, also while the index is away,
        # and Prism ends the job if one of them fails here. `Delivery` waits instead.
        self._writer = WriterLease(self._open.index)
        self._delivery = Delivery(
            self._writer,
            self._open.encoders,
            patience=self._patience,
            on_retry=lambda changes, _: self._metrics.count("retries", changes),
        )

    def teardown(self) -> None:
        """Release the writer lease; if the index is unavailable, the lease expires by itself."""
        with suppress(IndexUnavailable):
            self._writer.__exit__(None, None, None)

    def start_bundle(self) -> None:
        """Empty the buffer. The previous Beam bundle wrote all its messages, or failed and is retried by the runner."""
        self._buffer: list[BufferedMessage] = []
        self._buffered_bytes = 0

    def process(
        self, decoded: Decoded | DeadLetter, timestamp: Timestamp = beam.DoFn.TimestampParam
    ) -> Iterator["Output"]:
        """Add a decoded message to the buffer, and write the buffer if it is full; pass a dead letter on."""
        if isinstance(decoded, DeadLetter):
            self._metrics.ended(DEAD)
            yield _dead(decoded, timestamp)
            return
        self._buffer.append((decoded, timestamp))
        self._buffered_bytes += len(decoded.message.value or b"")
        if len(self._buffer) >= self._batch_messages or self._buffered_bytes >= BATCH_BYTES:
            yield from self._write_buffer()

    def finish_bundle(self) -> Iterator["Output"]:
        """Write the rest of the buffer."""
        yield from self._write_buffer()

    def _write_buffer(self) -> list["Output"]:
        """Write the buffered changes, empty the buffer, and return one output per message."""
        if not self._buffer:
            return []
        batch, self._buffer, self._buffered_bytes = self._buffer, [], 0
        start = time.monotonic()
        self._open.encoded.texts = 0  # `_count` reads how many texts were encoded for this batch
        results = self._delivery.deliver([decoded.change for decoded, _ in batch])
        self._count([decoded for decoded, _ in batch], results, seconds=time.monotonic() - start)
        return [
            _output(decoded.message, result, timestamp)
            for (decoded, timestamp), result in zip(batch, results, strict=True)
        ]

    def _count(self, batch: Sequence[Decoded], results: Sequence[DeliveryResult], *, seconds: float) -> None:
        """Add a written batch to the metrics; `seconds`: the duration of its write."""
        now = utc_now()
        self._metrics.batch(len(batch), seconds)
        texts = self._open.encoded.texts
        companies = sum(isinstance(decoded.change, VersionedCompany) for decoded in batch)
        self._metrics.count("embedded_texts", texts)
        # If the generations have two encoders, each text is encoded twice, so `texts` can be larger than `companies`.
        self._metrics.count("reused_vectors", max(0, companies - texts))
        for decoded, result in zip(batch, results, strict=True):
            self._metrics.ended(DEAD if result.stage else result.outcome.value)
            if result.outcome is WriteOutcome.APPLIED:
                self._metrics.delay(max(0.0, (now - decoded.message.time).total_seconds()))


def _output(message: Message, result: DeliveryResult, timestamp: Timestamp) -> "Output":
    """Return the output for a message that was written (StoredMessage) or rejected (DeadLetter)."""
    if result.stage is not None:
        return _dead(DeadLetter(message=message, stage=result.stage, reason=result.reason), timestamp)
    return _at(StoredMessage(position=message.position, id=result.id, outcome=result.outcome), timestamp)


def _dead(letter: DeadLetter, timestamp: Timestamp) -> "Output":
    return beam.pvalue.TaggedOutput(DEAD, _at(letter, timestamp))


def _at(value: StoredMessage | DeadLetter, timestamp: Timestamp) -> WindowedValue:
    """Return the value with its timestamp, in the global window, which all sources use."""
    return WindowedValue(value, timestamp, (GlobalWindow(),))
