"""Reads documents of the SQLite index by id, by page and by number, and counts them."""

import json
import sqlite3
from collections.abc import Collection, Mapping

from similarity.company import ID_PATTERN, Company, DeletedCompany, EmbeddedCompany, SimilarCompany
from similarity.index.filters import LANGUAGE
from similarity.index.protocol import EXAMPLE_IDS, MAX_FIELD_VALUES, DocumentVersion, GenerationStats
from similarity.index.sqlite.checksums import (
    AFTER_HEADER,
    HEADER_COLUMNS,
    Header,
    checked_header,
    checked_profile,
    checked_vector,
)
from similarity.index.sqlite.files import DamagedRow
from similarity.index.sqlite.generations import StoredGeneration
from similarity.index.sqlite.rows import PROFILE_COLUMNS, Row, company_of, moment
from similarity.index.validation import check_characters_found, filter_key
from similarity.preparation.language import UNDECIDED
from similarity.text import NO_TEXT

DOCUMENTS = (
    f"SELECT {HEADER_COLUMNS}, vector, {PROFILE_COLUMNS} FROM documents "
    "LEFT JOIN companies USING (document) LEFT JOIN vectors USING (document)"
)
DOCUMENTS_WITH_IDS = f"""
    SELECT {HEADER_COLUMNS}, vector, {PROFILE_COLUMNS}
    FROM (SELECT value AS wanted FROM json_each(?))
    CROSS JOIN documents ON generation = ? AND id = wanted
    LEFT JOIN companies USING (document)
    LEFT JOIN vectors USING (document)
"""
IN_OTHER_LANGUAGES = "NOT deleted AND language NOT IN (SELECT value FROM json_each(?))"


def field_values(
    connection: sqlite3.Connection, generation: StoredGeneration, field: str, among: Collection[str]
) -> list[str]:
    """Return the values of a filter field, most frequent first; see `CompanyIndex.field_values`."""
    keys = sorted({filter_key(value) for value in among})
    held = (
        "SELECT generation, 'language' AS field, language AS value FROM documents WHERE NOT deleted"
        if field == LANGUAGE
        else "SELECT generation, field, value FROM lookups"
    )
    chosen = "AND value IN (SELECT value FROM json_each(?))" if keys else ""
    found = connection.execute(
        f"SELECT value FROM ({held}) WHERE generation = ? AND field = ? {chosen} "
        "GROUP BY value ORDER BY count(*) DESC, value LIMIT ?",
        (generation.number, field, *([json.dumps(keys)] if keys else []), MAX_FIELD_VALUES),
    )
    return [value for (value,) in found]


def documents_with_ids(
    connection: sqlite3.Connection, generation: StoredGeneration, ids: Collection[str]
) -> dict[str, EmbeddedCompany]:
    """Return the companies among `ids`, by id, without deleted and unknown ones."""
    rows = connection.execute(DOCUMENTS_WITH_IDS, (_possible(ids), generation.number))
    documents = [_document(generation, row) for row in rows]
    return {document.id: document for document in documents if isinstance(document, EmbeddedCompany)}


def documents_after(
    connection: sqlite3.Connection, generation: StoredGeneration, *, after: str, limit: int
) -> list[EmbeddedCompany | DeletedCompany]:
    """Return the documents with the next ids after `after`, ascending, tombstones included."""
    query = f"{DOCUMENTS} WHERE documents.generation = ? AND documents.id > ? ORDER BY documents.id LIMIT ?"
    return [_document(generation, row) for row in connection.execute(query, (generation.number, after, limit))]


def versions_after(
    connection: sqlite3.Connection, generation: StoredGeneration, *, after: str, limit: int
) -> list[DocumentVersion]:
    """Return the versions of the documents that `documents_after` returns."""
    rows = connection.execute(
        f"SELECT {HEADER_COLUMNS} FROM documents WHERE generation = ? AND id > ? ORDER BY id LIMIT ?",
        (generation.number, after, limit),
    )
    return [DocumentVersion(id=header.id, version=header.version) for header in map(checked_header, rows)]


def versions_with_ids(
    connection: sqlite3.Connection, generation: StoredGeneration, ids: Collection[str]
) -> dict[str, int]:
    """Return the versions of the documents among `ids`, by id, tombstones included."""
    rows = connection.execute(
        f"SELECT {HEADER_COLUMNS} FROM (SELECT value AS wanted FROM json_each(?))"
        " CROSS JOIN documents ON generation = ? AND id = wanted",
        (_possible(ids), generation.number),
    )
    return {header.id: header.version for header in map(checked_header, rows)}


def companies(connection: sqlite3.Connection, scores: Mapping[int, float]) -> list[SimilarCompany]:
    """Return a company for each key of `scores` (the number of its document), in that order, with its score.

    Raises:
        InvalidInput: they have too many characters in all.
        DamagedRow: a row is missing or damaged.
    """
    query = f"""
        SELECT {HEADER_COLUMNS}, {PROFILE_COLUMNS}
        FROM (SELECT value AS wanted FROM json_each(?))
        CROSS JOIN documents ON document = wanted
        LEFT JOIN companies USING (document)
    """
    found = {}
    characters = 0
    for row in connection.execute(query, (json.dumps(list(scores)),)):
        header = checked_header(row)
        company = _company(header, row[AFTER_HEADER:])
        characters += company.characters()
        check_characters_found(characters)
        found[header.document] = SimilarCompany(
            company=company,
            score=scores[header.document],
            version=header.version,
            embedded_at=moment(header.embedded_at),
            language=header.language,
        )
    missing = scores.keys() - found.keys()
    if missing:
        raise DamagedRow(f"document {min(missing)} was found by the search, but its row cannot be read")
    return [found[document] for document in scores]


def stats(connection: sqlite3.Connection, generation: StoredGeneration) -> GenerationStats:
    """Return the counts of a generation. Raises DamagedRow if a company is missing."""
    total, deleted, last_version, without_vector = connection.execute(
        "SELECT count(*), coalesce(sum(deleted), 0), coalesce(max(version), 0), coalesce(sum(text_hash = ?), 0) "
        "FROM documents WHERE generation = ?",
        (NO_TEXT, generation.number),
    ).fetchone()
    languages = dict(
        connection.execute(
            "SELECT language, count(*) FROM documents WHERE generation = ? AND NOT deleted GROUP BY language "
            "ORDER BY count(*) DESC, language",
            (generation.number,),
        )
    )
    encoder_languages = {*generation.record.languages, UNDECIDED}
    in_other_languages = sum(count for language, count in languages.items() if language not in encoder_languages)
    require_companies(generation, total - deleted)

    def first_ids(condition: str, *values: str) -> tuple[str, ...]:
        query = f"SELECT id FROM documents WHERE generation = ? AND {condition} ORDER BY id LIMIT {EXAMPLE_IDS}"
        return tuple(company_id for (company_id,) in connection.execute(query, (generation.number, *values)))

    return GenerationStats(
        companies=total - deleted,
        deleted=deleted,
        last_version=last_version,
        unread=in_other_languages,
        without_vector=without_vector,
        unread_ids=first_ids(IN_OTHER_LANGUAGES, json.dumps(sorted(encoder_languages))) if in_other_languages else (),
        without_vector_ids=first_ids("text_hash = ?", NO_TEXT) if without_vector else (),
        languages=languages,
    )


def _possible(ids: Collection[str]) -> str:
    """Return the valid ids among `ids`, as JSON."""
    return json.dumps([company_id for company_id in ids if ID_PATTERN.fullmatch(company_id)])


def require_companies(generation: StoredGeneration, found: int) -> None:
    """Raise DamagedRow if `found`, the number of companies that can be read, differs from the number written."""
    if found != generation.companies:
        raise DamagedRow(
            f"generation {generation.record.name!r} should hold {generation.companies:,} companies, but {found:,} can "
            "be read"
        )


def _document(generation: StoredGeneration, row: Row) -> EmbeddedCompany | DeletedCompany:
    header = checked_header(row)
    if header.deleted:
        return DeletedCompany(id=header.id, version=header.version)
    return EmbeddedCompany(
        company=_company(header, row[AFTER_HEADER + 1 :]),
        version=header.version,
        text_hash=header.text_hash,
        encoder_id=generation.record.encoder_id,
        vector=checked_vector(header.document, header.generation, header.id, row[AFTER_HEADER], header.vector_checksum),
        embedded_at=moment(header.embedded_at),
        language=header.language,
    )


def _company(header: Header, columns: Row) -> Company:
    return company_of(header.id, checked_profile(header, columns))
