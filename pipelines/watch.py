"""Looks after a running stream: does it get on, has it ended, should it be started anew?

A job can run and read nothing: on Flink, when a checkpoint falls into the bundle that starts its source
(Beam issue BEAM-6733; `beam_options` prevents that one), or when a worker of it never came up. From
outside that shows in the source alone, so the watch looks at what is committed there.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TypeAlias

import grpc
from apache_beam.runners.runner import PipelineResult, PipelineState

LOOK_SECONDS = 5.0
SAFE = "Starting it again is safe: it goes on with what is not acknowledged"

Log: TypeAlias = Callable[[str], None]


class StreamFailed(Exception):
    """The job ended without being asked to; the message says in which state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a source says of a reader: how far it is, and how much it has not read or not acknowledged."""

    acknowledged: int
    backlog: int


class StallWatch:
    """Notices that a job with something to read has acknowledged nothing for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.moved = False
        """Whether something was acknowledged since the first look."""
        self._acknowledged: int | None = None
        self._since = 0.0

    def stalled(self, progress: Progress | None, *, now: float) -> bool:
        """Whether it stands still. `now` in seconds of any clock. None is no progress and no stall: the job waits."""
        if progress is None:
            self._since = now
            return False
        if progress.acknowledged != self._acknowledged or progress.backlog == 0:
            self.moved |= self._acknowledged is not None and progress.acknowledged != self._acknowledged
            self._acknowledged, self._since = progress.acknowledged, now
        return now - self._since >= self.seconds


def seconds_to_wait(seconds: float, *, starts_in_vain: int) -> float:
    """How long the next start may stand still: each one that came to nothing doubles it, to 16 times."""
    return seconds * 2.0 ** min(starts_in_vain, 4)


class Stop:
    """Set when the process is asked to end (SIGTERM, Ctrl-C)."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._event.set()

    @property
    def asked(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Waits so long, or until it is set."""
        self._event.wait(seconds)


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Catches SIGTERM and Ctrl-C for the length of the block."""
    stop = Stop()
    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def watch(
    result: PipelineResult,
    stop: Stop,
    stalls: StallWatch,
    *,
    progress: Callable[[], Progress | None],
    clock: Callable[[], float],
) -> bool:
    """Returns when the job should end: it was asked to (False), or it stands still (True).

    `progress` may be None: where the source cannot tell, or what the job works with is away.

    Raises:
        StreamFailed: the job ended by itself, or its runner does not answer.
    """
    while not stop.asked:
        stop.wait(LOOK_SECONDS)
        state = _state(result)
        if PipelineState.is_terminal(state):
            raise StreamFailed(f"the job ended by itself ({state}); see the log of its runner. {SAFE}")
        if stalls.stalled(progress(), now=clock()):
            return True
    return False


def cancel(result: PipelineResult) -> None:
    """Asks the runner to end the job. One that does not answer has none any more, or cannot be asked."""
    with suppress(grpc.RpcError):
        result.cancel()


def _state(result: PipelineResult) -> str:
    try:
        return str(result.state)
    except grpc.RpcError as error:
        raise StreamFailed(f"the job's runner does not answer ({error.code()}). {SAFE}") from error
