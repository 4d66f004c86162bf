"""The processes that a process has started (Linux)."""

import contextlib
from pathlib import Path


def children(parent: int) -> list[int]:
    """The process ids of the living children, the newest last. One that ended but was not collected is not living."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # After the name in brackets, which may hold anything: state, parent, ..., at the 20th place the start.
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[1]) == parent and fields[0] != "Z":
                found.append((int(fields[19]), int(stat.parent.name)))
    return [pid for _, pid in sorted(found)]
