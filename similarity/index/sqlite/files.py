"""SQLite files of this software: how they are recognised, migrated, and how SQLite's errors are explained.

`PRAGMA user_version` is the number of applied migrations. Releases only append to the migrations of a file; a published
migration is never edited.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeAlias

from similarity.errors import IndexUnavailable, InvalidInput

Migration: TypeAlias = Sequence[str]
# By the primary result codes of SQLite; extended codes (SQLITE_BUSY_SNAPSHOT) begin with one of these.
ADVICE: Mapping[str, str] = {
    "SQLITE_NOTADB": "it is not an SQLite database; name another file",
    "SQLITE_CORRUPT": "it is damaged; restore a backup, or delete it and ingest again",
    "SQLITE_READONLY": "it cannot be written; give this user write access to the file and its folder",
    "SQLITE_CANTOPEN": "it cannot be opened; check that the path is a file in a folder this user can write",
    "SQLITE_PERM": "access is denied; give this user write access to the file and its folder",
    "SQLITE_BUSY": "another process has been writing for too long; try again, or raise busy_timeout",
    "SQLITE_FULL": "the disk is full; free some space and try again",
    "SQLITE_NOMEM": "memory ran out, or a damaged page asks for too much of it; free some, and run similarity check",
    "SQLITE_IOERR": "the disk failed to read or write; check the disk and its free space",
}
BESIDE = ("-wal", "-shm", "-journal", ".workspace")
"""Ends of the names of the files that belong to a database."""
DAMAGE = ("SQLITE_CORRUPT", "SQLITE_ERROR", "SQLITE_TOOBIG", "SQLITE_MISMATCH", "SQLITE_INTERNAL")
PUBLIC_DAMAGED = "the {kind} is damaged; the log says where and what to do"


class DamagedRow(Exception):
    """A row that differs from what was written; the message names it."""


def application_id(path: Path) -> int | None:
    """Return the application id of an SQLite database (https://www.sqlite.org/pragma.html#pragma_application_id).

    None if the file is no database, is empty or does not exist. SQLite reads the file: if this process has the database
    open, closing a handle of our own would drop SQLite's locks. It is not opened read-only, because SQLite would then
    leave an empty log beside it.
    """
    if not path.is_file() or not path.stat().st_size:
        return None
    try:
        with closing(sqlite3.connect(f"{real_path(path).as_uri()}?mode=rw", uri=True)) as connection:
            found: int = connection.execute("PRAGMA application_id").fetchone()[0]
            return found
    except sqlite3.DatabaseError:
        return None


def real_path(path: Path) -> Path:
    """Return the absolute path without symbolic links. A loop of links remains, and cannot be opened.

    `Path.resolve` raises a RuntimeError for a loop.
    """
    return Path(os.path.realpath(path))


def refuse_database(path: Path) -> None:
    """Raise InvalidInput if an output to `path` would replace an SQLite database, or one of the files beside it."""
    if application_id(path) is not None:
        raise InvalidInput(f"{path} is a database, which would be lost; name another file")
    refuse_beside(path)


def refuse_beside(path: Path) -> None:
    """Raise InvalidInput if `path` has no file name, or the name of a log, a workspace or a bundle of a database."""
    if not path.name:
        raise InvalidInput(f"the output {str(path)!r} is a folder; name a file")
    path = real_path(path)
    beside = [path.with_name(path.name.removesuffix(each)) for each in BESIDE if path.name.endswith(each)]
    beside += [each.with_suffix("") for each in path.parents if each.suffix == ".bundles"]
    for database in beside:
        if application_id(database) is not None:
            raise InvalidInput(f"{path} is a name for files of the database {database}; name another file")


@contextmanager
def explained(path: Path, *, kind: str, advice: Mapping[str, str] = ADVICE) -> Iterator[None]:
    """Turn SQLite's errors about a file of this `kind` into an IndexUnavailable that says what to do.

    Errors that are bugs (violated constraints, misuse of the module) are not changed.
    """
    try:
        yield
    except (sqlite3.DatabaseError, DamagedRow, UnicodeDecodeError, MemoryError) as error:
        code = "SQLITE_CORRUPT" if _is_damage(error) else _error_name(error)
        for prefix, what_to_do in advice.items():
            if code.startswith(prefix):
                reason = PUBLIC_DAMAGED.format(kind=kind) if prefix == "SQLITE_CORRUPT" else ""
                message = f"the {kind} {path} does not answer: {what_to_do} ({error!s:.300})"
                raise IndexUnavailable(message, reason=reason) from error
        raise


def refuse_foreign(connection: sqlite3.Connection, *, path: Path, application_id: int, what_to_do: str) -> None:
    """Raise IndexUnavailable if the file contains tables of another program."""
    holds_tables = _number(connection, "SELECT count(*) FROM sqlite_master")
    if holds_tables and _number(connection, "PRAGMA application_id") != application_id:
        raise IndexUnavailable(f"{path} is a database of another program; {what_to_do}")


def migrate(
    connection: sqlite3.Connection, migrations: Sequence[Migration], *, path: Path, application_id: int, what_to_do: str
) -> None:
    """Apply the missing migrations in order, all or none.

    If none is missing, a write is tried and rolled back: only this shows already at opening that a file cannot be
    written. It is not tried while another process writes, which may take minutes (a compaction), because readers do
    not wait for writers.

    Raises:
        IndexUnavailable: a newer release has applied more migrations than this release knows.
    """
    is_current = _number(connection, "PRAGMA user_version") == len(migrations)
    if not _begun(connection, waiting=not is_current):
        return
    try:
        seen = _number(connection, "PRAGMA user_version")
        if seen > len(migrations):
            raise IndexUnavailable(
                f"{path} was written by a newer release (schema {seen}; this one knows {len(migrations)}); {what_to_do}"
            )
        for migration in migrations[seen:]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {application_id}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("ROLLBACK" if seen == len(migrations) else "COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def damaged_pages(connection: sqlite3.Connection, table: str = "") -> Iterator[str]:
    """Yield a line for each damage that SQLite's own check finds in pages, tables and indexes, or in one table."""
    check = f"PRAGMA integrity_check({table})" if table else "PRAGMA integrity_check"
    return (line for (line,) in connection.execute(check) if line != "ok")


def _is_damage(error: Exception) -> bool:
    """Return whether the error can only come from a damaged file.

    All our statements are tested, so SQLITE_ERROR means that the tables are not as we created them. Text that is not
    UTF-8 raises an OperationalError without a code if it is in a row, and a UnicodeDecodeError if it is in a message.
    """
    if isinstance(error, (DamagedRow, UnicodeDecodeError)) or str(error).startswith("Could not decode to UTF-8"):
        return True
    return _error_name(error).startswith(DAMAGE)


def _error_name(error: Exception) -> str:
    """Return SQLite's name of a result code. For SQLITE_NOMEM, Python raises a MemoryError without one."""
    return "SQLITE_NOMEM" if isinstance(error, MemoryError) else getattr(error, "sqlite_errorname", "")


def _begun(connection: sqlite3.Connection, *, waiting: bool) -> bool:
    """Begin a write transaction. Without `waiting`, return False if another connection is writing."""
    if waiting:
        connection.execute("BEGIN IMMEDIATE")
        return True
    milliseconds = _number(connection, "PRAGMA busy_timeout")
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname.startswith("SQLITE_BUSY"):
            return False
        raise
    finally:
        connection.execute(f"PRAGMA busy_timeout = {milliseconds}")
    return True


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])
