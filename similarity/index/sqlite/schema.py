"""The file of the SQLite index. `migrations` creates its tables and upgrades older files.

    generations --< documents --- companies
                              --- vectors
                              --< lookups
    words (FTS5 index of `searched_texts`, a view of `companies`)
    registry, retired, retired_bundles, leases, attributes, former_names, erasures

A tombstone has only a row of `documents`. `lookups` contains the values by which a company is found exactly: names and
filter values in `company.name_key` form, and the key of each number (`index.numbers`). The language, which is also a
filter value, is a column of `documents` instead. The profile and the vector are not in `documents`, so that a newer
version of an unchanged company rewrites a row of about 100 bytes only.
"""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from similarity.errors import IndexUnavailable
from similarity.formats.json_text import read_json
from similarity.index.cjk import stored_bigrams
from similarity.index.sqlite import files as sqlite_files
from similarity.index.sqlite.checksums import vector_checksum
from similarity.index.sqlite.connections import FileKind
from similarity.index.sqlite.files import ADVICE, DamagedRow, Migration, refuse_foreign
from similarity.index.sqlite.migrations import CHECKSUMS, GENERATION_COLUMNS, MIGRATIONS, RANKERS
from similarity.index.sqlite.records import register_checksum
from similarity.index.sqlite.rows import number_lookups
from similarity.index.sqlite.write_ahead_log import use_write_ahead_log

APPLICATION_ID = 0x43_53_49_58  # "CSIX": distinguishes the files from those of other programs
# A page holds five vectors of 384 dimensions (94 % full); a page of 4096 bytes holds two (75 %).
PAGE_BYTES = 8192
CACHE_KIBIBYTES = 32_768


def prepare(connection: sqlite3.Connection, path: Path, busy_timeout: float) -> None:
    """Create the tables in a new file, and migrate an older one. `busy_timeout` is in seconds.

    Raises:
        IndexUnavailable: the file belongs to another program or to a newer release, its file system cannot hold
            a write-ahead log, or this SQLite has no FTS5.
    """
    refuse_foreign(connection, path=path, application_id=APPLICATION_ID, what_to_do="name another file")
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    use_write_ahead_log(connection, path=path, busy_timeout=busy_timeout)
    try:
        migrate(connection, MIGRATIONS, path=path)
    except sqlite3.OperationalError as error:
        if "no such module: fts5" in str(error):
            raise IndexUnavailable("this Python's SQLite has no FTS5; use a Python built with it") from error
        raise


INDEX_FILE = FileKind(
    name="index",
    prepare=prepare,
    # Every commit is on disk before it is acknowledged.
    pragmas=("synchronous = FULL", f"cache_size = -{CACHE_KIBIBYTES}"),
    advice=ADVICE,
    functions={"stored_bigrams": stored_bigrams},
)


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration], *, path: Path) -> None:
    """Register the SQL functions that migrations call, and apply the missing migrations (`sqlite_files.migrate`).

    Raises:
        IndexUnavailable: a newer release has migrated the file.
        DamagedRow: the row of a generation is damaged.
    """
    connection.create_function("number_lookups", 1, _number_lookups, deterministic=True)
    register_checksum(connection)
    connection.create_function("vector_checksum", 4, vector_checksum, deterministic=True)
    _require_undamaged_generations(connection)
    sqlite_files.migrate(
        connection,
        migrations,
        path=path,
        application_id=APPLICATION_ID,
        what_to_do="upgrade this installation, or open a backup made before the upgrade",
    )


def _require_undamaged_generations(connection: sqlite3.Connection) -> None:
    """Raise DamagedRow if the row of a generation differs from its checksum.

    Called before the migration RANKERS, which computes these checksums anew, so that damage would no longer be noticed.
    """
    [applied] = connection.execute("PRAGMA user_version").fetchone()
    if MIGRATIONS.index(CHECKSUMS) < applied <= MIGRATIONS.index(RANKERS):
        query = f"SELECT name FROM generations WHERE checksum({GENERATION_COLUMNS}) IS NOT checksum"
        if damaged := connection.execute(query).fetchone():
            raise DamagedRow(f"the row of generation {damaged[0]!r:.80} differs from its checksum")


def _number_lookups(attributes: str) -> str:
    """Return `rows.number_lookups` of stored attributes as JSON; SQLite itself does not read decimals exactly."""
    try:
        return json.dumps(number_lookups(read_json(attributes)))
    except ValueError:
        # Ignored here: reading this company later reports the damage.
        return "{}"
