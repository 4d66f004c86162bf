"""Connections to an SQLite file: opened on demand and reused, each by one thread at a time.

Each read and each write is one explicit transaction, so it sees one state of the file. A process that forks must open
the file after the fork, because SQLite connections cannot be used in a forked process.
"""

import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from similarity.errors import IndexUnavailable
from similarity.index.sqlite.files import explained
from similarity.index.sqlite.write_ahead_log import WatchedFile, require_readable_log

IDLE_CONNECTIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """A kind of file: its name in messages, how its tables are created, and the settings of each connection.

    `prepare` creates the tables, or checks and migrates them; it may raise IndexUnavailable. `advice` says what to do,
    by SQLite's result codes. `functions`: deterministic functions of one blob, by their names in SQL.
    """

    name: str
    prepare: Callable[[sqlite3.Connection, Path, float], None]
    pragmas: tuple[str, ...]
    advice: Mapping[str, str]
    functions: Mapping[str, Callable[[bytes], str]] = field(default_factory=dict)


class Connections:
    """The connections of one file. The constructor creates the file, or checks and migrates it.

    Raises:
        IndexUnavailable: the file or its folder cannot be used; the message says why and what to do.
    """

    def __init__(self, path: Path, kind: FileKind, *, busy_timeout: float) -> None:
        self._path = path
        self._kind = kind
        self._busy_timeout = busy_timeout
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IndexUnavailable(
                f"the folder of the {kind.name} {path} cannot be made: {error}; name another"
            ) from error
        if (names := _hard_links(path)) > 1:
            raise IndexUnavailable(
                f"the {kind.name} {path} has {names} names (hard links), each with a log of its own, so "
                "commits would be lost: delete the other names, or give them copies of their own (similarity backup)"
            )
        with self._explained():
            require_readable_log(path, kind=kind.name)
            connection = self._connect()
            try:
                kind.prepare(connection, path, busy_timeout)
                self._configure(connection)
                self._file = WatchedFile(path, connection, kind=kind.name)
            except BaseException:
                connection.close()
                raise
        self._idle.append(connection)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that sees one state of the file, whatever is written meanwhile.

        Raises:
            IndexUnavailable: SQLite failed, or the file was moved, deleted or overwritten (checked before and after).
        """
        with self.borrowed() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:  # some errors, such as SQLITE_NOMEM, have ended it
                    connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the only connection that may write. At the end of the block its changes are on the disk; if the block
        raises, they are rolled back.

        Raises:
            IndexUnavailable: as in `reading`; or another process has been writing for too long.
        """
        with self.borrowed() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                # Before the commit, because the checkpoint after it would hide that the file was overwritten.
                self._file.require_unharmed()
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def borrowed(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection outside any transaction."""
        with self._explained():
            connection = self._take()
            try:
                yield connection
                # After the commit, so that a commit to a file that was moved before is not acknowledged.
                self._file.require_unharmed()
            finally:
                self._give_back(connection)

    def close(self) -> None:
        """Close all connections; those in use are closed when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise IndexUnavailable(f"the {self._kind.name} {self._path} was closed; open it again")
        # Before any use: SQLite would create a missing file, and write after a gap in the log.
        self._file.require_unharmed()
        with self._lock:
            if self._idle:
                return self._idle.pop()
        connection = self._connect()
        self._configure(connection)
        return connection

    def _configure(self, connection: sqlite3.Connection) -> None:
        for pragma in self._kind.pragmas:
            connection.execute(f"PRAGMA {pragma}")

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self._path, kind=self._kind.name, advice=self._kind.advice)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed and not connection.in_transaction and len(self._idle) < IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            timeout=self._busy_timeout,
            isolation_level=None,  # transactions are explicit
            check_same_thread=False,  # this class gives a connection to one thread at a time
        )
        for name, function in self._kind.functions.items():
            connection.create_function(name, 1, function, deterministic=True)
        return connection


def _hard_links(path: Path) -> int:
    """Return how many names a file has; 0 if there is none, so that SQLite says why it cannot be opened."""
    try:
        status = path.stat()
    except OSError:
        return 0
    return status.st_nlink if stat.S_ISREG(status.st_mode) else 0
