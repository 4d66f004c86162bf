"""Output of commands."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from similarity.errors import SimilarityError

Log: TypeAlias = Callable[[str], None]


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def quiet(_line: str) -> None:
    """Write nothing: for runs that are reported as a whole, and for all processes but the first."""


@contextmanager
def refusing() -> Iterator[None]:
    """End the command with one line, `refused: ...`, where the user's input cannot be used.

    Any other exception is a bug and keeps its traceback.
    """
    try:
        yield
    except SimilarityError as error:
        sys.exit(f"refused: {error}")
