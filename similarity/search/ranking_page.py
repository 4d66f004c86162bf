"""One page of a ranking: the hits of a query in order, from one rank to another.

The order is decided here, in `PageBuilder`. Every page reads the ranking from rank 1, so that it depends only on the
query and on the last hit of the previous page. More candidates are read than the page shows, because some of them
are duplicates or improbable.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from similarity.company import Company, SimilarCompany, Vector
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex, Generation, SimilarCompanies
from similarity.model.calibration import probability_of
from similarity.search.duplicates import MergedHits, UniqueHit, merge_duplicates

MAX_RANK = 1_000
"""Last rank that the pages of a query can reach."""
MAX_HYBRID_RANK = 250
"""The same for a hybrid query.

The order of fused rankings depends on how many candidates are read, so every page of a hybrid query reads the maximum.
"""
CANDIDATES_BEYOND_MAX_RANK = 100
"""Candidates that may be read in addition to the maximum rank, to replace duplicates."""
MIN_EXTRA_CANDIDATES = 5
"""Candidates that are read at least in addition to the hits of a page, to replace duplicates."""


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

    `query_companies`: the companies of the anchors, then of the negatives. A hit that duplicates one of them is
    removed and reported. `excluded_companies`: a hit that duplicates one of them is removed and not reported.
    `excluded_ids`: companies that the index must not return. `anchor_vectors`: one per anchor; empty if the query
    vector is that of the only anchor. `words`: a query with words is hybrid. `after`: where the previous page ended.
    """

    generation: Generation
    vector: Vector
    k: int
    query_companies: Sequence[Company] = ()
    excluded_companies: Sequence[Company] = ()
    excluded_ids: frozenset[str] = frozenset()
    anchor_vectors: Sequence[Vector] = ()
    filters: Sequence[FieldFilter] = ()
    words: str = ""
    min_probability: float | None = None
    after: Position | None = None

    @property
    def max_rank(self) -> int:
        """Last rank that the pages of this query can reach."""
        return MAX_HYBRID_RANK if self.words else MAX_RANK

    @property
    def previous_rank(self) -> int:
        """Rank of the last hit of the previous page; 0 if this is the first page."""
        return self.after.rank if self.after else 0


@dataclass(frozen=True, slots=True)
class RankedHit:
    """A hit with its rank, its probability and the ids of its duplicates."""

    hit: SimilarCompany
    rank: int
    probability: float | None
    duplicates: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Consecutive hits of a ranking. `has_next`: the ranking continues on another page.

    `query_duplicates`: for each of `PageRequest.query_companies`, the ids of its duplicates.
    """

    hits: list[RankedHit]
    has_next: bool
    query_duplicates: list[list[str]]
    approximate: bool


@dataclass(slots=True)
class PageBuilder:
    """Builds the requested page; decides the order of hits and who is among them.

    1. The index returns candidates in order: by cosine (ties by id) or, for a hybrid query, by fused rank.
    2. Duplicates are merged into the best-ranked candidate.
    3. Candidates below `min_probability` are removed.
    4. The page is cut out of the remaining hits, and the ranks are assigned.

    A re-ranker, a second stage that scores the candidates again, will stand between steps 2 and 3.
    """

    index: CompanyIndex
    request: PageRequest
    _max_anchor_cosine: dict[str, float] = field(default_factory=dict)

    def page(self) -> Page:
        """Return the requested page. Exceptions of the index are passed on."""
        request = self.request
        size = min(request.k, request.max_rank - request.previous_rank)
        limit = request.max_rank + CANDIDATES_BEYOND_MAX_RANK
        fetch = limit if request.words else min(request.previous_rank + size + extra_candidates(size), limit)
        while True:
            candidates = self._candidates(fetch)
            merged = merge_duplicates(candidates.hits, [*request.query_companies, *request.excluded_companies])
            hits, is_complete = self._with_min_probability(merged.unique)
            remaining = _hits_after(request.after, hits, by_score=not request.words)
            if len(remaining) > size or is_complete or len(candidates.hits) < fetch or fetch >= limit:
                return self._page(remaining, size, merged, approximate=candidates.approximate)
            fetch = min(2 * fetch, limit)

    def _candidates(self, count: int) -> SimilarCompanies:
        request = self.request
        words = {"words": request.words} if request.words else {}
        return self.index.similar(
            request.generation.name,
            request.vector,
            k=count,
            filters=request.filters,
            exclude=request.excluded_ids,
            **words,
        )

    def _page(self, remaining: Sequence[UniqueHit], size: int, merged: MergedHits, *, approximate: bool) -> Page:
        """Return the page of the first `size` of the `remaining` hits, which follow the previous page."""
        request, hits = self.request, remaining[:size]
        probabilities = self.probabilities(hits)
        return Page(
            hits=[
                RankedHit(each.hit, rank, probability, each.duplicates)
                for rank, (each, probability) in enumerate(
                    zip(hits, probabilities, strict=True), request.previous_rank + 1
                )
            ],
            has_next=len(remaining) > size and request.previous_rank + size < request.max_rank,
            query_duplicates=merged.duplicates_of_given[: len(request.query_companies)],
            approximate=approximate,
        )

    def _with_min_probability(self, hits: Sequence[UniqueHit]) -> tuple[Sequence[UniqueHit], bool]:
        """Return the hits of at least `min_probability`, and True if no further candidate can have it."""
        minimum = self.request.min_probability
        if minimum is None:
            return hits, False
        probabilities = self.probabilities(hits)
        probable = [
            each for each, probability in zip(hits, probabilities, strict=True) if (probability or 0.0) >= minimum
        ]
        calibration = self.request.generation.calibration
        # Rank and probability are in the same order only if both come from the cosine to the only anchor.
        same_order = (
            not self.request.anchor_vectors and not self.request.words and calibration and calibration.slope >= 0
        )
        return probable, bool(same_order and len(probable) < len(hits))

    def probabilities(self, hits: Sequence[UniqueHit]) -> list[float | None]:
        """Return the calibrated probability of each hit, from its highest cosine to any anchor; None if unknown."""
        calibration = self.request.generation.calibration
        if calibration is None:
            return [None] * len(hits)
        if not self.request.anchor_vectors:
            return [probability_of(each.hit.score, calibration) for each in hits]
        self._load_anchor_cosines(each.hit.company.id for each in hits)
        # A company that was deleted after the search has no vector.
        cosines = [self._max_anchor_cosine.get(each.hit.company.id) for each in hits]
        return [None if cosine is None else probability_of(cosine, calibration) for cosine in cosines]

    def _load_anchor_cosines(self, ids: Iterable[str]) -> None:
        """Add the highest cosine to any anchor of each of these companies to `_max_anchor_cosine`."""
        missing = [company_id for company_id in ids if company_id not in self._max_anchor_cosine]
        documents = self.index.get(self.request.generation.name, missing) if missing else {}
        if documents:
            anchors = np.array(self.request.anchor_vectors)
            vectors = np.array([document.vector for document in documents.values()])
            cosines = np.clip((vectors @ anchors.T).max(axis=1), -1.0, 1.0)
            self._max_anchor_cosine.update(zip(documents, cosines.tolist(), strict=True))


def extra_candidates(size: int) -> int:
    """Return how many candidates to read in addition to `size` hits.

    One of them shows whether there is a next page; the others replace duplicates.
    """
    return 1 + max(MIN_EXTRA_CANDIDATES, size // 10)


def _hits_after(position: Position | None, hits: Sequence[UniqueHit], *, by_score: bool) -> Sequence[UniqueHit]:
    """Return the hits that follow `position`; all hits if it is None.

    `by_score`: the hits are ordered by (score, id). Then those after the position's score and id follow, even if the
    ranking has changed since the previous page. Otherwise those after the position's id follow or, if that company
    is no longer a hit, those after the position's rank.
    """
    if position is None:
        return hits
    if by_score:
        last = (-position.score, position.id)
        return [each for each in hits if (-each.hit.score, each.hit.company.id) > last]
    ranks = (rank for rank, each in enumerate(hits, 1) if each.hit.company.id == position.id)
    return hits[next(ranks, position.rank) :]
