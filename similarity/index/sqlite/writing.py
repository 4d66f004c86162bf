"""Bulk writes to the embedded index: the outcome of each document is decided, then only differences are written."""

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.index.protocol import WriteOutcome, WriteResult
from similarity.index.rules import UnstorableDocument, same_version_reason
from similarity.index.sqlite import generations
from similarity.index.sqlite.checksums import (
    AFTER_HEADER,
    Header,
    checked_header,
    checked_profile,
    checksum,
    sealed,
    vector_checksum,
)
from similarity.index.sqlite.generations import StoredGeneration
from similarity.index.sqlite.reading import DOCUMENTS_WITH_IDS
from similarity.index.sqlite.rows import (
    DocumentRow,
    Profile,
    document_row,
    lookup_values,
    microseconds,
    upsert_statement,
)

SWEEP_DOCUMENTS = 500
CONTENT_TABLES = ("companies", "vectors", "lookups")
WRITE_DOCUMENT = upsert_statement(
    "documents", (*Header._fields, "checksum"), key=("document",), kept=("generation", "id")
)
WRITE_PROFILE = upsert_statement("companies", ("document", *Profile._fields), key=("document",))
WRITE_VECTOR = upsert_statement("vectors", ("document", "vector"), key=("document",))


@dataclass(frozen=True, slots=True)
class Stored:
    """A document in the file before a batch. The `profile` of a tombstone is None."""

    document: int
    version: int
    text_hash: str
    profile: Profile | None
    vector: bytes


def prepare(document: EmbeddedCompany | DeletedCompany, *, dimension: int) -> DocumentRow | WriteResult:
    """Return the row that is written for a document, or the result with the reason of its rejection."""
    try:
        return document_row(document, dimension=dimension)
    except UnstorableDocument as problem:
        return WriteResult(id=document.id, outcome=WriteOutcome.REJECTED, reason=str(problem))


def write(
    connection: sqlite3.Connection,
    generation: StoredGeneration,
    documents: Sequence[DocumentRow],
    stored: Mapping[str, Stored],
) -> list[WriteResult]:
    """Write the documents that are newer than those in `stored` (by id); return one result per document, in order.

    If an id occurs twice, both documents are decided, in order, and only the last applied one is written.
    """
    newest: dict[str, Stored | DocumentRow] = dict(stored)
    applied: dict[str, DocumentRow] = {}
    results = []
    for document in documents:
        result = _decide(document, newest.get(document.id))
        results.append(result)
        if result.outcome is WriteOutcome.APPLIED:
            newest[document.id] = applied[document.id] = document
    if applied:
        _apply(connection, generation, applied, stored)
    return results


def purge_tombstones(connection: sqlite3.Connection, generation: StoredGeneration, *, before: datetime) -> int:
    """Delete some tombstones of deletes before a time; return their number, 0 if none is left."""
    rows = connection.execute(
        "SELECT document, sequence FROM documents WHERE generation = ? AND deleted AND version < ? LIMIT ?",
        (generation.number, 2 * microseconds(before), SWEEP_DOCUMENTS),
    ).fetchall()
    connection.executemany("DELETE FROM documents WHERE document = ?", [(document,) for document, _ in rows])
    highest = max((sequence for _, sequence in rows), default=0)
    generations.change(connection, generation.number, "purged = max(purged, ?)", highest)
    return len(rows)


def sweep(connection: sqlite3.Connection) -> bool:
    """Delete some documents of retired generations. Returns False if none is left."""
    # Damage could turn the number of a retired generation into that of another.
    retired = connection.execute(
        "SELECT number FROM retired WHERE number NOT IN (SELECT number FROM generations) LIMIT 1"
    ).fetchone()
    if retired is None:
        return False
    documents = connection.execute(
        "SELECT document FROM documents WHERE generation = ? LIMIT ?", (*retired, SWEEP_DOCUMENTS)
    ).fetchall()
    if documents:
        _remove_content(connection, documents)
        connection.executemany("DELETE FROM documents WHERE document = ?", documents)
    else:
        connection.execute("DELETE FROM retired WHERE number = ?", retired)
    return True


def _decide(document: DocumentRow, before: Stored | DocumentRow | None) -> WriteResult:
    if before is None or document.version > before.version:
        return WriteResult(id=document.id, outcome=WriteOutcome.APPLIED, version=document.version)
    if document.version < before.version:
        return WriteResult(id=document.id, outcome=WriteOutcome.SUPERSEDED, version=before.version)
    if (document.profile, document.text_hash) == (before.profile, before.text_hash):
        return WriteResult(id=document.id, outcome=WriteOutcome.UNCHANGED, version=before.version)
    reason = same_version_reason(document.version)
    return WriteResult(id=document.id, outcome=WriteOutcome.REJECTED, reason=reason, version=before.version)


def read_stored(
    connection: sqlite3.Connection, generation: StoredGeneration, ids: Collection[str]
) -> dict[str, Stored]:
    """Return the stored documents among `ids`, by id, tombstones included."""
    stored = {}
    for row in connection.execute(DOCUMENTS_WITH_IDS, (json.dumps(list(ids)), generation.number)):
        header = checked_header(row)
        profile = None if header.deleted else checked_profile(header, row[AFTER_HEADER + 1 :])
        vector = row[AFTER_HEADER] or b""
        stored[header.id] = Stored(header.document, header.version, header.text_hash, profile, vector)
    return stored


def _apply(
    connection: sqlite3.Connection,
    generation: StoredGeneration,
    applied: Mapping[str, DocumentRow],
    stored: Mapping[str, Stored],
) -> None:
    sequence = generation.sequence + 1
    companies = sum(not row.deleted for row in applied.values())
    companies -= sum(stored[company_id].profile is not None for company_id in applied if company_id in stored)
    generations.change(connection, generation.number, "sequence = ?, companies = companies + ?", sequence, companies)
    added = [row for company_id, row in applied.items() if company_id not in stored]
    changed = [(row, stored[company_id]) for company_id, row in applied.items() if company_id in stored]
    first = connection.execute("SELECT coalesce(max(document), 0) + 1 FROM documents").fetchone()[0]
    numbered = list(enumerate(added, start=first))
    documents = [*numbered, *((old.document, row) for row, old in changed)]
    connection.executemany(
        WRITE_DOCUMENT, [sealed(_header(document, generation.number, sequence, row)) for document, row in documents]
    )
    _remove_content(connection, [(old.document,) for row, old in changed if row.deleted and old.profile])
    replaced = [(old.document, row) for row, old in changed if row.profile != old.profile]
    connection.executemany(
        "DELETE FROM lookups WHERE document = ?", [(document,) for document, row in replaced if not row.deleted]
    )
    _write_profiles(connection, generation.number, [*numbered, *replaced])
    vectors = [*numbered, *((old.document, row) for row, old in changed if row.vector != old.vector)]
    connection.executemany(WRITE_VECTOR, [(document, row.vector) for document, row in vectors if not row.deleted])


def _header(document: int, generation: int, sequence: int, row: DocumentRow) -> Header:
    return Header(
        document=document,
        generation=generation,
        id=row.id,
        sequence=sequence,
        version=row.version,
        deleted=int(row.deleted),
        text_hash=row.text_hash,
        language=row.language,
        embedded_at=row.embedded_at,
        profile_checksum=checksum(*row.profile) if row.profile else None,
        vector_checksum=vector_checksum(document, generation, row.id, row.vector) if row.profile else None,
    )


def _write_profiles(connection: sqlite3.Connection, generation: int, rows: Sequence[tuple[int, DocumentRow]]) -> None:
    # Lookups first: a trigger refuses a company whose numbers are not in `lookups` (`schema.THIRD_VERSION`).
    # Sorted, because rows that are neighbours in the table are then on the same page.
    lookups = sorted(
        (generation, field, value, document)
        for document, row in rows
        if row.company
        for field, value in lookup_values(row.company)
    )
    connection.executemany("INSERT INTO lookups VALUES (?, ?, ?, ?)", lookups)
    connection.executemany(WRITE_PROFILE, [(document, *row.profile) for document, row in rows if row.profile])


def _remove_content(connection: sqlite3.Connection, documents: Sequence[tuple[int]]) -> None:
    for table in CONTENT_TABLES:
        connection.executemany(f"DELETE FROM {table} WHERE document = ?", documents)
