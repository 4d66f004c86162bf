"""Brings a batch of changes to its end: what the store did not take is sent again, poison is singled out.

Whoever reads from a log may only go on when everything before is settled, so every change ends here in
one of two ways: in the index (applied, unchanged, superseded), or rejected with the stage and the reason.
There is no third: while the store takes nothing, delivery waits, and raises when its patience ends.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from similarity.backoff import backoff
from similarity.company import utc_now
from similarity.errors import EncodingFailed, IndexUnavailable
from similarity.index.protocol import WriteOutcome, WriteResult
from similarity.ingest.changes import write_changes
from similarity.ingest.dead_letters import Stage
from similarity.ingest.records import Change
from similarity.ingest.writers import Writer
from similarity.model.encoder_protocol import Encoder

FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 15.0
PATIENCE_SECONDS = 600.0
PROBE = "The company makes shoes and sells them in shops of its own."
"""A text that every encoder takes: if this one fails too, it is not the text's fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What became of one change. `stage` is where it was rejected, None where it is in the index.

    `version` is the stored version, as in `WriteResult`.
    """

    id: str
    outcome: WriteOutcome
    stage: Stage | None = None
    reason: str = ""
    version: int | None = None


class Delivery:
    """Delivers batches through one writer. Not to be shared between threads.

    `patience`: seconds without a single document taken after which it raises. `on_retry` is called
    with how many changes are sent again, and why.
    """

    def __init__(
        self,
        writer: Writer,
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

    def deliver(self, changes: Sequence[Change]) -> list[Settled]:
        """One end per change, in order.

        Raises:
            IndexUnavailable: the store took nothing for as long as the patience lasts.
            NoLiveGeneration: there is nothing to write to.
            EncoderMismatch: a generation's encoder is not at hand.
            EncodingFailed: the encoder fails on every text.
        """
        if not changes:
            return []
        ends: dict[int, Settled] = {}
        waiting = list(range(len(changes)))
        pauses, deadline = self._fresh_patience()
        while True:
            tried = self._tried([changes[position] for position in waiting])
            settled = zip(waiting, tried, strict=True)
            ends |= {position: end for position, end in settled if end.outcome is not WriteOutcome.FAILED}
            left = [position for position in waiting if position not in ends]
            if not left:
                return [ends[position] for position in range(len(changes))]
            reason = next(end.reason for end in tried if end.outcome is WriteOutcome.FAILED)
            if len(left) < len(waiting):
                pauses, deadline = self._fresh_patience()
            elif self._clock() >= deadline:
                raise IndexUnavailable(
                    f"the store took none of {len(left):,} changes for {self._patience:.0f} seconds ({reason}); "
                    "nothing is lost: they are read and sent again when the job goes on"
                )
            self._on_retry(len(left), reason)
            self._sleep(next(pauses))
            waiting = left

    def _fresh_patience(self) -> tuple[Iterator[float], float]:
        """The pauses from now on, and the time at which to give up."""
        return backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS), self._clock() + self._patience

    def _tried(self, changes: Sequence[Change]) -> list[Settled]:
        """One attempt. A batch on which the encoder fails is halved until what is left is the poison itself."""
        try:
            results = write_changes(self._writer, self._encoders, changes, now=utc_now())
        except IndexUnavailable as error:
            return [Settled(id=change.id, outcome=WriteOutcome.FAILED, reason=str(error)) for change in changes]
        except EncodingFailed as error:
            if len(changes) > 1:
                middle = len(changes) // 2
                return self._tried(changes[:middle]) + self._tried(changes[middle:])
            self._require_working_encoders()
            return [
                Settled(id=changes[0].id, outcome=WriteOutcome.REJECTED, stage=Stage.EMBED, reason=str(error)),
            ]
        return [_settled(result) for result in results]

    def _require_working_encoders(self) -> None:
        """Raises EncodingFailed if an encoder in use fails on a harmless text too: then no text is to blame."""
        for encoder_id in {target.encoder_id for target in self._writer.targets()}:
            try:
                self._encoders[encoder_id].encode([PROBE])
            except Exception as error:
                raise EncodingFailed(
                    f"encoder {encoder_id} fails on a harmless text too ({error!r:.300}), so no message is to blame; "
                    "see the worker's memory and its bundle, then start the job again: nothing is lost"
                ) from error


def _settled(result: WriteResult) -> Settled:
    stage = Stage.WRITE if result.outcome is WriteOutcome.REJECTED else None
    return Settled(id=result.id, outcome=result.outcome, stage=stage, reason=result.reason, version=result.version)
