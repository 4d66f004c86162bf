"""One page of a ranking: the hits of a query in order, from one rank to another.

The order is decided here, in `PageBuilder`. Every page reads the ranking from rank 1, so that it depends only on the
query and on the last hit of the previous page. More candidates are read than the page shows, because some of them
are duplicates or improbable.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from similarity.company import Company, SimilarCompany, Vector
from similarity.index.attributes import AttributeSchema
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex, Generation, SimilarCompanies
from similarity.search.duplicates import Identity, MergedHits, merge_duplicates, widely_shared_domains
from similarity.search.reranking.fact_effects import RankFact
from similarity.search.reranking.rank import Rank
from similarity.search.reranking.scores import RankedAnchor
from similarity.search.reranking.stage import ScoredHit, SecondStage, rounded

MAX_RANK = 1_000
"""Last rank that the pages of a query can reach."""
CANDIDATES_BEYOND_MAX_RANK = 100
"""Candidates that may be read in addition to MAX_RANK, to replace duplicates."""
MIN_EXTRA_CANDIDATES = 5
"""The least number of candidates that are read in addition to the hits of a page, to replace duplicates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The place where a page ends: score, id and rank of its last hit.

    `generation`: name of the generation that was read. `digest`: digest of the query (`Question.digest`).
    """

    generation: str
    digest: str
    score: float
    id: str
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """Request for a page of at most `k` hits from the ranking of `generation` by the query `vector`.

    `rank`: what orders the hits. `anchors`, `negatives`: as the second stage needs them. `query_companies`: the
    companies of the anchors, then of the negatives. A hit that duplicates one of them is removed and reported.
    `excluded`: identities of companies; a hit that is one of them is removed and not reported. `excluded_ids`:
    companies that the index must not return. `schema`: which attribute is the size. `after`: where the previous page
    ended.
    """

    generation: Generation
    vector: Vector
    k: int
    anchors: Sequence[RankedAnchor]
    negatives: Sequence[RankedAnchor] = ()
    rank: Rank = Rank.BUSINESS
    query_companies: Sequence[Company] = ()
    excluded: Sequence[Identity] = ()
    excluded_ids: frozenset[str] = frozenset()
    filters: Sequence[FieldFilter] = ()
    min_probability: float | None = None
    schema: AttributeSchema = field(default_factory=AttributeSchema)
    after: Position | None = None

    @property
    def previous_rank(self) -> int:
        """Rank of the last hit of the previous page; 0 if this is the first page."""
        return self.after.rank if self.after else 0


@dataclass(frozen=True, slots=True)
class RankedHit:
    """A hit with its rank, its probability, the ids of its duplicates and the facts that moved it."""

    hit: SimilarCompany
    rank: int
    probability: float | None
    duplicates: list[str]
    facts: tuple[RankFact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Consecutive hits of a ranking. `has_next`: the ranking continues on another page.

    `query_duplicates`: for each of `PageRequest.query_companies`, the ids of its duplicates. `candidates`: how many
    companies the index returned. `highest`: the highest probability of the candidates that are no duplicates; None if
    there is no such candidate, or if hits have no probability. `is_cut`: no page follows, although the index holds
    further companies, because many of the nearest are duplicates.
    """

    hits: list[RankedHit]
    has_next: bool
    query_duplicates: list[list[str]]
    approximate: bool
    candidates: int
    highest: float | None
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class PageBuilder:
    """Builds the requested page: decides which companies are hits, and their order.

    1. The index returns candidates in order of their cosine, ties by id.
    2. Duplicates are merged into the first of them.
    3. The second stage orders the first candidates by probability (`reranking/`); the others stay behind them.
    4. Candidates below `min_probability` are removed.
    5. The page is cut out of the remaining hits, and the ranks are assigned.
    """

    index: CompanyIndex
    request: PageRequest

    def page(self) -> Page:
        """Return the requested page. Exceptions of the index are passed on."""
        request = self.request
        size = min(request.k, MAX_RANK - request.previous_rank)
        limit = MAX_RANK + CANDIDATES_BEYOND_MAX_RANK
        second_stage = SecondStage(self.index, request)
        needed = max(request.previous_rank + size + extra_candidates(size), second_stage.head_size)
        fetch = min(needed, limit)
        while True:
            candidates = second_stage.candidates(fetch)
            scored, merged = self._ranked(second_stage, candidates)
            hits = self._probable(scored)
            remaining = _hits_after(request.after, hits, by_score=second_stage.keeps_order)
            # After a hit that is too improbable, all others are too: they are in the order of their probabilities.
            is_complete = request.min_probability is not None and len(hits) < len(merged.unique)
            is_all = len(remaining) > size or is_complete or len(candidates.hits) < fetch
            if is_all or fetch >= limit:
                facts = second_stage.facts([each.unique.hit.company for each in remaining[:size]])
                page = self._page(remaining, size, merged, facts, candidates=candidates, scored=scored)
                return replace(page, is_cut=not is_all)
            fetch = min(2 * fetch, limit)

    def probability_of(self, hit: SimilarCompany) -> float | None:
        """Return the probability that a company has in the ranking, or would have if it were a hit."""
        second_stage = SecondStage(self.index, self.request)
        size = second_stage.head_size
        head = self._merged(second_stage, second_stage.candidates(size))[0].unique if size else []
        return second_stage.probability_of(hit, [each.hit for each in head])

    def _ranked(self, second_stage: "SecondStage", candidates: SimilarCompanies) -> tuple[list[ScoredHit], MergedHits]:
        """Return the ranking of the candidates, and their duplicates."""
        merged, head = self._merged(second_stage, candidates)
        return second_stage.scored(merged.unique, head=head), merged

    def _merged(self, second_stage: "SecondStage", candidates: SimilarCompanies) -> tuple[MergedHits, set[str]]:
        """Return the candidates without duplicates, those of the head first, and the ids of the head."""
        request = self.request
        head, tail = second_stage.split(candidates.hits)
        hits = [(hit, Identity.of(hit.company)) for hit in (*head, *tail)]
        given = [*map(Identity.of, request.query_companies), *request.excluded]
        identities = [*(identity for _, identity in hits), *given]
        widely_shared = widely_shared_domains(self.index, request.generation.name, identities)
        return merge_duplicates(hits, given, widely_shared=widely_shared), {each.company.id for each in head}

    def _probable(self, scored: list[ScoredHit]) -> list[ScoredHit]:
        minimum = self.request.min_probability
        return scored if minimum is None else [each for each in scored if (rounded(each.probability) or 0.0) >= minimum]

    def facts_of(self, company: Company) -> tuple[RankFact, ...]:
        """Return the facts that move a company in the ranking, wherever it is."""
        return SecondStage(self.index, self.request).facts([company])[0]

    def _page(
        self,
        remaining: Sequence[ScoredHit],
        size: int,
        merged: MergedHits,
        facts: Sequence[tuple[RankFact, ...]],
        *,
        candidates: SimilarCompanies,
        scored: Sequence[ScoredHit],
    ) -> Page:
        """Return the page of the first `size` of the `remaining` hits, which follow the previous page."""
        request = self.request
        return Page(
            hits=[
                RankedHit(each.unique.hit, rank, rounded(each.probability), each.unique.duplicates, of_hit)
                for rank, (each, of_hit) in enumerate(zip(remaining, facts, strict=False), request.previous_rank + 1)
            ],
            has_next=len(remaining) > size and request.previous_rank + size < MAX_RANK,
            query_duplicates=merged.duplicates_of_given[: len(request.query_companies)],
            approximate=candidates.approximate,
            candidates=len(candidates.hits),
            highest=scored[0].probability if scored else None,
        )


def extra_candidates(size: int) -> int:
    """Return how many candidates to read in addition to `size` hits.

    One of them shows whether there is a next page; the others replace duplicates.
    """
    return 1 + max(MIN_EXTRA_CANDIDATES, size // 10)


def _hits_after(position: Position | None, hits: Sequence[ScoredHit], *, by_score: bool) -> Sequence[ScoredHit]:
    """Return the hits that follow `position`; all hits if it is None.

    `by_score`: the hits are ordered by (score, id). Hits after the position's score and id then follow it, even if the
    ranking has changed since the previous page. Otherwise, hits after the position's id follow it or, if that company
    is no longer a hit, hits after the position's rank.
    """
    if position is None:
        return hits
    if by_score:
        last = (-position.score, position.id)
        return [each for each in hits if (-each.unique.hit.score, each.unique.hit.company.id) > last]
    ranks = (rank for rank, each in enumerate(hits, 1) if each.unique.hit.company.id == position.id)
    return hits[next(ranks, position.rank) :]
