"""Connections to the embedded index's file: opened on demand, reused by any thread, one user at a time.

Every read and every write is one explicit transaction, so each sees one state of the file.
A process that forks must open its index after the fork: SQLite connections do not survive it.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from similarity.errors import IndexUnavailable
from similarity.index.sqlite import files as sqlite_files
from similarity.index.sqlite import schema

IDLE_CONNECTIONS = 8


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns what SQLite says about the index's file into an IndexUnavailable that says what to do."""
    with sqlite_files.explained(path, kind="index"):
        try:
            yield
        except sqlite3.OperationalError as error:
            if "no such module: fts5" in str(error):
                raise IndexUnavailable("this Python's SQLite has no FTS5; use a Python built with it") from error
            raise


class Connections:
    """The connections of one index. Opening the first creates the file, or checks and upgrades it.

    Raises:
        IndexUnavailable: the file cannot be used; the message says why and what to do.
    """

    def __init__(self, path: Path, *, busy_timeout: float) -> None:
        self._path = path
        self._busy_timeout = busy_timeout
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        with explained(path):
            connection = self._connect()
            try:
                schema.prepare(connection, path=path, busy_timeout=busy_timeout)
                schema.configure(connection)
                self._opened = sqlite_files.identity(path)
            except BaseException:
                connection.close()
                raise
        self._idle.append(connection)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the file, whatever is written meanwhile.

        Raises:
            IndexUnavailable: at the end of the block, where the file was moved or deleted meanwhile.
        """
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection that alone may write; on disk when the block ends, undone if it raises.

        Raises:
            IndexUnavailable: at the end of the block, where the file was moved or deleted meanwhile.
        """
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def borrowed(self) -> Iterator[sqlite3.Connection]:
        """A connection outside any transaction."""
        with explained(self._path):
            connection = self._take()
            try:
                yield connection
                # After the commit: what is moved later was acknowledged while the file was in its place.
                self._require_same_file()
            finally:
                self._give_back(connection)

    def close(self) -> None:
        """Closes every connection; those in use when they come back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self.borrowed() as connection:
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise IndexUnavailable(f"the index {self._path} was closed; open it again")
            if self._idle:
                return self._idle.pop()
        self._require_same_file()  # SQLite would make a new file where it is missing
        connection = self._connect()
        schema.configure(connection)
        return connection

    def _require_same_file(self) -> None:
        sqlite_files.require_same_file(self._path, self._opened, kind="index")

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed and not connection.in_transaction and len(self._idle) < IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self._path,
            timeout=self._busy_timeout,
            isolation_level=None,  # transactions are ours to begin and end
            check_same_thread=False,  # one user at a time is what this class keeps
        )
