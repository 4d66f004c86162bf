"""Output of commands."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TypeAlias

from similarity.errors import SimilarityError

Log: TypeAlias = Callable[[str], None]

REPORT_EVERY = 10.0  # seconds


def say(line: str) -> None:
    """Write a line to standard output and flush it."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def quiet(_line: str) -> None:
    """Write nothing; used for runs whose log is not shown, and in all processes but the first."""


def note(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{line}\n")


def encoding_progress(what: str) -> Callable[[int, int], None]:
    """Return a callback for `TextEncoder.encode` that notes the count and the time left, every REPORT_EVERY seconds."""
    start = reported = perf_counter()

    def report(done: int, total: int) -> None:
        nonlocal reported
        now = perf_counter()
        if done == total or now - reported >= REPORT_EVERY:
            reported = now
            left = round((now - start) / done * (total - done))
            note(f"{done:,} of {total:,} {what} encoded, about {left // 60}:{left % 60:02d} left")

    return report


@contextmanager
def refusing() -> Iterator[None]:
    """Turn a SimilarityError into one line, `refused: ...`, and exit code 1.

    Any other exception keeps its traceback.
    """
    try:
        yield
    except SimilarityError as error:
        sys.exit(f"refused: {error}")
