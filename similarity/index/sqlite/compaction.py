"""Removing for good what was deleted or replaced in the embedded index's file."""

import sqlite3
from pathlib import Path

from similarity.errors import IndexUnavailable
from similarity.index.sqlite.write_ahead_log import empty_log


def compact(connection: sqlite3.Connection, *, path: Path) -> None:
    """Writes the file anew with nothing in it but what is stored now, and empties its write-ahead log.

    Needs free space of about the file's size; other writers wait meanwhile, readers do not.

    Raises:
        IndexUnavailable: somebody read in the file for so long that the log could not be emptied.
    """
    # Merged into one, the word index drops the words of deleted companies; until then it only marks them.
    connection.execute("INSERT INTO words (words) VALUES ('optimize')")
    connection.execute("VACUUM")
    if not empty_log(connection):
        raise IndexUnavailable(
            f"the log beside {path} still holds what was removed, because the file was read all the while; "
            "compact it again when nobody reads, or raise busy_timeout"
        )
