"""The place of one company in a ranking: its rank or, if it has no rank, what removes it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from similarity.company import Company, EmbeddedCompany, SimilarCompany
from similarity.index.filters import LANGUAGE, FieldFilter, filter_values
from similarity.index.numbers import is_finite, is_number, number_key
from similarity.index.protocol import CompanyIndex, Generation
from similarity.index.validation import filter_key
from similarity.search.duplicates import Identity, widely_shared_domains
from similarity.search.explanations.explanation import ExplainingPhrase, SharedFact
from similarity.search.names.resolver import FoundCompany
from similarity.search.queries.resolution import ResolvedAnchor, ResolvedQuestion
from similarity.search.ranking_page import CANDIDATES_BEYOND_MAX_RANK, MAX_RANK, PageBuilder, PageRequest, RankedHit
from similarity.search.reranking.fact_effects import RankFact
from similarity.search.reranking.rank import Rank


class RemovedBy(StrEnum):
    """The part of a query that removes a company from the ranking."""

    ANCHOR = "anchor"
    NEGATIVE = "negative"
    EXCLUDE = "exclude"
    FILTER = "filter"
    MIN_PROBABILITY = "min_probability"
    DUPLICATE = "duplicate"
    """A better hit is the same company; it lists this one among its duplicates."""


@dataclass(frozen=True, slots=True)
class Removal:
    """One reason why a company has no rank.

    `company_id`: the anchor, negative, excluded company or hit that is this company or the same company under another
    id. `field`: the field of the filter that the company does not pass.
    """

    by: RemovedBy
    company_id: str = ""
    field: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a company in a ranking.

    `rank`: its rank; None if something removes it, or if the pages of the query do not reach it. `nearer`: how many
    companies that pass the filters and are not excluded have a higher cosine, duplicates included; None if there
    are more than the store counts (`CompanyIndex.count_nearer`). `score` and `probability`: as in a hit. `removals`:
    everything that removes it. `approximate`: as in a ranking.
    """

    rank: int | None
    nearer: int | None
    score: float
    probability: float | None
    removals: tuple[Removal, ...]
    approximate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """The place of `found` in the ranking of a query, and why it is there. The rest is as in a ranking and its hits."""

    generation: Generation
    found: FoundCompany
    place: Place
    shared: tuple[SharedFact, ...]
    moved: tuple[RankFact, ...]
    phrases: tuple[ExplainingPhrase, ...] | None
    warnings: tuple[str, ...]


def place_of(index: CompanyIndex, request: PageRequest, resolved: ResolvedQuestion, document: EmbeddedCompany) -> Place:
    """Return the place of `document` in the ranking of `request`, whose `k` has no effect."""
    score = float(np.clip(document.vector.astype(np.float64) @ request.vector.astype(np.float64), -1.0, 1.0))
    hit = SimilarCompany(
        company=document.company,
        score=score,
        version=document.version,
        embedded_at=document.embedded_at,
        language=document.language,
    )
    removals = list(_removals(index, request, resolved, document))
    nearer = index.count_nearer(
        request.generation.name,
        request.vector,
        score=score,
        filters=request.filters,
        exclude=request.excluded_ids | {document.id},
    )
    rank, probability, approximate = None, None, False
    # Only the reading *comparable* has candidates beyond these: companies of the same industry.
    is_reachable = nearer is not None and nearer < MAX_RANK + CANDIDATES_BEYOND_MAX_RANK
    if not removals and (is_reachable or request.rank is Rank.COMPARABLE):
        # Without the minimum, a company below it has the probability of a hit. The ranks above it stay the same.
        page = PageBuilder(index, replace(request, k=MAX_RANK, min_probability=None)).page()
        approximate = page.approximate
        rank, probability, better = _rank_among(page.hits, document.id)
        if better:
            removals.append(Removal(RemovedBy.DUPLICATE, better))
    if rank is None:
        probability = PageBuilder(index, request).probability_of(hit)
    if request.min_probability is not None and (probability or 0.0) < request.min_probability:
        rank = None
        removals.append(Removal(RemovedBy.MIN_PROBABILITY))
    return Place(
        rank=rank,
        nearer=nearer,
        score=score,
        probability=probability,
        removals=tuple(removals),
        approximate=approximate,
    )


def _rank_among(hits: Sequence[RankedHit], company_id: str) -> tuple[int | None, float | None, str]:
    """Return rank and probability of the company, and the id of the better hit that it duplicates ("" if none)."""
    for ranked in hits:
        if ranked.hit.company.id == company_id:
            return ranked.rank, ranked.probability, ""
        if company_id in ranked.duplicates:
            return None, None, ranked.hit.company.id
    return None, None, ""


def _removals(
    index: CompanyIndex,
    request: PageRequest,
    resolved: ResolvedQuestion,
    document: EmbeddedCompany,
) -> Iterator[Removal]:
    """Yield what removes the company, except the minimum probability and a better hit that is the same company."""
    company = document.company
    roles = (
        (RemovedBy.ANCHOR, _identities(resolved.anchors)),
        (RemovedBy.NEGATIVE, _identities(resolved.negatives)),
        (RemovedBy.EXCLUDE, list(resolved.excluded.items())),
    )
    own = Identity.of(company)
    given = [own, *(identity for _, known in roles for _, identity in known)]
    widely_shared = widely_shared_domains(index, request.generation.name, given)
    keys = set(own.keys(widely_shared))
    named = [
        Removal(by, company_id)
        for by, known in roles
        for company_id, identity in known
        if company_id == company.id or keys.intersection(identity.keys(widely_shared))
    ]
    yield from named
    if not named and company.id in resolved.excluded_ids:
        yield Removal(RemovedBy.EXCLUDE, company.id)
    failed = failed_filters(company, document.language, request.filters)
    yield from (Removal(RemovedBy.FILTER, field=each.field) for each in failed)


def _identities(anchors: Sequence[ResolvedAnchor]) -> list[tuple[str, Identity]]:
    documents = (each.document for each in anchors if each.document is not None)
    return [(each.id, Identity.of(each.company)) for each in documents]


def failed_filters(company: Company, language: str, filters: Sequence[FieldFilter]) -> list[FieldFilter]:
    """Return the filters that the company does not pass. Stores filter by the same rules."""
    return [each for each in filters if not _passes(company, language, each)]


def _passes(company: Company, language: str, asked: FieldFilter) -> bool:
    held = (language,) if asked.field == LANGUAGE else filter_values(company).get(asked.field, ())
    values = {filter_key(value) for value in held}
    if asked.any_of and values.isdisjoint(map(filter_key, asked.any_of)):
        return False
    if not values.isdisjoint(map(filter_key, asked.none_of)):
        return False
    if not asked.has_range:
        return True
    number = company.attributes.get(asked.field.removeprefix("attributes."))
    if not is_number(number) or not is_finite(number):
        return False
    lowest, highest = asked.key_range()
    return lowest <= number_key(number) <= highest
