"""Output of commands."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from similarity.errors import SimilarityError

Log: TypeAlias = Callable[[str], None]


def say(line: str) -> None:
    """Write a line to standard output and flush it."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def quiet(_line: str) -> None:
    """Write nothing; used for runs whose log is not shown, and in all processes but the first."""


@contextmanager
def refusing() -> Iterator[None]:
    """Turn a SimilarityError into one line, `refused: ...`, and exit code 1.

    Any other exception is a bug and keeps its traceback.
    """
    try:
        yield
    except SimilarityError as error:
        sys.exit(f"refused: {error}")
