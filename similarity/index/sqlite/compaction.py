"""Removing for good what was deleted or replaced in the embedded index's file."""

import sqlite3
import time
from pathlib import Path

from similarity.errors import IndexUnavailable

SECONDS_BETWEEN_TRIES = 0.02


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


def empty_log(connection: sqlite3.Connection) -> bool:
    """Whether the write-ahead log could be emptied within the connection's busy timeout.

    SQLite waits for readers by itself, but gives up at once while another connection empties the log
    (sqlite.org/c3ref/wal_checkpoint_v2.html), as every large write does; so it is asked again.
    """
    [milliseconds] = connection.execute("PRAGMA busy_timeout").fetchone()
    deadline = time.monotonic() + milliseconds / 1000
    while True:
        [blocked, _, _] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not blocked or time.monotonic() >= deadline:
            return not blocked
        time.sleep(SECONDS_BETWEEN_TRIES)
