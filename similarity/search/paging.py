"""Build one page of hits: fetch candidates, merge duplicates, drop improbable ones, cut the page.

The index orders the candidates. Every page reads the ranking from rank 1: it depends only on the query and on
the last hit of the previous page. For this reason more candidates are fetched than hits are returned.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from similarity.company import Company, SimilarCompany, Vector
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex, Generation, SimilarCompanies
from similarity.model.calibration import probability_of
from similarity.search.duplicates import MergedHits, UniqueHit, merge_duplicates

MAX_HITS = 1_000
"""Maximum number of hits of a query, over all pages."""
MAX_HYBRID_HITS = 250
"""The same for hybrid queries. The fused order depends on how many hits of each ranking are read: always all these."""
EXTRA_CANDIDATES = 5
"""Fetched in addition, because duplicates are merged."""
HYBRID_EXTRA_CANDIDATES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The last hit of a page: its score, id and rank in the ranking of the query `digest` on `generation`."""

    generation: str
    digest: str
    score: float
    id: str
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A page of the ranking of `generation` by the cosine to the query `vector`.

    `query_companies`: anchors, then negatives; hits that duplicate one are removed and reported. `excluded`:
    companies whose duplicates are removed and not reported. `anchor_vectors`: one per anchor; empty if `vector` is
    the vector of the only anchor. `words`: if not empty, the query is hybrid. `after`: the last hit of the page before.
    """

    generation: Generation
    vector: Vector
    k: int
    query_companies: Sequence[Company] = ()
    excluded: Sequence[Company] = ()
    anchor_vectors: Sequence[Vector] = ()
    filters: Sequence[FieldFilter] = ()
    exclude: frozenset[str] = frozenset()
    words: str = ""
    min_probability: float | None = None
    after: Position | None = None

    @property
    def max_rank(self) -> int:
        """The highest rank that any page can contain."""
        return MAX_HYBRID_HITS if self.words else MAX_HITS

    @property
    def offset(self) -> int:
        """The rank of the last hit of the previous page."""
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
    """The hits of a page. `more`: a next page exists. `query_duplicates`: ids, for each of `query_companies`."""

    hits: list[RankedHit]
    more: bool
    query_duplicates: list[list[str]]
    approximate: bool


@dataclass(slots=True)
class PageBuilder:
    """Builds one page of hits from the candidates of `index`."""

    index: CompanyIndex
    request: PageRequest
    _max_anchor_cosine: dict[str, float] = field(default_factory=dict)

    def page(self) -> Page:
        """Return the requested page. Exceptions of the index are passed on."""
        request = self.request
        size = min(request.k, request.max_rank - request.offset)
        limit = request.max_rank + HYBRID_EXTRA_CANDIDATES
        fetch = limit if request.words else min(request.offset + size + extra_candidates(size), limit)
        while True:
            found = self._similar(fetch)
            merged = merge_duplicates(found.hits, [*request.query_companies, *request.excluded])
            hits, all_seen = self._above_min_probability(merged.unique)
            rest = _after(hits, request.after, in_order=not request.words)
            if len(rest) > size or all_seen or len(found.hits) < fetch or fetch >= limit:
                return self._page(rest, size, merged, approximate=found.approximate)
            fetch = min(2 * fetch, limit)

    def _similar(self, k: int) -> SimilarCompanies:
        request = self.request
        words = {"words": request.words} if request.words else {}
        return self.index.similar(
            request.generation.name, request.vector, k=k, filters=request.filters, exclude=request.exclude, **words
        )

    def _page(self, rest: Sequence[UniqueHit], size: int, merged: MergedHits, *, approximate: bool) -> Page:
        shown, offset = rest[:size], self.request.offset
        probabilities = self._probabilities(shown)
        return Page(
            hits=[
                RankedHit(each.hit, offset + place, probability, each.duplicates)
                for place, (each, probability) in enumerate(zip(shown, probabilities, strict=True), 1)
            ],
            more=len(rest) > size and offset + size < self.request.max_rank,
            query_duplicates=merged.duplicates_of_given[: len(self.request.query_companies)],
            approximate=approximate,
        )

    def _above_min_probability(self, hits: Sequence[UniqueHit]) -> tuple[Sequence[UniqueHit], bool]:
        """Return the hits of at least `min_probability`, and whether no lower-ranked candidate can reach it."""
        least = self.request.min_probability
        if least is None:
            return hits, False
        probabilities = self._probabilities(hits)
        probable = [
            each for each, probability in zip(hits, probabilities, strict=True) if (probability or 0.0) >= least
        ]
        calibration = self.request.generation.calibration
        # The probability falls with the rank only if both come from the same cosine: to the only anchor.
        falls = not self.request.anchor_vectors and not self.request.words and calibration and calibration.slope >= 0
        return probable, bool(falls and len(probable) < len(hits))

    def _probabilities(self, hits: Sequence[UniqueHit]) -> list[float | None]:
        """Return the calibrated probability of each hit, from its highest cosine to any anchor; None if unknown."""
        calibration = self.request.generation.calibration
        if calibration is None:
            return [None] * len(hits)
        if not self.request.anchor_vectors:
            return [probability_of(each.hit.score, calibration) for each in hits]
        self._load_anchor_cosines(each.hit.company.id for each in hits)
        # A company that was deleted a moment ago has no vector.
        cosines = [self._max_anchor_cosine.get(each.hit.company.id) for each in hits]
        return [None if cosine is None else probability_of(cosine, calibration) for cosine in cosines]

    def _load_anchor_cosines(self, ids: Iterable[str]) -> None:
        new = [each for each in ids if each not in self._max_anchor_cosine]
        documents = self.index.get(self.request.generation.name, new) if new else {}
        if documents:
            anchors = np.array(self.request.anchor_vectors)
            vectors = np.array([document.vector for document in documents.values()])
            cosines = np.clip((vectors @ anchors.T).max(axis=1), -1.0, 1.0)
            self._max_anchor_cosine.update(zip(documents, cosines.tolist(), strict=True))


def extra_candidates(size: int) -> int:
    """Return how many candidates to fetch in addition to `size`: one shows a next page, others replace duplicates."""
    return 1 + max(EXTRA_CANDIDATES, size // 10)


def _after(hits: Sequence[UniqueHit], position: Position | None, *, in_order: bool) -> Sequence[UniqueHit]:
    """Return the hits after `position`.

    If `in_order`, compare (score, id), which stays correct if the ranking has changed since. Otherwise look up the
    id, or use the rank if that hit is gone.
    """
    if position is None:
        return hits
    if in_order:
        last = (-position.score, position.id)
        return [each for each in hits if (-each.hit.score, each.hit.company.id) > last]
    place = next((place for place, each in enumerate(hits, 1) if each.hit.company.id == position.id), position.rank)
    return hits[place:]
