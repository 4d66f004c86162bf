"""The file of the embedded workspace: its tables and migrations.

    events
    lists --< looks
    erasure_mark      one row, which every erasure changes

`PRAGMA user_version` is the number of applied migrations. Releases only append to `MIGRATIONS`; a published migration
is never edited.
"""

import sqlite3
from pathlib import Path

from similarity.index.sqlite.connections import FileKind
from similarity.index.sqlite.files import ADVICE, migrate, refuse_foreign
from similarity.index.sqlite.records import add_checksums, register_checksum
from similarity.index.sqlite.write_ahead_log import use_write_ahead_log

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
REFUSED = (
    "a process of an older release writes to this workspace, which was upgraded; stop it and start it with the new "
    "release"
)
CHECKSUMS = (
    *add_checksums(
        "events",
        "user, id, at, anchor, hit, verdict, rank, score, probability, generation, bundle_id, note",
        refused=REFUSED,
    ),
    *add_checksums("lists", "name, question, saved_by, saved_at", refused=REFUSED),
    *add_checksums("looks", "list_name, user, at, seen", refused=REFUSED),
)
ERASURE_MARK = (
    "CREATE TABLE erasure_mark (mark TEXT NOT NULL)",
    "INSERT INTO erasure_mark VALUES (hex(randomblob(16)))",
)
MIGRATIONS = (FIRST_VERSION, CHECKSUMS, ERASURE_MARK)


def prepare(connection: sqlite3.Connection, path: Path, busy_timeout: float) -> None:
    """Create the tables in a new file, and migrate an older one.

    Raises:
        IndexUnavailable: the file belongs to another program or to a newer release.
    """
    refuse_foreign(connection, path=path, application_id=APPLICATION_ID, what_to_do="move it away")
    use_write_ahead_log(connection, path=path, busy_timeout=busy_timeout)
    register_checksum(connection)
    migrate(connection, MIGRATIONS, path=path, application_id=APPLICATION_ID, what_to_do="upgrade this installation")


WORKSPACE_FILE = FileKind(
    name="workspace",
    prepare=prepare,
    # Deleted data is overwritten.
    pragmas=("synchronous = FULL", "secure_delete = ON", "foreign_keys = ON"),
    # The advice for an index does not apply: a workspace cannot be filled again.
    advice={**ADVICE, "SQLITE_CORRUPT": "it is damaged; restore a backup"},
)
