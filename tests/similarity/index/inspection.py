"""Looks into our SQLite files for anything that was written only in part, and damages them."""

import sqlite3
from contextlib import closing
from pathlib import Path

from similarity.index.sqlite import SqliteIndex
from similarity.index.sqlite.schema import INDEX_FILE


def damage(path: Path) -> list[str]:
    """What is wrong with the file, one line each; empty where all is well."""
    with closing(SqliteIndex(path)) as index:
        return index.damage()


def connect(path: Path) -> sqlite3.Connection:
    """A connection to an index file that is no SqliteIndex; as `sqlite3` opens it, but with our functions."""
    connection = sqlite3.connect(path, isolation_level=None)
    for name, function in INDEX_FILE.functions.items():
        connection.create_function(name, 1, function, deterministic=True)
    return connection


def tamper(path: Path, statement: str) -> None:
    """Changes a file behind the back of those who have it open, without the triggers that would refuse it."""
    with closing(connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE '%_with_checksum'").fetchall()
        for (name,) in names:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
