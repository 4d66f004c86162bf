"""Conversion of documents to Elasticsearch sources, and back (no I/O)."""

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from similarity.company import Company, DeletedCompany, EmbeddedCompany, SimilarCompany, Vector, name_key
from similarity.errors import InvalidCompany
from similarity.index import validation
from similarity.index.elastic.mapping import NUMBERS_KEPT, Body
from similarity.index.filters import filter_values
from similarity.index.numbers import number_keys
from similarity.index.protocol import Generation

ATTRIBUTES = "attributes."


def source_of(document: EmbeddedCompany | DeletedCompany, *, packs_vectors: bool) -> Body:
    """Return the source of a document. A tombstone has neither text nor vector.

    A company without a vector has no field for it, because Elasticsearch refuses zeros where it compares by cosine.
    """
    if isinstance(document, DeletedCompany):
        return {"id": document.id, "version": document.version, "deleted": True}
    company = document.company
    names = sorted({name_key(name) for name in (company.name, *company.aliases)})
    return {
        "id": company.id,
        "version": document.version,
        "deleted": False,
        "text_hash": document.text_hash,
        "language": document.language,
        "embedded_at": document.embedded_at.astimezone(UTC).isoformat(timespec="microseconds"),
        "company": company.content(),
        **({"vector": vector_text(document.vector, packed=packs_vectors)} if document.has_vector else {}),
        "names": names,
        "shortest_name": min(map(len, names)),
        "filters": filters_source(company),
        "words": {
            "name": validation.fold(company.name),
            "aliases": [validation.fold(alias) for alias in company.aliases],
            "domain": validation.fold(company.domain),
            "description": validation.fold(company.description),
        },
    }


def filters_source(company: Company) -> Body:
    """Return the values of filters, in `name_key` form; attributes and keys of numbers are under `attributes`."""
    fields: Body = {}
    attributes: Body = {}
    for field, values in filter_values(company).items():
        keys = sorted({name_key(value) for value in values})
        if field.startswith(ATTRIBUTES):
            attributes[field.removeprefix(ATTRIBUTES)] = keys
        else:
            fields[field] = keys
    if not attributes:
        return fields
    return {**fields, "attributes": {**attributes, **number_keys(company.attributes), NUMBERS_KEPT: "true"}}


def document_of(source: Mapping[str, Any], generation: Generation) -> EmbeddedCompany | DeletedCompany:
    """Return the document of a complete source, with its vector; zeros if the source has none."""
    if source["deleted"]:
        return DeletedCompany(id=source["id"], version=source["version"])
    return EmbeddedCompany(
        company=company_of(source["id"], source["company"]),
        version=source["version"],
        text_hash=source["text_hash"],
        encoder_id=generation.encoder_id,
        vector=np.array(source.get("vector", [0.0] * generation.dimension), dtype=np.float32),
        embedded_at=datetime.fromisoformat(source["embedded_at"]),
        language=source["language"],
    )


def hit_of(company_id: str, source: Mapping[str, Any], *, score: float) -> SimilarCompany:
    """Return the neighbour of a source without a vector."""
    return SimilarCompany(
        company=company_of(company_id, source["company"]),
        score=score,
        version=source["version"],
        embedded_at=datetime.fromisoformat(source["embedded_at"]),
        language=source["language"],
    )


def company_of(company_id: str, fields: Mapping[str, Any]) -> Company:
    """Return the company with the id and this content. Raises IndexUnavailable if it cannot be read."""
    try:
        return Company(
            id=company_id,
            name=fields["name"],
            description=fields["description"],
            aliases=tuple(fields["aliases"]),
            domain=fields["domain"],
            country=fields["country"],
            industry=fields["industry"],
            tags=tuple(fields["tags"]),
            attributes=fields["attributes"],
        )
    except InvalidCompany as error:
        raise validation.unreadable(company_id, error) from error


def vector_text(vector: Vector, *, packed: bool) -> str | list[float]:
    """Return a vector, float32 `[dimension]`, for JSON: base64 of big-endian floats if `packed`, else numbers."""
    if packed:
        return base64.b64encode(vector.astype(">f4").tobytes()).decode("ascii")
    numbers: list[float] = vector.tolist()
    return numbers


def same_content(sent: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Return whether two sources are equal, ignoring vectors, times of embedding and derived fields."""
    return _content(sent) == _content(stored)


def document_id(*parts: str) -> str:
    """Return the Elasticsearch id of a record with this key, whatever characters the key has."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _content(source: Mapping[str, Any]) -> str:
    # As text, because True equals 1 in Python and does not here.
    kept = {name: source.get(name) for name in ("deleted", "text_hash", "company")}
    return json.dumps(kept, sort_keys=True, ensure_ascii=False)
