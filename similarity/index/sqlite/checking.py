"""Damage to the embedded index's file, found by reading all of it."""

import sqlite3
from collections.abc import Iterator
from itertools import chain

from similarity.index.sqlite import generations
from similarity.index.sqlite.checksums import (
    AFTER_HEADER,
    HEADER_COLUMNS,
    check_profile,
    checked_header,
    checked_vector,
    document_name,
)
from similarity.index.sqlite.files import DamagedRow, damaged_pages
from similarity.index.sqlite.generations import StoredGeneration
from similarity.index.sqlite.ledger import LEDGER_TABLES
from similarity.index.sqlite.reading import require_companies
from similarity.index.sqlite.records import any_text, first_lines
from similarity.index.sqlite.rows import PROFILE_COLUMNS, Profile, Row, company_of, lookup_values

CONTENT_OF_NO_COMPANY = (
    "SELECT count(*) FROM {table} WHERE document NOT IN (SELECT document FROM documents WHERE NOT deleted)"
)


def damage(connection: sqlite3.Connection) -> list[str]:
    """What is wrong with the file but for the words, one line each, the first hundred; empty where nothing is."""
    with any_text(connection):
        found = chain(
            damaged_pages(connection),
            _damaged_generations(connection),
            *(_orphans(connection, table) for table in ("companies", "vectors", "lookups")),
            *(table.damage(connection) for table in LEDGER_TABLES),
        )
        return first_lines(found)


def damaged_words(connection: sqlite3.Connection) -> list[str]:
    """A line if the words differ from the companies. `connection` may write: FTS5 takes its check as an insert."""
    try:
        connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        return [f"the words differ from the companies: {error!s:.200}"]
    return []


def _damaged_generations(connection: sqlite3.Connection) -> Iterator[str]:
    try:
        for generation in generations.every(connection):
            yield from _damaged_documents(connection, generation)
    except DamagedRow as problem:
        yield str(problem)


def _damaged_documents(connection: sqlite3.Connection, generation: StoredGeneration) -> Iterator[str]:
    rows = connection.execute(
        f"SELECT {HEADER_COLUMNS}, vector, {PROFILE_COLUMNS} FROM documents "
        "LEFT JOIN companies USING (document) LEFT JOIN vectors USING (document) WHERE generation = ?",
        (generation.number,),
    )
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
    """Whether the document is a company. DamagedRow if any of it is not as it was written."""
    header = checked_header(row)
    if header.sequence > generation.sequence:
        raise DamagedRow(f"{document_name(header.document, header.id)} is later than its generation")
    if header.deleted:
        return False
    vector, profile = row[AFTER_HEADER], row[AFTER_HEADER + 1 :]
    check_profile(header, profile)
    checked_vector(header.document, header.generation, header.id, vector, header.vector_checksum)
    expected = lookup_values(company_of(header.id, Profile(*profile)))
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
