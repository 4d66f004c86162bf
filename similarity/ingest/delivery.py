"""Delivers a batch of changes to the index: retries what the store does not accept, and isolates bad records.

A reader of a log may commit an offset only when all earlier changes have a final result. There are two final results:
the change is in the index (applied, unchanged or superseded), or it is rejected with a stage and a reason. While the
store accepts nothing, delivery waits; when its patience ends, it raises IndexUnavailable.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from similarity.backoff import backoff
from similarity.company import utc_now
from similarity.errors import EncodingFailed, IndexUnavailable
from similarity.index.protocol import WriteOutcome, WriteResult
from similarity.ingest.dead_letters import Stage
from similarity.ingest.records import Change
from similarity.ingest.write_path import write_changes
from similarity.ingest.writer_leases import WriterLease
from similarity.model.encoder_protocol import Encoder

FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 15.0
PATIENCE_SECONDS = 600.0
PROBE = "The company makes shoes and sells them in shops of its own."
"""A text that every encoder can process. If it fails too, the encoder is broken, not the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryResult:
    """The final result of one change. `stage`: the stage that rejected it; None if it was not rejected.

    `version`: the stored version, as in `WriteResult`.
    """

    id: str
    outcome: WriteOutcome
    stage: Stage | None = None
    reason: str = ""
    version: int | None = None


class Delivery:
    """Delivers batches with one writer lease. Not thread-safe.

    `patience`: raise after this many seconds without an accepted document. `on_retry`: called with the number of
    changes that are sent again, and the reason.
    """

    def __init__(
        self,
        writer: WriterLease,
        encoders: Mapping[str, Encoder],
        *,
        patience: float = PATIENCE_SECONDS,
        on_retry: Callable[[int, str], None] = lambda changes, reason: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._writer = writer
        self._encoders = encoders
        self._patience = patience
        self._on_retry = on_retry
        self._clock = clock
        self._sleep = sleep

    def deliver(self, changes: Sequence[Change]) -> list[DeliveryResult]:
        """Return one result per change, in order; retry until every change has a final result.

        Raises:
            IndexUnavailable: the store accepted nothing for `patience` seconds.
            NoLiveGeneration: there is no generation to write to.
            EncoderMismatch: the encoder of a generation is not available.
            EncodingFailed: an encoder fails on PROBE too.
        """
        if not changes:
            return []
        results: dict[int, DeliveryResult] = {}
        waiting = list(range(len(changes)))
        pauses, deadline = self._start_waiting()
        while True:
            attempt = self._try([changes[position] for position in waiting])
            by_position = zip(waiting, attempt, strict=True)
            results |= {place: result for place, result in by_position if result.outcome is not WriteOutcome.FAILED}
            left = [position for position in waiting if position not in results]
            if not left:
                return [results[position] for position in range(len(changes))]
            reason = next(result.reason for result in attempt if result.outcome is WriteOutcome.FAILED)
            if len(left) < len(waiting):
                pauses, deadline = self._start_waiting()
            elif self._clock() >= deadline:
                raise IndexUnavailable(
                    f"the index accepted none of {len(left):,} changes for {self._patience:.0f} seconds ({reason}); "
                    "no data is lost: the job reads and sends them again"
                )
            self._on_retry(len(left), reason)
            self._sleep(next(pauses))
            waiting = left

    def _start_waiting(self) -> tuple[Iterator[float], float]:
        """Return the pauses between the next attempts, and the time at which to give up."""
        return backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS), self._clock() + self._patience

    def _try(self, changes: Sequence[Change]) -> list[DeliveryResult]:
        """Try once. If the encoder raises, split the batch in halves until the failing record is found."""
        try:
            results = write_changes(self._writer, self._encoders, changes, now=utc_now())
        except IndexUnavailable as error:
            return [DeliveryResult(id=change.id, outcome=WriteOutcome.FAILED, reason=str(error)) for change in changes]
        except EncodingFailed as error:
            if len(changes) > 1:
                middle = len(changes) // 2
                return self._try(changes[:middle]) + self._try(changes[middle:])
            self._require_working_encoders()
            return [
                DeliveryResult(id=changes[0].id, outcome=WriteOutcome.REJECTED, stage=Stage.EMBED, reason=str(error)),
            ]
        return [_delivery_result(result) for result in results]

    def _require_working_encoders(self) -> None:
        """Raise EncodingFailed if an encoder in use fails on PROBE too."""
        for encoder_id in {target.encoder_id for target in self._writer.targets()}:
            try:
                self._encoders[encoder_id].encode([PROBE])
            except Exception as error:
                raise EncodingFailed(
                    f"encoder {encoder_id} fails on a harmless text too ({error!r:.300}), so the encoder is broken; "
                    "check the worker's memory and its bundle, then start the job again: no data is lost"
                ) from error


def _delivery_result(result: WriteResult) -> DeliveryResult:
    stage = Stage.WRITE if result.outcome is WriteOutcome.REJECTED else None
    return DeliveryResult(
        id=result.id, outcome=result.outcome, stage=stage, reason=result.reason, version=result.version
    )
