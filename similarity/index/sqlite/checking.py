"""Finds damage in the file of an SQLite index by reading all of it."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from similarity.errors import IndexUnavailable
from similarity.index.sqlite import generations
from similarity.index.sqlite.attributes import DECLARED_TYPES
from similarity.index.sqlite.checksums import (
    AFTER_HEADER,
    checked_header,
    checked_profile,
    checked_vector,
    document_name,
)
from similarity.index.sqlite.files import ADVICE, DamagedRow, damaged_pages
from similarity.index.sqlite.generations import StoredGeneration
from similarity.index.sqlite.leases import LEASES
from similarity.index.sqlite.ledger import LEDGER_TABLES
from similarity.index.sqlite.reading import DOCUMENTS, require_companies
from similarity.index.sqlite.records import any_text, first_lines
from similarity.index.sqlite.rows import Row, company_of, lookup_values

CONTENT_OF_NO_COMPANY = (
    "SELECT count(*) FROM {table} WHERE document NOT IN (SELECT document FROM documents WHERE NOT deleted)"
)

DOCUMENTS_OF_NO_GENERATION = (
    "SELECT count(*) FROM documents "
    "WHERE generation NOT IN (SELECT number FROM generations UNION SELECT number FROM retired)"
)
# The process of the check finds modules where this one does, also without an installation.
CHECK_OF_WORDS = """
import sqlite3, sys
sys.path[:] = sys.argv[3:]
from similarity.index.cjk import stored_bigrams
connection = sqlite3.connect(sys.argv[1], timeout=float(sys.argv[2]), isolation_level=None)
connection.create_function("stored_bigrams", 1, stored_bigrams, deterministic=True)
connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
"""


def damage(connection: sqlite3.Connection) -> list[str]:
    """Return a line for each damage in the file, at most a hundred. The words are not checked here."""
    tables = (*LEDGER_TABLES, LEASES, DECLARED_TYPES, generations.RETIRED_BUNDLES)
    with any_text(connection):
        found = chain(
            damaged_pages(connection),
            _damaged_generations(connection),
            _damaged_counters(connection),
            _wrongly_retired(connection),
            *(_orphans(connection, table) for table in ("companies", "vectors", "lookups")),
            *(table.damage(connection) for table in tables),
        )
        return first_lines(found)


def damaged_words(path: Path, *, busy_timeout: float) -> list[str]:
    """Return a line if the words in the file at `path` differ from its companies, or cannot be read.

    Another process checks them, because SQLite 3.40 ends with a segmentation fault at some damaged words.

    Raises:
        IndexUnavailable: another process has been writing for `busy_timeout` seconds.
    """
    command = [sys.executable, "-I", "-c", CHECK_OF_WORDS, str(path), str(busy_timeout), *sys.path]
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if ended.returncode == 0:
        return []
    reason = ended.stderr.strip().rpartition("\n")[2] or f"SQLite ended with signal {-ended.returncode}"
    if reason.endswith("database is locked"):
        raise IndexUnavailable(f"{path} was not checked to its end: {ADVICE['SQLITE_BUSY']}")
    return [f"the words differ from the companies, or cannot be checked: {reason:.200}"]


def _damaged_generations(connection: sqlite3.Connection) -> Iterator[str]:
    try:
        for generation in generations.every(connection):
            yield from _damaged_documents(connection, generation)
    except DamagedRow as problem:
        yield str(problem)


def _damaged_counters(connection: sqlite3.Connection) -> Iterator[str]:
    try:
        generations.counters(connection)
    except DamagedRow as problem:
        yield str(problem)


def _wrongly_retired(connection: sqlite3.Connection) -> Iterator[str]:
    for (number,) in connection.execute("SELECT number FROM retired INTERSECT SELECT number FROM generations"):
        yield f"the generation with the number {number} is among the retired ones too"
    [documents] = connection.execute(DOCUMENTS_OF_NO_GENERATION).fetchone()
    if documents:
        yield f"{documents:,} documents belong to no generation, not even to a retired one"


def _damaged_documents(connection: sqlite3.Connection, generation: StoredGeneration) -> Iterator[str]:
    rows = connection.execute(f"{DOCUMENTS} WHERE generation = ?", (generation.number,))
    companies = 0
    for row in rows:
        try:
            companies += _check_document(connection, generation, row)
        except DamagedRow as problem:
            yield str(problem)
    try:
        require_companies(generation, companies)
    except DamagedRow as problem:
        yield str(problem)


def _check_document(connection: sqlite3.Connection, generation: StoredGeneration, row: Row) -> bool:
    """Return whether the document is a company, not a tombstone.

    Raises:
        DamagedRow: a part of it differs from what was written.
    """
    header = checked_header(row)
    if header.sequence > generation.sequence:
        raise DamagedRow(f"{document_name(header.document, header.id)} is later than its generation")
    if header.deleted:
        return False
    profile = checked_profile(header, row[AFTER_HEADER + 1 :])
    checked_vector(header.document, header.generation, header.id, row[AFTER_HEADER], header.vector_checksum)
    expected = lookup_values(company_of(header.id, profile))
    stored = connection.execute(
        "SELECT generation, field, value FROM lookups WHERE document = ?", (header.document,)
    ).fetchall()
    if len(stored) != len(expected) or set(stored) != {(header.generation, *pair) for pair in expected}:
        raise DamagedRow(f"the lookups of {document_name(header.document, header.id)} differ from its profile")
    return True


def _orphans(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    [number] = connection.execute(CONTENT_OF_NO_COMPANY.format(table=table)).fetchone()
    if number:
        yield f"{number:,} rows of {table} belong to no company"
