"""What commands tell their user."""

import sys


def say(line: str) -> None:
    """Writes a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def quiet(_line: str) -> None:
    """For runs that are reported as a whole, and processes that another one speaks for."""
