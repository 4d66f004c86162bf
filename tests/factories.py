"""Small records for tests: every field has a plain default, and a test names only what it is about.

The same arguments always make the same record, so two calls can be compared.
"""

from datetime import UTC, datetime
from typing import Any
from zlib import crc32

import numpy as np

from similarity.company import Company, EmbeddedCompany, Vector
from similarity.index.protocol import Generation
from similarity.text import text_hash

DIMENSION = 8
ENCODER_ID = "encoder-1"
EMBEDDED_AT = datetime(2025, 3, 1, 12, 0, 0, 250, tzinfo=UTC)


def unit_vector(seed: int, dimension: int = DIMENSION) -> Vector:
    """A random direction, float32 `[dimension]` of norm 1, the same for the same seed."""
    direction = np.random.default_rng(seed).normal(size=dimension)
    return (direction / np.linalg.norm(direction)).astype(np.float32)


def make_company(company_id: str = "acme", /, **fields: Any) -> Company:
    """A valid company; `fields` are those of `Company`."""
    words: dict[str, Any] = {
        "name": f"Company {company_id}",
        "description": f"Makes things that only {company_id} makes.",
    }
    return Company(id=company_id, **(words | fields))


def make_embedded(
    company_id: str = "acme",
    /,
    *,
    version: int = 2,
    vector: Vector | None = None,
    encoder_id: str = ENCODER_ID,
    dimension: int = DIMENSION,
    embedded_at: datetime = EMBEDDED_AT,
    language: str = "en",
    **fields: Any,
) -> EmbeddedCompany:
    """A company as an index stores it; without `vector`, a unit vector that depends on the id only."""
    company = make_company(company_id, **fields)
    return EmbeddedCompany(
        company=company,
        version=version,
        text_hash=text_hash(company.description),
        encoder_id=encoder_id,
        vector=unit_vector(crc32(company_id.encode()), dimension) if vector is None else vector,
        embedded_at=embedded_at,
        language=language,
    )


def make_generation(
    name: str = "first", /, *, encoder_id: str = ENCODER_ID, dimension: int = DIMENSION, **fields: Any
) -> Generation:
    """A generation in state building."""
    times: dict[str, Any] = {"bundle_id": "bundle-1", "created_at": datetime(2025, 3, 1, tzinfo=UTC)}
    return Generation(name=name, encoder_id=encoder_id, dimension=dimension, **(times | fields))


def make_refused(company_id: str) -> EmbeddedCompany:
    """A company that Elasticsearch itself refuses: a number of more than 1,000 digits, slipped past our validation."""
    document = make_embedded(company_id)
    object.__setattr__(document.company, "attributes", {"size": 10**1500})
    return document
