"""The embedded workspace's file: its tables, its one connection, and how it is rewritten.

    events
    lists --< looks

Every write is one transaction that is on disk before it is acknowledged (WAL, synchronous=FULL).
What is deleted is overwritten (`secure_delete`). Verdicts come at the pace of people, so one
connection a process, used by one thread at a time, is enough; processes wait for each other.

`PRAGMA user_version` counts the migrations a file has seen. A release only ever appends to
`MIGRATIONS`; one that was published is never edited.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from similarity.errors import IndexUnavailable
from similarity.index.sqlite.backup import back_up
from similarity.index.sqlite.files import (
    ADVICE,
    empty_log,
    explained,
    identity,
    migrate,
    refuse_foreign,
    require_same_file,
    use_write_ahead_log,
)

APPLICATION_ID = 0x43_53_57_53  # "CSWS": tells our files from those of other programs

FIRST_VERSION = (
    """
    CREATE TABLE events (
        user TEXT NOT NULL,
        id TEXT NOT NULL,
        at INTEGER NOT NULL,                       -- UTC microseconds, as every time in this file
        anchor TEXT NOT NULL,
        hit TEXT NOT NULL,
        verdict TEXT NOT NULL,
        rank INTEGER,
        score REAL,
        probability REAL,
        generation TEXT NOT NULL,
        bundle_id TEXT NOT NULL,
        note TEXT NOT NULL,
        PRIMARY KEY (user, id)
    )
    """,
    "CREATE INDEX events_by_place ON events (at, user, id)",
    "CREATE INDEX events_by_anchor ON events (anchor)",
    "CREATE INDEX events_by_hit ON events (hit)",
    """
    CREATE TABLE lists (
        name TEXT PRIMARY KEY,
        question TEXT NOT NULL,                    -- JSON
        saved_by TEXT NOT NULL,
        saved_at INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE looks (
        list_name TEXT NOT NULL REFERENCES lists (name) ON DELETE CASCADE,
        user TEXT NOT NULL,
        at INTEGER NOT NULL,
        seen TEXT NOT NULL,                        -- JSON
        PRIMARY KEY (list_name, user)
    )
    """,
)
MIGRATIONS = (FIRST_VERSION,)

# What is advised for an index does not fit a file that nothing can fill again.
WORKSPACE_ADVICE = {**ADVICE, "SQLITE_CORRUPT": "it is damaged; restore a backup"}


class WorkspaceFile:
    """The file at `path`, made with its folder if it is not there yet.

    Raises:
        IndexUnavailable: the file cannot be used; the message says why and what to do.
    """

    def __init__(self, path: Path, *, busy_timeout: float) -> None:
        self.path = path
        self._busy_timeout = busy_timeout
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IndexUnavailable(f"the folder of the workspace {path} cannot be made: {error}") from error
        with self._explained():
            self._connection: sqlite3.Connection | None = self._open()
        self._opened = identity(path)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, in a transaction that sees one state of the file."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection, which alone may write; on disk when the block ends, undone if it raises."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def rewrite(self) -> None:
        """Writes the file anew with nothing in it but what is stored now, and empties its write-ahead log.

        Raises:
            IndexUnavailable: somebody read in the file for so long that the log could not be emptied.
        """
        with self._alone() as connection:
            connection.execute("VACUUM")
            emptied = empty_log(connection)
        if not emptied:
            raise IndexUnavailable(
                f"the log beside {self.path} still holds what was removed, because the file was read all the while; "
                "erase again when nobody reads"
            )

    def back_up(self, target: Path, *, overwrite: bool) -> None:
        """Copies the file to another one while it is in use, and checks the copy.

        Raises:
            InvalidInput: the target exists (unless `overwrite`), is in use, or is this file.
            IndexUnavailable: the file cannot be read or is damaged.
        """
        with self._alone() as connection:
            back_up(
                connection,
                kind="workspace",
                source=self.path,
                target=target,
                overwrite=overwrite,
                if_damaged="restore an earlier backup",
            )

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._alone() as connection:
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _alone(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._explained():
            if self._connection is None:
                raise IndexUnavailable(f"the workspace {self.path} was closed; open it again")
            yield self._connection
            # After the commit: what is moved later was acknowledged while the file was in its place.
            require_same_file(self.path, self._opened, kind="workspace")

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=self._busy_timeout,
            isolation_level=None,  # transactions are ours to begin and end
            check_same_thread=False,  # one thread at a time is what the lock keeps
        )
        try:
            refuse_foreign(connection, path=self.path, application_id=APPLICATION_ID, what_to_do="move it away")
            use_write_ahead_log(connection, path=self.path, busy_timeout=self._busy_timeout)
            for pragma in ("synchronous = FULL", "secure_delete = ON", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {pragma}")
            migrate(
                connection,
                MIGRATIONS,
                path=self.path,
                application_id=APPLICATION_ID,
                what_to_do="upgrade this installation",
            )
        except BaseException:
            connection.close()
            raise
        return connection

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.path, kind="workspace", advice=WORKSPACE_ADVICE)
