"""Looks into the file of an embedded index for anything that was written only in part."""

import sqlite3
from contextlib import closing
from pathlib import Path

from similarity.index.sqlite.rows import PROFILE_COLUMNS, Profile, company_of, lookup_values

CONTENT_OF_NO_COMPANY = (
    "SELECT count(*) FROM {table} WHERE document NOT IN (SELECT document FROM documents WHERE NOT deleted)"
)
COMPANIES_WITHOUT_CONTENT = (
    "SELECT count(*) FROM documents WHERE NOT deleted AND document NOT IN (SELECT document FROM {table})"
)
LATER_THAN_ITS_GENERATION = """
    SELECT count(*) FROM documents JOIN generations ON number = generation
    WHERE documents.sequence > generations.sequence
"""


def damage(path: Path) -> list[str]:
    """What is wrong with the file, one line each; empty where all is well."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        problems = [line for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
        try:
            connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            problems.append(f"words differ from companies: {error}")
        for table in ("companies", "vectors", "lookups"):
            problems += _count(connection, CONTENT_OF_NO_COMPANY.format(table=table), f"{table} without a document")
            problems += _count(connection, COMPANIES_WITHOUT_CONTENT.format(table=table), f"documents without {table}")
        problems += _count(connection, LATER_THAN_ITS_GENERATION, "documents later than their generation")
        problems += _wrong_lookups(connection)
    return problems


def _count(connection: sqlite3.Connection, query: str, meaning: str) -> list[str]:
    number = connection.execute(query).fetchone()[0]
    return [f"{number} {meaning}"] if number else []


def _wrong_lookups(connection: sqlite3.Connection) -> list[str]:
    expected = {
        (generation, field, value, document)
        for document, generation, company_id, *columns in connection.execute(
            f"SELECT document, generation, id, {PROFILE_COLUMNS} FROM documents JOIN companies USING (document)"
        )
        for field, value in lookup_values(company_of(company_id, Profile(*columns)))
    }
    stored = set(connection.execute("SELECT generation, field, value, document FROM lookups"))
    return [f"lookup {row} is missing or should not be there" for row in sorted(expected ^ stored)]
