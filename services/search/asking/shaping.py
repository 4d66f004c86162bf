"""Converts rankings of the library to the response models of the API, or to their members."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any, cast

from similarity.company import Company, time_of_version
from similarity.search import ranking as search
from similarity.search.explanations.explanation import ExplainingPhrase, SharedFact
from similarity.search.explanations.segments import Segment
from similarity.search.location import Location
from similarity.search.names.namesakes import NAMESAKES_SHOWN
from similarity.search.queries.resolution import ResolvedAnchor, Unresolved
from similarity.search.reranking.fact_effects import RankFact

from ..wire.failures import problem_of
from ..wire.problem_documents import CompanyReference, reference_of
from .answers import company_members, model_of, record_of
from .ranking_schemas import AskedFor, Hit, HitCompany, Miss, Reason, RemovalRecord, SegmentRecord


def ranking_members(ranking: search.Ranking, fields: Collection[str] | None) -> dict[str, Any]:
    """Return the members of a `Ranking` except `next_cursor` and `took_ms`.

    `fields`: the members of each hit's company to return; None for all.
    """
    return {
        "anchors": [_anchor(each) for each in ranking.anchors],
        "negatives": [_anchor(each) for each in ranking.negatives],
        "misses": [miss_of(each) for each in ranking.unresolved],
        "hits": [_hit(each, fields) for each in ranking.hits],
        "warnings": list(ranking.warnings),
        "generation": ranking.generation.name,
        "model": model_of(ranking.generation),
        "approximate": ranking.approximate,
    }


def _anchor(anchor: ResolvedAnchor) -> AskedFor:
    """Return the response model of an anchor or a negative."""
    document = anchor.document
    if document is None:
        return AskedFor(
            asked=anchor.reference,
            company=None,
            text=anchor.reference,
            weight=anchor.weight,
            language=anchor.language,
            warning=anchor.warning,
            updated_at=None,
            embedded_at=None,
        )
    return AskedFor(
        asked=anchor.reference,
        company=record_of(document.company),
        segment=None if anchor.segment is None else segment_of(anchor.segment),
        weight=anchor.weight,
        redirected_from=None if anchor.reference == document.id else anchor.reference,
        confidence=anchor.confidence,
        language=anchor.language,
        warning=anchor.warning,
        updated_at=time_of_version(document.version),
        embedded_at=document.embedded_at,
        duplicates=list(anchor.duplicates),
        others=[reference_of(each) for each in anchor.others[:NAMESAKES_SHOWN]],
    )


def segment_of(segment: Segment) -> SegmentRecord:
    """Return the response model of a segment."""
    return SegmentRecord(number=segment.number, text=segment.text)


def miss_of(unresolved: Unresolved) -> Miss:
    """Return the response model of a reference that cannot be used, with the companies that may be meant."""
    problem = problem_of(unresolved.error)
    meant = problem.extras.get("suggestions") or problem.extras.get("candidates") or []
    return Miss(
        asked=unresolved.reference,
        role=unresolved.role.value,
        problem=cast("Any", problem.kind.slug),
        detail=problem.detail,
        suggestions=[each for each in meant if isinstance(each, CompanyReference)],
    )


def located_members(location: Location, reference: str) -> dict[str, Any]:
    """Return the members of a `Located` except `took_ms`."""
    place = location.place
    return company_members(location.found, reference, location.generation) | {
        "rank": place.rank,
        "nearer": place.nearer,
        "score": round(place.score, 6),
        "probability": place.probability,
        "reason": _reason(location.shared, location.moved, location.phrases),
        "removed_by": [
            RemovalRecord(by=each.by, company=each.company_id or None, field=each.field or None)
            for each in place.removals
        ],
        "warnings": list(location.warnings),
        "approximate": place.approximate,
    }


def _hit(hit: search.Hit, fields: Collection[str] | None) -> Hit:
    return Hit(
        rank=hit.rank,
        score=round(hit.score, 6),
        probability=hit.probability,
        company=_members_of(hit.company, fields),
        updated_at=time_of_version(hit.version),
        embedded_at=hit.embedded_at,
        language=hit.language,
        warning=hit.warning,
        reason=cast("Reason", _reason(hit.shared, hit.moved, hit.phrases)),
        duplicates=list(hit.duplicates),
    )


def _reason(
    shared: Sequence[SharedFact], moved: Sequence[RankFact], phrases: Sequence[ExplainingPhrase] | None
) -> dict[str, Any]:
    # Plain dicts instead of inner models: pydantic then validates the whole hit in one step, twice as fast.
    return {
        "shared": [{"field": fact.field, "values": fact.values} for fact in shared],
        "moved": [{**fact._asdict(), "effect": round(fact.effect, 2)} for fact in moved],
        "phrases": None if phrases is None else [_phrase(each) for each in phrases],
    }


def _phrase(phrase: ExplainingPhrase) -> dict[str, Any]:
    return {**asdict(phrase), "weight": round(phrase.weight, 4)}


def _members_of(company: Company, fields: Collection[str] | None) -> HitCompany:
    whole = {"id": company.id, **company.content()}
    chosen = whole if fields is None else {name: value for name, value in whole.items() if name in fields}
    return cast("HitCompany", chosen)
