"""Converts records of the library to response models."""

from typing import Any

from similarity.company import Company, time_of_version
from similarity.index.protocol import Generation
from similarity.search.names.resolver import FoundCompany
from similarity.search.readability import language_warning

from .schemas import CompanyRecord, Model


def company_members(found: FoundCompany, reference: str, live: Generation) -> dict[str, Any]:
    """Return the members of a `CompanyAnswer` for the company that `reference` resolves to."""
    anchor = found.document
    return {
        "company": record_of(anchor.company),
        "updated_at": time_of_version(anchor.version),
        "embedded_at": anchor.embedded_at,
        "language": anchor.language,
        "warning": language_warning("description", anchor.company.description, anchor.language, live.languages),
        "redirected_from": None if reference == anchor.id else reference,
        "confidence": found.confidence,
        "generation": live.name,
        "model": model_of(live),
    }


def record_of(company: Company) -> CompanyRecord:
    """Return the response model of a company."""
    return CompanyRecord(id=company.id, **company.content())


def model_of(generation: Generation) -> Model:
    """Return the ids of the model that made a generation's vectors."""
    return Model(encoder_id=generation.encoder_id, bundle_id=generation.bundle_id)
