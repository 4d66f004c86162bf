"""Removes deleted and replaced data from an SQLite file and from its write-ahead log."""

import sqlite3
from pathlib import Path

from similarity.errors import IndexUnavailable
from similarity.index.sqlite.write_ahead_log import empty_log


def rewrite(connection: sqlite3.Connection, *, path: Path) -> None:
    """Rewrite the file without deleted data, and empty its write-ahead log.

    This needs free space of about the size of the file. Other writers wait meanwhile, readers do not.

    Raises:
        IndexUnavailable: other processes read the file for so long that the log could not be emptied.
    """
    connection.execute("VACUUM")
    if not empty_log(connection):
        raise IndexUnavailable(
            f"the write-ahead log of {path} still holds deleted data, because other processes were reading; "
            "try again when no process reads the file, or raise busy_timeout"
        )
