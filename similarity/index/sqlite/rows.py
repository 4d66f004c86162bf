"""Converts documents to rows of the SQLite index, and back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from similarity.company import EPOCH, Company, DeletedCompany, EmbeddedCompany, Vector, name_key
from similarity.errors import InvalidCompany
from similarity.formats.json_text import read_json
from similarity.index import validation
from similarity.index.filters import filter_values
from similarity.index.numbers import number_keys

Row: TypeAlias = tuple[Any, ...]

PROFILE_COLUMNS = "name, description, aliases, domain, country, industry, tags, attributes"
NAME_FIELD = "name"
"""The field of names in `lookups`; its other fields are the filter fields and the fields of `number_lookups`."""
LITTLE_ENDIAN_FLOAT32 = np.dtype("<f4")


class Profile(NamedTuple):
    """The columns of `companies`, in the order of `PROFILE_COLUMNS`. Equal companies have equal profiles."""

    name: str
    description: str
    aliases: str
    domain: str
    country: str
    industry: str
    tags: str
    attributes: str


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document in the form in which it is stored. A tombstone has no company, profile or vector."""

    id: str
    version: int
    text_hash: str = ""
    language: str = ""
    embedded_at: int = 0
    company: Company | None = None
    profile: Profile | None = None
    vector: bytes = b""

    @property
    def deleted(self) -> bool:
        return self.profile is None


def upsert_statement(table: str, columns: Sequence[str], *, key: Sequence[str], kept: Sequence[str] = ()) -> str:
    """Return the statement that inserts a row, or replaces the one with the same key except for the `kept` columns."""
    replaced = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in (*key, *kept))
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {replaced}"
    )


def document_row(document: EmbeddedCompany | DeletedCompany, *, dimension: int) -> DocumentRow:
    """Return the row of a document. Raises UnstorableDocument if `validation.check_document` refuses it."""
    validation.check_document(document, dimension=dimension)
    if isinstance(document, DeletedCompany):
        return DocumentRow(id=document.id, version=document.version)
    return DocumentRow(
        id=document.id,
        version=document.version,
        text_hash=document.text_hash,
        language=document.language,
        embedded_at=microseconds(document.embedded_at),
        company=document.company,
        profile=_profile(document.company),
        vector=document.vector.astype(LITTLE_ENDIAN_FLOAT32, copy=False).tobytes(),
    )


def company_of(company_id: str, profile: Profile) -> Company:
    """Return the company with this profile. Raises IndexUnavailable if it cannot be read."""
    try:
        return Company(
            id=company_id,
            name=profile.name,
            description=profile.description,
            aliases=_items(profile.aliases),
            domain=profile.domain,
            country=profile.country,
            industry=profile.industry,
            tags=_items(profile.tags),
            attributes=read_json(profile.attributes),
        )
    except (ValueError, InvalidCompany) as error:
        raise validation.unreadable(company_id, error) from error


def _items(stored: str) -> tuple[str, ...]:
    # Most companies have none, and a search reads hundreds of companies.
    return () if stored == "[]" else tuple(read_json(stored))


def vector_of(stored: bytes) -> Vector:
    """Return a stored vector as a read-only array, float32 `[dimension]`."""
    return np.frombuffer(stored, dtype=LITTLE_ENDIAN_FLOAT32).astype(np.float32, copy=False)


def lookup_values(company: Company) -> set[tuple[str, str]]:
    """Return the (field, value) pairs by which a company is found: values in `name_key` form, and keys of numbers."""
    pairs = {(NAME_FIELD, name_key(name)) for name in (company.name, *company.aliases)}
    for field, values in filter_values(company).items():
        pairs.update((field, name_key(value)) for value in values)
    return pairs | set(number_lookups(company.attributes).items())


def number_lookups(attributes: Mapping[str, object]) -> dict[str, str]:
    """Return the key of each attribute that is a number, by the field of `lookups` that range filters search."""
    return {f"attributes.{name}": key for name, key in number_keys(attributes).items()}


def microseconds(moment: datetime) -> int:
    """Return a time in the stored form: UTC microseconds since 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def moment(stored: int) -> datetime:
    """Return the time, in UTC, of stored microseconds."""
    return (EPOCH + timedelta(microseconds=stored)).astimezone(UTC)


def _profile(company: Company) -> Profile:
    return Profile(
        name=company.name,
        description=company.description,
        aliases=_json(company.aliases),
        domain=company.domain,
        country=company.country,
        industry=company.industry,
        tags=_json(company.tags),
        attributes=json.dumps(dict(company.attributes), ensure_ascii=False, sort_keys=True),
    )


def _json(items: tuple[str, ...]) -> str:
    # Not escaped, because the full-text index reads this column.
    return json.dumps(items, ensure_ascii=False) if items else "[]"
