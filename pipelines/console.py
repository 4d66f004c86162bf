"""Output of commands."""

import sys


def say(line: str) -> None:
    """Write one line to standard error and flush it."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
