"""Tables with a checksum of each row, such as the tables of the workspace, the erasure ledger and leases.

Every read compares the checksums, so a flipped bit is an error and never part of an answer. Damage to a key can hide
a row from a query by this key; `damage` reads all rows and finds it.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from similarity.errors import SimilarityError
from similarity.index.sqlite.checksums import checksum
from similarity.index.sqlite.files import DamagedRow, Migration
from similarity.index.sqlite.rows import Row, upsert_statement

MOST_LINES = 100

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Records(Generic[Record]):
    """A table with a column `checksum`. `key` are the columns of its primary key, `values` the others.

    `decode` makes a record of the columns before the checksum.
    """

    table: str
    key: tuple[str, ...]
    values: tuple[str, ...]
    decode: Callable[[Row], Record]

    @property
    def columns(self) -> tuple[str, ...]:
        return *self.key, *self.values

    def write(self, connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
        """Store rows with checksums; rows with the same key are replaced. A value must have the type of its column."""
        statement = upsert_statement(self.table, (*self.columns, "checksum"), key=self.key)
        connection.executemany(statement, [(*row, checksum(*row)) for row in rows])

    def read(self, connection: sqlite3.Connection, clause: str = "", values: Sequence[object] = ()) -> list[Record]:
        """Return the records of the rows that `stored` returns. Raises DamagedRow if a row is damaged."""
        return [self.record(row) for row in self.stored(connection, clause, values)]

    def stored(self, connection: sqlite3.Connection, clause: str = "", values: Sequence[object] = ()) -> list[Row]:
        """Return rows with their checksums, not compared. `clause` follows the name of the table in the query."""
        with any_text(connection):
            query = f"SELECT {', '.join(self.columns)}, checksum FROM {self.table} {clause}"
            return connection.execute(query, values).fetchall()

    def record(self, row: Row) -> Record:
        """Return the record of a row from `stored`. Raises DamagedRow if the row differs from what was written."""
        *values, expected = row
        if checksum(*values) != expected:
            raise DamagedRow(f"{self._name(row)} differs from its checksum")
        try:
            return self.decode(tuple(values))
        # The row was damaged before its checksum was computed.
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, SimilarityError) as error:
            raise DamagedRow(f"{self._name(row)} cannot be read: {error!s:.200}") from error

    def damage(self, connection: sqlite3.Connection) -> Iterator[str]:
        """Yield a line for each damaged row."""
        # Without NOT INDEXED, SQLite may read the copies of some columns in an index.
        for row in self.stored(connection, "NOT INDEXED"):
            try:
                self.record(row)
            except DamagedRow as problem:
                yield str(problem)

    def _name(self, row: Row) -> str:
        key = row[: len(self.key)]
        return f"the row {key!r:.200} of {self.table}" if key else f"the row of {self.table}"


@contextmanager
def any_text(connection: sqlite3.Connection) -> Iterator[None]:
    """Let the connection read text that is not UTF-8, so that messages can name the damaged row."""
    before = connection.text_factory
    connection.text_factory = lambda stored: stored.decode("utf-8", "surrogateescape")
    try:
        yield
    finally:
        connection.text_factory = before


def first_lines(damage: Iterator[str]) -> list[str]:
    """Return the first `MOST_LINES` lines about damage. If SQLite cannot read further, the last line says so."""
    return list(islice(_until_broken(damage), MOST_LINES))


def _until_broken(lines: Iterator[str]) -> Iterator[str]:
    try:
        yield from lines
    except (sqlite3.DatabaseError, MemoryError) as error:
        yield f"the rest cannot be read: {str(error) or 'a damaged page asks for too much memory':.200}"


def add_checksums(table: str, columns: str, *, refused: str) -> Migration:
    """Return the migration that gives each row of a table a checksum of these columns.

    Processes of older releases do not write checksums; their writes are then refused with the error `refused`.
    """
    refusal = f"BEGIN SELECT RAISE(ABORT, '{refused}'); END"
    new, old = (", ".join(f"{row}.{name}" for name in columns.split(", ")) for row in ("new", "old"))
    is_changed = f"({new}) IS NOT ({old})"
    return (
        f"ALTER TABLE {table} ADD COLUMN checksum INTEGER",
        f"UPDATE {table} SET checksum = checksum({columns})",
        f"CREATE TRIGGER {table}_added_with_checksum BEFORE INSERT ON {table} WHEN new.checksum IS NULL {refusal}",
        f"CREATE TRIGGER {table}_changed_with_checksum BEFORE UPDATE OF {columns} ON {table} "
        f"WHEN new.checksum IS old.checksum AND {is_changed} {refusal}",
    )


def register_checksum(connection: sqlite3.Connection) -> None:
    """Define the SQL function `checksum`, which the migrations of `add_checksums` call."""
    connection.create_function("checksum", -1, checksum, deterministic=True)
