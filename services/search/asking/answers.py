"""From the library's records to the models that the service answers."""

from typing import Any

from similarity.company import Company, EmbeddedCompany, SimilarCompany, time_of_version
from similarity.index.protocol import Generation
from similarity.search.resolver import FoundCompany

from .schemas import CompanyRecord, Model

UNFLAGGED_LANGUAGES = frozenset({"en", "und"})


def company_members(found: FoundCompany, reference: str, live: Generation) -> dict[str, Any]:
    """The members of a `CompanyAnswer` for the anchor that was found as `reference`."""
    return {
        **stored_members(found.document),
        "redirected_from": None if reference == found.document.id else reference,
        "confidence": found.confidence,
        "generation": live.name,
        "model": model_of(live),
    }


def stored_members(document: EmbeddedCompany | SimilarCompany) -> dict[str, Any]:
    """The members of a `StoredCompany`."""
    return {
        "company": record_of(document.company),
        "updated_at": time_of_version(document.version),
        "embedded_at": document.embedded_at,
        "language": document.language,
        "warning": language_warning("description", document.language),
    }


def record_of(company: Company) -> CompanyRecord:
    """All that a company says about itself."""
    return CompanyRecord(
        id=company.id,
        name=company.name,
        description=company.description,
        aliases=company.aliases,
        domain=company.domain,
        country=company.country,
        industry=company.industry,
        tags=company.tags,
        attributes=dict(company.attributes),
    )


def model_of(generation: Generation) -> Model:
    """The ids of the model that made a generation's vectors."""
    return Model(encoder_id=generation.encoder_id, bundle_id=generation.bundle_id)


def language_warning(what: str, language: str) -> str | None:
    """What to know about a description or text that is not English; None where it is, or too short to tell."""
    if language in UNFLAGGED_LANGUAGES:
        return None
    return f"The {what} is not in English ({language!r}), which the encoder was trained on; judge its scores with care."
