"""What commands say to the user."""

import sys


def say(line: str) -> None:
    """One line, on standard error."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
