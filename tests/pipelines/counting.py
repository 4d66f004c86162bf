"""Two small jobs that leave numbers in a folder, one file per number, so that a test sees what got through a crash."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
from apache_beam.coders import Coder, PickleCoder
from apache_beam.io.unbounded_source import CheckpointMark, ReadFromUnboundedSource, UnboundedReader, UnboundedSource
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.utils.timestamp import Timestamp


def count(folder: Path, numbers: int, options: PipelineOptions) -> beam.Pipeline:
    """A batch job: the numbers from 0, shared out among the workers."""
    pipeline = beam.Pipeline(options=options)
    listed = pipeline | beam.Create(range(numbers), reshuffle=False) | beam.Reshuffle()
    _ = listed | beam.ParDo(Leave(str(folder)))
    return pipeline


def keep_counting(folder: Path, options: PipelineOptions, *, per_second: float = 20.0) -> beam.Pipeline:
    """A stream: 0, 1, 2, ... at this pace, without end. After a crash it goes on from its last checkpoint."""
    pipeline = beam.Pipeline(options=options)
    # A bundle is short, because a checkpoint waits for its end.
    numbers = pipeline | ReadFromUnboundedSource(Counter(per_second), max_read_time_seconds=0.5, poll_interval=0.1)
    _ = numbers | beam.ParDo(Leave(str(folder)))
    return pipeline


def left_in(folder: Path) -> set[int]:
    """The numbers that are there."""
    return {int(file.name) for file in folder.iterdir()}


class Leave(beam.DoFn):
    """Makes a file named after the number; to do so again changes nothing."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def process(self, number: int) -> Iterator[int]:
        (Path(self._folder) / str(number)).touch()
        yield number


class Counter(UnboundedSource):
    """Counts from 0."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second

    def split(self, desired_num_splits: int, options: object = None) -> list["Counter"]:
        return [self]

    def create_reader(self, options: object, checkpoint_mark: "Reached | None") -> "CounterReader":
        return CounterReader(checkpoint_mark.number if checkpoint_mark else -1, 1 / self._per_second)

    def get_checkpoint_mark_coder(self) -> Coder:
        return PickleCoder()

    def default_output_coder(self) -> Coder:
        return PickleCoder()


class Reached(CheckpointMark):
    """Up to this number, it included, all were handed on."""

    def __init__(self, number: int) -> None:
        self.number = number


class CounterReader(UnboundedReader):
    """Hands out the next number when its time has come."""

    def __init__(self, number: int, seconds: float) -> None:
        self._number = number
        self._seconds = seconds
        self._next = time.monotonic()
        self._time = Timestamp.now()

    def start(self) -> bool:
        return self.advance()

    def advance(self) -> bool:
        # To say "nothing now" would end the bundle; the wait is shorter than that.
        if (wait := self._next - time.monotonic()) > 0:
            time.sleep(wait)
        self._next = max(self._next, time.monotonic() - 1) + self._seconds
        self._number += 1
        self._time = Timestamp.now()
        return True

    def get_current(self) -> int:
        return self._number

    def get_current_timestamp(self) -> Timestamp:
        return self._time

    def get_watermark(self) -> Timestamp:
        return self._time

    def get_checkpoint_mark(self) -> Reached:
        return Reached(self._number)


def main() -> None:
    """Runs the stream until SIGINT comes. Arguments: the folder, then Beam's options."""
    folder, *options = sys.argv[1:]
    result = keep_counting(Path(folder), PipelineOptions(options)).run()
    try:
        result.wait_until_finish()
    except KeyboardInterrupt:
        result.cancel()
