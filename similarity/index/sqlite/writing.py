"""Bulk writes to the SQLite index.

First the outcome of each document is decided. Then the documents that are applied are written: only the rows that
differ from the stored ones.

In the tables, the column `document` is the number of a document; the names here call it `number`.
"""

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from similarity.company import DeletedCompany, EmbeddedCompany, lowest_version_at
from similarity.index.protocol import WriteOutcome, WriteResult
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
    upsert_statement,
)
from similarity.index.validation import UnstorableDocument, same_version_reason

DELETIONS_PER_TRANSACTION = 500
CONTENT_TABLES = ("companies", "vectors", "lookups")
"""The tables of a document's content: rows with its number, none for a tombstone."""
WRITE_DOCUMENT = upsert_statement(
    "documents", (*Header._fields, "checksum"), key=("document",), kept=("generation", "id")
)
WRITE_PROFILE = upsert_statement("companies", ("document", *Profile._fields), key=("document",))
WRITE_VECTOR = upsert_statement("vectors", ("document", "vector"), key=("document",))


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it is stored before a batch is written; the `profile` of a tombstone is None."""

    number: int
    version: int
    text_hash: str
    profile: Profile | None
    vector: bytes


def prepare(document: EmbeddedCompany | DeletedCompany, *, dimension: int) -> DocumentRow | WriteResult:
    """Return the row of a document or, if it cannot be stored, a rejected result with the reason."""
    try:
        return document_row(document, dimension=dimension)
    except UnstorableDocument as error:
        return WriteResult(id=document.id, outcome=WriteOutcome.REJECTED, reason=str(error))


def write(
    connection: sqlite3.Connection,
    generation: StoredGeneration,
    documents: Sequence[DocumentRow],
    stored: Mapping[str, StoredDocument],
) -> list[WriteResult]:
    """Write the documents that are newer than the stored ones; return one result per document, in order.

    `stored`: the stored documents with these ids, by id. If an id occurs several times, each of its documents has a
    result, and only the last applied one is written.
    """
    newest: dict[str, StoredDocument | DocumentRow] = dict(stored)
    applied: dict[str, DocumentRow] = {}
    results = []
    for row in documents:
        result = _decide(row, newest.get(row.id))
        results.append(result)
        if result.outcome is WriteOutcome.APPLIED:
            newest[row.id] = applied[row.id] = row
    if applied:
        _apply(connection, generation, applied, stored)
    return results


def purge_tombstones(connection: sqlite3.Connection, generation: StoredGeneration, *, before: datetime) -> int:
    """Delete some tombstones of companies that were deleted before this time; return their number, 0 if none is left.

    Call it again until it returns 0: each transaction stays short.
    """
    rows = connection.execute(
        "SELECT document, sequence FROM documents WHERE generation = ? AND deleted AND version < ? LIMIT ?",
        (generation.number, lowest_version_at(before), DELETIONS_PER_TRANSACTION),
    ).fetchall()
    connection.executemany("DELETE FROM documents WHERE document = ?", [(number,) for number, _ in rows])
    highest = max((sequence for _, sequence in rows), default=0)
    generations.change(connection, generation.number, "purged = max(purged, ?)", highest)
    return len(rows)


def sweep(connection: sqlite3.Connection) -> bool:
    """Delete some documents of retired generations; return False if there was nothing to delete.

    Call it again until it returns False: each transaction stays short.
    """
    # A retired number that also belongs to a generation is damage; the documents of that generation must stay.
    retired = connection.execute(
        "SELECT number FROM retired WHERE number NOT IN (SELECT number FROM generations) LIMIT 1"
    ).fetchone()
    if retired is None:
        return False
    numbers = connection.execute(
        "SELECT document FROM documents WHERE generation = ? LIMIT ?", (*retired, DELETIONS_PER_TRANSACTION)
    ).fetchall()
    if numbers:
        _remove_content(connection, numbers)
        connection.executemany("DELETE FROM documents WHERE document = ?", numbers)
    else:
        connection.execute("DELETE FROM retired WHERE number = ?", retired)
    return True


def _decide(new: DocumentRow, previous: StoredDocument | DocumentRow | None) -> WriteResult:
    """Return the outcome of writing `new` over `previous`."""
    if previous is None or new.version > previous.version:
        return WriteResult(id=new.id, outcome=WriteOutcome.APPLIED, version=new.version)
    if new.version < previous.version:
        return WriteResult(id=new.id, outcome=WriteOutcome.SUPERSEDED, version=previous.version)
    if (new.profile, new.text_hash) == (previous.profile, previous.text_hash):
        return WriteResult(id=new.id, outcome=WriteOutcome.UNCHANGED, version=previous.version)
    reason = same_version_reason(new.version)
    return WriteResult(id=new.id, outcome=WriteOutcome.REJECTED, reason=reason, version=previous.version)


def read_stored(
    connection: sqlite3.Connection, generation: StoredGeneration, ids: Collection[str]
) -> dict[str, StoredDocument]:
    """Return the stored documents with these ids, by id, tombstones included."""
    stored = {}
    for row in connection.execute(DOCUMENTS_WITH_IDS, (json.dumps(list(ids)), generation.number)):
        header = checked_header(row)
        profile = None if header.deleted else checked_profile(header, row[AFTER_HEADER + 1 :])
        vector = row[AFTER_HEADER] or b""
        stored[header.id] = StoredDocument(header.document, header.version, header.text_hash, profile, vector)
    return stored


def _apply(
    connection: sqlite3.Connection,
    generation: StoredGeneration,
    applied: Mapping[str, DocumentRow],
    stored: Mapping[str, StoredDocument],
) -> None:
    """Write the `applied` documents (by id) over the `stored` ones, and update the counters of the generation."""
    sequence = generation.sequence + 1
    companies = sum(not row.deleted for row in applied.values())
    companies -= sum(stored[company_id].profile is not None for company_id in applied if company_id in stored)
    generations.change(connection, generation.number, "sequence = ?, companies = companies + ?", sequence, companies)
    added_rows = [row for company_id, row in applied.items() if company_id not in stored]
    next_number = connection.execute("SELECT coalesce(max(document), 0) + 1 FROM documents").fetchone()[0]
    added = list(enumerate(added_rows, start=next_number))
    changed = [(row, stored[company_id]) for company_id, row in applied.items() if company_id in stored]
    documents = [*added, *((previous.number, row) for row, previous in changed)]
    connection.executemany(
        WRITE_DOCUMENT, [sealed(_header(number, generation.number, sequence, row)) for number, row in documents]
    )
    _remove_content(connection, [(previous.number,) for row, previous in changed if row.deleted and previous.profile])
    new_profiles = [(previous.number, row) for row, previous in changed if row.profile != previous.profile]
    connection.executemany(
        "DELETE FROM lookups WHERE document = ?", [(number,) for number, row in new_profiles if not row.deleted]
    )
    _write_profiles(connection, generation.number, [*added, *new_profiles])
    new_vectors = [(previous.number, row) for row, previous in changed if row.vector != previous.vector]
    connection.executemany(
        WRITE_VECTOR, [(number, row.vector) for number, row in [*added, *new_vectors] if not row.deleted]
    )


def _header(number: int, generation: int, sequence: int, row: DocumentRow) -> Header:
    return Header(
        document=number,
        generation=generation,
        id=row.id,
        sequence=sequence,
        version=row.version,
        deleted=int(row.deleted),
        text_hash=row.text_hash,
        language=row.language,
        embedded_at=row.embedded_at,
        profile_checksum=checksum(*row.profile) if row.profile else None,
        vector_checksum=vector_checksum(number, generation, row.id, row.vector) if row.profile else None,
    )


def _write_profiles(
    connection: sqlite3.Connection, generation: int, documents: Sequence[tuple[int, DocumentRow]]
) -> None:
    """Write the profiles of numbered documents and their lookups; tombstones have neither."""
    # Lookups first: a trigger refuses a company whose numbers are not in `lookups` (`migrations.THIRD_VERSION`).
    # Sorted, so that rows of one page of the table are written together.
    lookups = sorted(
        (generation, field, value, number)
        for number, row in documents
        if row.company
        for field, value in lookup_values(row.company)
    )
    connection.executemany("INSERT INTO lookups VALUES (?, ?, ?, ?)", lookups)
    connection.executemany(WRITE_PROFILE, [(number, *row.profile) for number, row in documents if row.profile])


def _remove_content(connection: sqlite3.Connection, numbers: Sequence[tuple[int]]) -> None:
    """Delete profile, vector and lookups of the documents with these numbers."""
    for table in CONTENT_TABLES:
        connection.executemany(f"DELETE FROM {table} WHERE document = ?", numbers)
