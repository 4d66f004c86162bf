"""The second stage of a search: reads more candidates than are shown, and orders them by their probability.

The first candidates (the head) are ordered by probability. The others (the tail) keep the order of the index, and
none of them is more probable than the last of the head. So the order of a ranking is that of its probabilities.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from similarity.company import Company, SimilarCompany, Vector
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex, SimilarCompanies
from similarity.model.ranker import Ranker, ranker_of
from similarity.search.duplicates import UniqueHit
from similarity.search.reranking.facts import RankFact, rank_facts
from similarity.search.reranking.pair_features import (
    INDUSTRY_FIELDS,
    SPARSITY_RANKS,
    Floats,
    company_features,
    industries,
    pair_features,
)
from similarity.search.reranking.rank import Rank
from similarity.search.reranking.scores import combined, in_order, knows_only_cosine, logits

if TYPE_CHECKING:
    from similarity.search.ranking_page import PageRequest

HEAD = {Rank.BUSINESS: 200, Rank.COMPARABLE: 400}
"""How many candidates are ordered by probability. Facts move a company further than what it does."""
SAME_INDUSTRY_CANDIDATES = 200
"""For *comparable*, also the nearest companies of the same industry, which the nearest of all may not hold."""


@dataclass(frozen=True, slots=True)
class ScoredHit:
    """A hit and its probability before rounding; None if it is unknown."""

    unique: UniqueHit
    probability: float | None


@dataclass(slots=True)
class SecondStage:
    """The second stage of one query."""

    index: CompanyIndex
    request: "PageRequest"
    _same_industry: tuple[SimilarCompany, ...] | None = None
    _unfiltered: list[float] | None = None
    _vectors: dict[str, Vector] = field(default_factory=dict)
    _sparsities: list[float] = field(default_factory=list)
    """Of the anchors, then of the negatives."""

    @property
    def ranker(self) -> Ranker | None:
        """The weights that apply to the query. Only a cosine to one anchor has a probability of its own."""
        request, calibration = self.request, self.request.generation.calibration
        if request.rank is not Rank.COSINE:
            return request.generation.second_stage
        is_pair = len(request.anchors) == 1 and not request.negatives
        return ranker_of(calibration, request.generation.encoder_id) if calibration and is_pair else None

    @property
    def keeps_order(self) -> bool:
        """Whether the order of the candidates is that of their probabilities already."""
        ranker, request = self.ranker, self.request
        if ranker is None or request.rank is Rank.COSINE:
            return True
        is_pair = len(request.anchors) == 1 and not request.negatives
        knows_facts = request.rank is Rank.COMPARABLE and ranker.comparable is not None
        return is_pair and knows_only_cosine(ranker) and not knows_facts

    @property
    def head_size(self) -> int:
        """How many candidates the index must return at least."""
        return 0 if self.keeps_order else HEAD[self.request.rank]

    def facts(self, hits: Sequence[Company]) -> list[tuple[RankFact, ...]]:
        """Return the facts that moved each hit, wherever it is in the ranking; none if only cosines order the hits."""
        request, ranker = self.request, self.ranker
        if ranker is None or self.keeps_order or not hits:
            return [()] * len(hits)
        if not self._sparsities and (neighbours := self.candidates(self.head_size).hits):
            self._probabilities(neighbours)
        sparsities = self._sparsities[: len(request.anchors)] or [0.0] * len(request.anchors)
        return rank_facts(ranker, request.rank, request.anchors, hits, request.schema, sparsities=sparsities)

    def candidates(self, count: int) -> SimilarCompanies:
        """Return the first `count` candidates of the index."""
        return self._similar(self.request.vector, count, self.request.filters)

    def split(self, candidates: Sequence[SimilarCompany]) -> tuple[Sequence[SimilarCompany], Sequence[SimilarCompany]]:
        """Return head and tail of the candidates; the head also has the nearest companies of the same industry."""
        if self.keeps_order:
            return (), candidates
        size = self.head_size
        head = list(candidates[:size])
        known = {each.company.id for each in head}
        head += [each for each in self._of_same_industry() if each.company.id not in known]
        known |= {each.company.id for each in head}
        return head, [each for each in candidates[size:] if each.company.id not in known]

    def scored(self, hits: Sequence[UniqueHit], *, head: Collection[str]) -> list[ScoredHit]:
        """Return the hits in their final order. `head`: ids of the candidates to be ordered, which are first."""
        count = sum(each.hit.company.id in head for each in hits)
        if self.ranker is None or not hits:
            return [ScoredHit(each, None) for each in hits]
        found = self._probabilities([each.hit for each in hits[:count]]) if count else np.zeros(0)
        if len(hits) > count:
            # In the company of the head, so that the words of all count alike.
            found = np.append(found, self._probabilities([each.hit for each in hits])[count:])
        cosines = np.array([each.hit.score for each in hits])
        order, found = in_order(found, cosines, [each.hit.company.id for each in hits], head=count)
        return [ScoredHit(hits[each], found_p) for each, found_p in zip(order, found.tolist(), strict=True)]

    def probability_of(self, hit: SimilarCompany) -> float | None:
        """Return the probability of one company, wherever it is in the ranking, and even if it is not in it."""
        if self.ranker is None:
            return None
        if self.keeps_order:
            return rounded(float(self._probabilities([hit])[0]))
        head, _ = self.split(self.candidates(self.head_size).hits)
        others = [each for each in head if each.company.id != hit.company.id]
        *among, found = self._probabilities([*others, hit]).tolist()
        is_in_tail = len(others) == len(head) and bool(others) and hit.score < min(each.score for each in others)
        return rounded(min([found, *among]) if is_in_tail else found)

    def _of_same_industry(self) -> tuple[SimilarCompany, ...]:
        request, ranker = self.request, self.ranker
        if self._same_industry is None:
            self._same_industry = ()
            same = _filter_by_industry(each.described for each in request.anchors)
            if request.rank is Rank.COMPARABLE and ranker and ranker.comparable and same:
                filters = [*request.filters, same]
                self._same_industry = self._similar(request.vector, SAME_INDUSTRY_CANDIDATES, filters).hits
        return self._same_industry

    def _similar(self, vector: Vector, count: int, filters: Sequence[FieldFilter]) -> SimilarCompanies:
        request = self.request
        return self.index.similar(
            request.generation.name, vector, k=count, filters=filters, exclude=request.excluded_ids
        )

    def _probabilities(self, hits: Sequence[SimilarCompany]) -> Floats:
        """Return the probability of each hit, `[hits]`, at least one; the generation has a ranker."""
        request, ranker = self.request, self.ranker
        assert ranker is not None  # noqa: S101  # the callers checked it
        both = (*request.anchors, *request.negatives)
        companies = [company_features(each.company, request.schema, each.language) for each in hits]
        features = [
            pair_features(
                company_features(each.described, request.schema, each.language),
                companies,
                cosines,
                neighbour_cosines=self._neighbour_cosines(cosines) if ranker.sparsity or ranker.comparable else (),
            )
            for each, cosines in zip(both, self._cosines(hits), strict=True)
        ]
        self._sparsities = [float(each.sparsity[0]) for each in features]
        found = [logits(ranker, each, request.rank) for each in features]
        anchors = len(request.anchors)
        return combined(found[:anchors], [each.weight for each in request.anchors], found[anchors:])

    def _neighbour_cosines(self, cosines: Floats) -> Sequence[float]:
        """Return the cosines of the anchor's neighbours, highest first, as they are without filters."""
        if self._unfiltered is None and self.request.filters and len(self.request.anchors) == 1:
            self._unfiltered = [each.score for each in self._similar(self.request.vector, SPARSITY_RANKS.stop, ()).hits]
        found: list[float] = self._unfiltered or np.sort(cosines)[::-1].tolist()
        return found

    def _cosines(self, hits: Sequence[SimilarCompany]) -> Sequence[Floats]:
        """Return the cosines of the hits to each anchor and each negative."""
        request = self.request
        both = [*request.anchors, *request.negatives]
        if len(both) == 1:
            return [np.array([each.score for each in hits])]
        missing = [each.company.id for each in hits if each.company.id not in self._vectors]
        if missing:
            documents = self.index.get(request.generation.name, missing)
            # A company that was deleted after the search has no vector.
            nothing = np.zeros_like(request.vector)
            self._vectors |= {each: documents[each].vector if each in documents else nothing for each in missing}
        vectors = np.array([self._vectors[each.company.id] for each in hits], dtype=np.float64)
        return list(np.clip(np.array([each.vector for each in both]) @ vectors.T, -1.0, 1.0))


def rounded(probability: float | None) -> float | None:
    """Return a probability as it is shown, to four decimals."""
    return None if probability is None else round(probability, 4)


def _filter_by_industry(anchors: Iterable[Company | str]) -> FieldFilter | None:
    """Return a filter for the finest industries of the anchors, by the field of the first; None if it has none."""
    found = [industries(each) for each in anchors if isinstance(each, Company)]
    for level, name in enumerate(INDUSTRY_FIELDS):
        if values := tuple(dict.fromkeys(each[level] for each in found if each[level])):
            return FieldFilter(field=name, any_of=values)
    return None
