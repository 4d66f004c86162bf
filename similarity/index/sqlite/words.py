"""Finds companies by name, domain and words in the SQLite index. Any text is allowed; there is no query syntax."""

import json
import re
import sqlite3
from collections.abc import Collection, Sequence
from itertools import combinations

from similarity.company import ID_PATTERN, Company, name_key, normalize_domain
from similarity.errors import InvalidCompany
from similarity.index.cjk import with_bigrams
from similarity.index.sqlite.checksums import HEADER_COLUMNS, checked_header
from similarity.index.sqlite.filters import Condition, require_passing
from similarity.index.sqlite.generations import StoredGeneration
from similarity.index.sqlite.reading import companies
from similarity.index.sqlite.rows import NAME_FIELD
from similarity.index.sqlite.vocabulary import Vocabulary
from similarity.index.validation import MAX_RESOLVED, filter_key, fold, has_whole_words, storable

MAX_MISSPELLED_WORDS = 8
MAX_QUERY_WORDS = 12
FIRST_WITH_VALUE = (
    "SELECT document FROM lookups JOIN documents USING (document) "
    "WHERE lookups.generation = ? AND field = ? AND value = ? ORDER BY id LIMIT ?"
)
MAX_CHECKED = 20
"""Companies of one value whose texts are read, to see whether they have it; of the others only the ids are read."""
MAX_CHECKED_TOGETHER = 1_000
"""The same limit for all values of one call: a query may exclude a thousand names of large companies."""
LAST_CHARACTER = "\U0010ffff"
# The weights of name, aliases, domain and description.
WORD_WEIGHTS = "10.0, 8.0, 5.0, 1.0"


def resolve(
    connection: sqlite3.Connection, generation: StoredGeneration, references: Collection[str]
) -> dict[str, list[str]]:
    """Return the sorted ids of the companies whose id, else domain, else name or alias is a reference, by reference."""
    # A thousand references may be pages of one website that hundreds of companies have: read those companies once.
    read: dict[tuple[str, str], list[str]] = {}
    checked = 0

    def ids_with(field: str, value: str) -> list[str]:
        nonlocal checked
        if (field, value) not in read:
            documents = _documents(connection, FIRST_WITH_VALUE, generation.number, field, value, MAX_RESOLVED)
            count = min(MAX_CHECKED, max(1, MAX_CHECKED_TOGETHER - checked))
            companies = _companies(connection, documents[:count]) if documents else []
            checked += len(companies)
            require_passing([Condition(field, any_of=(value,))], companies)
            ids = [company.id for company in companies]
            read[field, value] = sorted(ids + _ids_of(connection, documents[count:]))
        return read[field, value]

    def ids_of(reference: str) -> list[str]:
        if _has_id(connection, generation, reference):
            return [reference]
        return ids_with("domain", _domain_key(reference)) or ids_with(NAME_FIELD, filter_key(reference))

    return {reference: ids_of(reference) for reference in references}


def find(connection: sqlite3.Connection, generation: StoredGeneration, query: str, *, limit: int) -> list[Company]:
    """Return companies found by domain, by prefix of a name, then by words; best first."""
    text = storable(query)
    found = dict.fromkeys(_with_value(connection, generation, field="domain", value=_domain_key(text)))
    for step in (_with_name_prefix, _with_words):
        if len(found) < limit:
            # The step may find the same documents again, so it gets the full limit.
            found.update(dict.fromkeys(step(connection, generation, text, limit=limit)))
    return _companies(connection, list(found)[:limit])


def find_misspelled(
    connection: sqlite3.Connection, generation: StoredGeneration, vocabulary: Vocabulary, query: str, *, limit: int
) -> list[Company]:
    """Return companies with a name that has the words of `query`, or all but one, typing errors allowed; best first."""
    state = (generation.number, generation.sequence)
    words = re.findall(r"\w+", fold(storable(query)))[:MAX_MISSPELLED_WORDS]
    near = (vocabulary.corrections(connection, word, state=state) for word in words)
    terms = [" OR ".join(f'"{correction}"' for correction in corrections) for corrections in near if corrections]
    least = max(len(words) - 1, 1)
    some = [" AND ".join(f"({term})" for term in chosen) for chosen in combinations(terms, least)]
    expression = " OR ".join(f"({each})" for each in some)
    if not some:
        return []
    return _companies(connection, _matching(connection, generation, f"{{name aliases}} : ({expression})", limit=limit))


def word_query(text: str) -> str:
    """Return the FTS5 expression for the first words of `text`; empty if it has no words.

    The last word is a prefix, unless a blank follows it. The bigrams of a CJK word are one phrase. Words after the
    first MAX_QUERY_WORDS would only cost time.
    """
    distinct = dict.fromkeys(word for word in text.split() if any(character.isalnum() for character in word))
    words = [word.replace('"', '""') for word in list(distinct)[:MAX_QUERY_WORDS]]
    prefix = "" if has_whole_words(text) else "*"
    return " ".join(f'"{with_bigrams(word)}"' for word in words) + prefix if words else ""


def _has_id(connection: sqlite3.Connection, generation: StoredGeneration, reference: str) -> bool:
    if not ID_PATTERN.fullmatch(reference):
        return False
    query = f"SELECT {HEADER_COLUMNS} FROM documents WHERE generation = ? AND id = ?"
    row = connection.execute(query, (generation.number, reference)).fetchone()
    return bool(row) and not checked_header(row).deleted


def _ids_of(connection: sqlite3.Connection, documents: Sequence[int]) -> list[str]:
    query = f"SELECT {HEADER_COLUMNS} FROM json_each(?) CROSS JOIN documents ON document = value"
    return [checked_header(row).id for row in connection.execute(query, (json.dumps(documents),))] if documents else []


def _domain_key(text: str) -> str:
    """Return the domain in a text as stored in `lookups`; empty if the text is no domain."""
    try:
        return name_key(normalize_domain(text))
    except InvalidCompany:
        return ""


def _with_value(connection: sqlite3.Connection, generation: StoredGeneration, *, field: str, value: str) -> list[int]:
    if not value:
        return []
    query = "SELECT document FROM lookups WHERE generation = ? AND field = ? AND value = ? ORDER BY document"
    return _documents(connection, query, generation.number, field, value)


def _with_name_prefix(
    connection: sqlite3.Connection, generation: StoredGeneration, text: str, *, limit: int
) -> list[int]:
    prefix = name_key(text)
    if not prefix:
        return []
    prefix += " " * has_whole_words(text)
    query = (
        "SELECT document FROM lookups WHERE generation = ? AND field = ? AND value >= ? AND value < ? "
        "GROUP BY document ORDER BY min(length(value)), min(value), document LIMIT ?"
    )
    return _documents(connection, query, generation.number, NAME_FIELD, prefix, prefix + LAST_CHARACTER, limit)


def _with_words(connection: sqlite3.Connection, generation: StoredGeneration, text: str, *, limit: int) -> list[int]:
    expression = word_query(text)
    return _matching(connection, generation, expression, limit=limit) if expression else []


def _matching(connection: sqlite3.Connection, generation: StoredGeneration, words: str, *, limit: int) -> list[int]:
    query = (
        "SELECT document FROM words JOIN documents ON documents.document = words.rowid "
        f"WHERE words MATCH ? AND generation = ? ORDER BY bm25(words, {WORD_WEIGHTS}), id LIMIT ?"
    )
    return _documents(connection, query, words, generation.number, limit)


def _documents(connection: sqlite3.Connection, query: str, *values: object) -> list[int]:
    return [document for (document,) in connection.execute(query, values)]


def _companies(connection: sqlite3.Connection, documents: Sequence[int]) -> list[Company]:
    return [each.company for each in companies(connection, dict.fromkeys(documents, 0.0))]
