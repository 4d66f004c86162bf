"""Looks after a running stream: does it get on, has it ended, should it be started anew?

A start of a stream now and then reads nothing (one of seven on Flink, seen with Beam 2.77 and a 2.62
job server): the job runs, its backlog stands still. From outside that shows in the source alone, so
the watch looks at what is committed there.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TypeAlias

from apache_beam.runners.runner import PipelineResult, PipelineState

LOOK_SECONDS = 5.0

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
        self._seconds = seconds
        self._acknowledged: int | None = None
        self._since = 0.0

    def stalled(self, progress: Progress, *, now: float) -> bool:
        """Whether it stands still. `now` in seconds of any clock."""
        if progress.acknowledged != self._acknowledged or progress.backlog == 0:
            self._acknowledged, self._since = progress.acknowledged, now
        return now - self._since >= self._seconds


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
    on_look: Callable[[], None],
    clock: Callable[[], float],
) -> bool:
    """Returns when the job was asked to stop (False) or stands still (True); it is cancelled then.

    `progress` may be None: where the source cannot tell. `on_look` is called each time.

    Raises:
        StreamFailed: the job ended by itself.
    """
    while not stop.asked:
        stop.wait(LOOK_SECONDS)
        if PipelineState.is_terminal(result.state):
            raise StreamFailed(
                f"the job ended by itself ({result.state}); see the log of its runner. Starting it again is safe: it "
                "goes on with what is not acknowledged"
            )
        on_look()
        seen = progress()
        if seen is not None and stalls.stalled(seen, now=clock()):
            result.cancel()
            return True
    result.cancel()
    return False
