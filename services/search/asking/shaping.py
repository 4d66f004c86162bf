"""From what was found to the models that are answered: anchors, misses, and hits with their reasons."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, cast

from services.search.asking.answers import language_warning, record_of
from services.search.asking.explaining import Explainer
from services.search.asking.question_schemas import BatchQuestion
from services.search.asking.questions import Missed, Understood
from services.search.asking.ranking import Page, Ranked
from services.search.asking.ranking_schemas import AskedFor, Hit, HitCompany, Miss, Reason
from services.search.wire.problems import CompanyReference, Problem
from similarity.company import Company, time_of_version
from similarity.language import detect_language
from similarity.reasons import CarryingPhrase, Facts, facts_of, shared_facts


def asked_for(understood: Understood, duplicates: Sequence[str] = ()) -> AskedFor:
    """An anchor or a negative, and the ids of the hits that are the same company."""
    if understood.company is None:
        language = detect_language(understood.asked)
        return AskedFor(
            asked=understood.asked,
            company=None,
            text=understood.asked,
            weight=understood.weight,
            language=language,
            warning=language_warning("text", language),
            updated_at=None,
            embedded_at=None,
        )
    document = understood.company
    return AskedFor(
        asked=understood.asked,
        company=record_of(document.company),
        weight=understood.weight,
        redirected_from=None if understood.asked == document.id else understood.asked,
        language=document.language,
        warning=language_warning("description", document.language),
        updated_at=time_of_version(document.version),
        embedded_at=document.embedded_at,
        duplicates=list(duplicates),
    )


def miss_of(missed: Missed) -> Miss:
    """A miss, with the companies that may be meant."""
    return Miss(
        asked=missed.asked,
        role=missed.role,
        problem=cast("Any", missed.problem.kind.slug),
        detail=missed.problem.detail,
        suggestions=_companies_meant(missed.problem),
    )


def hits_of(
    page: Page, anchors: Sequence[Understood], question: BatchQuestion, explainer: Explainer | None
) -> list[Hit]:
    """The hits of a page, the first of them with the phrases that carry the match, if there is an `explainer`."""
    described = [anchor.asked if anchor.company is None else anchor.company.company for anchor in anchors]
    first = page.hits[: question.reasons] if explainer else []
    phrases = explainer.phrases(described, [each.hit.company for each in first]) if explainer and first else []
    members: set[str] | None = None if question.fields is None else {"id", *question.fields}
    facts = facts_of(described)
    return [
        _hit(each, facts, phrases[place] if place < len(phrases) else None, members)
        for place, each in enumerate(page.hits)
    ]


def _hit(
    ranked: Ranked,
    facts: Facts,
    phrases: Sequence[CarryingPhrase] | None,
    members: set[str] | None,
) -> Hit:
    hit = ranked.hit
    shared = shared_facts(facts, hit.company)
    # Inner records as plain dicts: the models are then made in one step, which is twice as quick.
    reason: dict[str, Any] = {
        "shared": [{"field": fact.field, "values": fact.values} for fact in shared],
        "phrases": None if phrases is None else [_phrase(each) for each in phrases],
    }
    return Hit(
        rank=ranked.rank,
        score=round(hit.score, 6),
        probability=ranked.probability,
        company=_members_of(hit.company, members),
        updated_at=time_of_version(hit.version),
        embedded_at=hit.embedded_at,
        language=hit.language,
        warning=language_warning("description", hit.language),
        reason=cast("Reason", reason),
        duplicates=ranked.duplicates,
    )


def _phrase(phrase: CarryingPhrase) -> dict[str, Any]:
    return {**asdict(phrase), "weight": round(phrase.weight, 4)}


def _members_of(company: Company, members: set[str] | None) -> HitCompany:
    whole: HitCompany = {
        "id": company.id,
        "name": company.name,
        "description": company.description,
        "aliases": company.aliases,
        "domain": company.domain,
        "country": company.country,
        "industry": company.industry,
        "tags": company.tags,
        "attributes": dict(company.attributes),
    }
    if members is None:
        return whole
    return cast("HitCompany", {name: value for name, value in whole.items() if name in members})


def _companies_meant(problem: Problem) -> list[CompanyReference]:
    meant = problem.extras.get("suggestions") or problem.extras.get("candidates") or []
    return [each for each in meant if isinstance(each, CompanyReference)]
