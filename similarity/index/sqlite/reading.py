"""Reading documents of the embedded index: by id, by page, by number, and counting them."""

import json
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from similarity.company import ID_PATTERN, Company, DeletedCompany, EmbeddedCompany, Vector
from similarity.index.protocol import DocumentVersion, GenerationStats
from similarity.index.sqlite.generations import StoredGeneration
from similarity.index.sqlite.rows import PROFILE_COLUMNS, Profile, Row, company_of, moment, vector_of

DOCUMENT_COLUMNS = f"id, version, deleted, text_hash, language, embedded_at, vector, {PROFILE_COLUMNS}"


@dataclass(frozen=True, slots=True)
class CompanyFacts:
    """What an answer says about a company beside its score."""

    company: Company
    version: int
    embedded_at: datetime
    language: str


def documents_with_ids(
    connection: sqlite3.Connection, generation: StoredGeneration, ids: Collection[str]
) -> dict[str, EmbeddedCompany]:
    """The companies among `ids`, by id; deleted and unknown ones are left out."""
    query = f"""
        SELECT {DOCUMENT_COLUMNS}
        FROM (SELECT value AS wanted FROM json_each(?))
        CROSS JOIN documents ON generation = ? AND id = wanted
        JOIN companies USING (document)
        JOIN vectors USING (document)
    """
    rows = connection.execute(query, (_possible(ids), generation.number))
    return {row[0]: _embedded(generation, row) for row in rows}


def documents_after(
    connection: sqlite3.Connection, generation: StoredGeneration, *, after: str, limit: int
) -> list[EmbeddedCompany | DeletedCompany]:
    """The documents of the next ids after `after`, ascending, tombstones included."""
    query = f"""
        SELECT {DOCUMENT_COLUMNS}
        FROM documents
        LEFT JOIN companies USING (document)
        LEFT JOIN vectors USING (document)
        WHERE documents.generation = ? AND documents.id > ?
        ORDER BY documents.id LIMIT ?
    """
    return [_document(generation, row) for row in connection.execute(query, (generation.number, after, limit))]


def versions_after(
    connection: sqlite3.Connection, generation: StoredGeneration, *, after: str, limit: int
) -> list[DocumentVersion]:
    """The versions of what `documents_after` reads."""
    rows = connection.execute(
        "SELECT id, version FROM documents WHERE generation = ? AND id > ? ORDER BY id LIMIT ?",
        (generation.number, after, limit),
    )
    return [DocumentVersion(id=company_id, version=version) for company_id, version in rows]


def versions_with_ids(
    connection: sqlite3.Connection, generation: StoredGeneration, ids: Collection[str]
) -> dict[str, int]:
    """The versions of the documents among `ids`, tombstones included."""
    rows = connection.execute(
        "SELECT id, version FROM (SELECT value AS wanted FROM json_each(?))"
        " CROSS JOIN documents ON generation = ? AND id = wanted",
        (_possible(ids), generation.number),
    )
    return dict(rows)


def vectors(connection: sqlite3.Connection, documents: Sequence[int]) -> list[Vector]:
    """The vectors of these document numbers, in their order."""
    found = dict(
        connection.execute(
            "SELECT document, vector FROM vectors WHERE document IN (SELECT value FROM json_each(?))",
            (json.dumps(documents),),
        )
    )
    return [vector_of(found[document]) for document in documents]


def company_facts(connection: sqlite3.Connection, documents: Sequence[int]) -> list[CompanyFacts]:
    """The companies of these document numbers, in their order; numbers that are gone are left out."""
    query = f"""
        SELECT document, id, version, embedded_at, language, {PROFILE_COLUMNS}
        FROM (SELECT value AS wanted FROM json_each(?))
        CROSS JOIN documents ON document = wanted
        JOIN companies USING (document)
    """
    found = {}
    for document, company_id, version, embedded_at, language, *columns in connection.execute(
        query, (json.dumps(documents),)
    ):
        company = company_of(company_id, Profile(*columns))
        found[document] = CompanyFacts(company, version, moment(embedded_at), language)
    return [found[document] for document in documents if document in found]


def stats(connection: sqlite3.Connection, generation: StoredGeneration) -> GenerationStats:
    """Counts of one generation."""
    total, deleted, last_version, not_english = connection.execute(
        "SELECT count(*), coalesce(sum(deleted), 0), coalesce(max(version), 0),"
        " coalesce(sum(NOT deleted AND language NOT IN ('en', 'und')), 0) FROM documents WHERE generation = ?",
        (generation.number,),
    ).fetchone()
    return GenerationStats(
        companies=total - deleted, deleted=deleted, last_version=last_version, not_english=not_english
    )


def _possible(ids: Collection[str]) -> str:
    """Those of `ids` that a company can have, as JSON."""
    return json.dumps([company_id for company_id in ids if ID_PATTERN.fullmatch(company_id)])


def _document(generation: StoredGeneration, row: Row) -> EmbeddedCompany | DeletedCompany:
    company_id, version, deleted = row[:3]
    return DeletedCompany(id=company_id, version=version) if deleted else _embedded(generation, row)


def _embedded(generation: StoredGeneration, row: Row) -> EmbeddedCompany:
    company_id, version, _, text_hash, language, embedded_at, vector, *columns = row
    return EmbeddedCompany(
        company=company_of(company_id, Profile(*columns)),
        version=version,
        text_hash=text_hash,
        encoder_id=generation.record.encoder_id,
        vector=vector_of(vector),
        embedded_at=moment(embedded_at),
        language=language,
    )
