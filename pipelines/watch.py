"""Monitors a running streaming job: whether it makes progress, has ended, or must be restarted.

A job can run without reading anything: on Flink, if a checkpoint falls into the Beam bundle that starts its source
(Beam issue BEAM-6733; `beam_options` prevents it), or if one of its workers never started. From outside this is visible
only in the source, so the watch reads the offsets that are committed there.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias

import grpc
from apache_beam.runners.runner import PipelineResult, PipelineState

LOOK_SECONDS = 5.0
SAFE = "Starting it again is safe: it continues with the messages that are not acknowledged"

Log: TypeAlias = Callable[[str], None]


class StreamFailed(Exception):
    """The job ended although nobody cancelled it, its runner does not answer, or this command cannot cancel it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The number of acknowledged messages, and of messages that are not read or not acknowledged yet."""

    acknowledged: int
    backlog: int


class StallWatch:
    """Detects that a job with a backlog has acknowledged nothing for `seconds` seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.moved = False
        """Whether messages were acknowledged since the first call of `stalled`."""
        self._acknowledged: int | None = None
        self._since = 0.0

    def stalled(self, progress: Progress | None, *, now: float) -> bool:
        """Return whether the job is stalled. `progress`: None if the job has to wait. `now`: seconds of any clock."""
        if progress is None:
            self._since = now
            return False
        if progress.acknowledged != self._acknowledged or progress.backlog == 0:
            self.moved |= self._acknowledged is not None and progress.acknowledged != self._acknowledged
            self._acknowledged, self._since = progress.acknowledged, now
        return now - self._since >= self.seconds


def seconds_to_wait(seconds: float, *, restarts_without_progress: int) -> float:
    """Return the seconds without progress until a restart: doubled by each restart without progress, at most x 16."""
    return seconds * 2.0 ** min(restarts_without_progress, 4)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Yield an event. Inside the block, SIGTERM and Ctrl-C set it instead of ending the process."""
    stop = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def watch(
    result: PipelineResult,
    stop: threading.Event,
    stalls: StallWatch,
    *,
    progress: Callable[[], Progress | None],
    clock: Callable[[], float],
) -> bool:
    """Wait until the job should end; return True if it is stalled, False if `stop` is set.

    `progress` returns None if Kafka or the index is unavailable.

    Raises:
        StreamFailed: the job ended by itself, or its runner does not answer.
    """
    while not stop.is_set():
        stop.wait(LOOK_SECONDS)
        state = _state(result)
        if PipelineState.is_terminal(state):
            raise StreamFailed(f"the job ended by itself ({state}); see the log of its runner. {SAFE}")
        if stalls.stalled(progress(), now=clock()):
            return True
    return False


def cancel(result: PipelineResult) -> None:
    """Ask the runner to cancel the job. If the runner does not answer, nothing can be cancelled."""
    with suppress(grpc.RpcError):
        result.cancel()


def _state(result: PipelineResult) -> str:
    try:
        return str(result.state)
    except grpc.RpcError as error:
        raise StreamFailed(f"the job's runner does not answer ({error.code()}). {SAFE}") from error
