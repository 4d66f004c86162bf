"""The second stage of a search: reads more candidates than are shown, and orders them by their probability.

The first candidates (the head) are ordered by probability. The others (the tail) keep the order of the index; their
probability is capped at the lowest one before them, so that no hit has a higher probability than one before it.
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
from similarity.search.reranking.fact_effects import RankFact, rank_facts
from similarity.search.reranking.pair_features import (
    INDUSTRY_FIELDS,
    SPARSITY_RANKS,
    Floats,
    company_features,
    industries,
    pair_features,
)
from similarity.search.reranking.rank import Rank
from similarity.search.reranking.scores import combined, in_order, knows_only_cosine, logits, sigmoid

if TYPE_CHECKING:
    from similarity.search.ranking_page import PageRequest

HEAD = {Rank.BUSINESS: 200, Rank.COMPARABLE: 400}
"""The number of candidates that are ordered by probability.

COMPARABLE has more, because size and country can move a hit further up than the business features.
"""
SAME_INDUSTRY_CANDIDATES = 200
"""For *comparable*, the head also contains this many nearest companies of the anchor's industry.

The nearest companies overall may not include them.
"""


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
    _cosines_without_filters: list[float] | None = None
    _vectors: dict[str, Vector] = field(default_factory=dict)
    _sparsities: list[float] = field(default_factory=list)
    """The feature `sparsity` of each anchor, then of each negative, from the last call of `_probabilities`."""

    @property
    def ranker(self) -> Ranker | None:
        """The weights that apply to the query; None if its hits have no probability.

        With rank *cosine*, only a query with one anchor and no negatives has probabilities (from the calibration).
        """
        request, calibration = self.request, self.request.generation.calibration
        if request.rank is not Rank.COSINE:
            return request.generation.second_stage
        if calibration is None or not self._has_one_anchor_only:
            return None
        return ranker_of(calibration, request.generation.encoder_id)

    @property
    def keeps_order(self) -> bool:
        """Whether the hits keep the order of the index.

        They do if there is no ranker, if the rank is *cosine*, or if there is one anchor only and its cosine is the
        only weighted feature that differs between hits.
        """
        ranker, request = self.ranker, self.request
        if ranker is None or request.rank is Rank.COSINE:
            return True
        uses_facts = request.rank is Rank.COMPARABLE and ranker.comparable is not None
        return self._has_one_anchor_only and knows_only_cosine(ranker) and not uses_facts

    @property
    def head_size(self) -> int:
        """The number of candidates that the index must return at least."""
        return 0 if self.keeps_order else HEAD[self.request.rank]

    def facts(self, hits: Sequence[Company]) -> list[tuple[RankFact, ...]]:
        """Return the facts that raise or lower the probability of each hit, also of hits in the tail.

        If only cosines order the hits, there are none.
        """
        request, ranker = self.request, self.ranker
        if ranker is None or self.keeps_order or not hits:
            return [()] * len(hits)
        if not self._sparsities and (neighbours := self.candidates(self.head_size).hits):
            self._probabilities(neighbours)  # sets `_sparsities`
        sparsities = self._sparsities[: len(request.anchors)] or [0.0] * len(request.anchors)
        return rank_facts(ranker, request.rank, request.anchors, hits, request.schema, sparsities=sparsities)

    def candidates(self, count: int) -> SimilarCompanies:
        """Return the first `count` candidates of the index."""
        return self._similar(self.request.vector, count, self.request.filters)

    def split(self, candidates: Sequence[SimilarCompany]) -> tuple[Sequence[SimilarCompany], Sequence[SimilarCompany]]:
        """Return head and tail of the candidates.

        For *comparable*, the head also has the nearest companies of the anchors' industry.
        """
        if self.keeps_order:
            return (), candidates
        size = self.head_size
        head = list(candidates[:size])
        known = {each.company.id for each in head}
        head += [each for each in self._of_same_industry() if each.company.id not in known]
        known |= {each.company.id for each in head}
        return head, [each for each in candidates[size:] if each.company.id not in known]

    def scored(self, hits: Sequence[UniqueHit], *, head: Collection[str]) -> list[ScoredHit]:
        """Return the hits in their final order.

        `head`: ids of the candidates of the head; in `hits` they come before the others.
        """
        count = sum(each.hit.company.id in head for each in hits)
        if self.ranker is None or not hits:
            return [ScoredHit(each, None) for each in hits]
        probabilities = self._probabilities([each.hit for each in hits], head=count or None)
        cosines = np.array([each.hit.score for each in hits])
        order, probabilities = in_order(probabilities, cosines, [each.hit.company.id for each in hits], head=count)
        return [ScoredHit(hits[each], value) for each, value in zip(order, probabilities.tolist(), strict=True)]

    def probability_of(self, hit: SimilarCompany, head: Sequence[SimilarCompany]) -> float | None:
        """Return the probability, as it is shown, that a company has or would have in the ranking.

        `head`: the head of the ranking, without duplicates.
        """
        if self.ranker is None:
            return None
        others = [each for each in head if each.company.id != hit.company.id]
        *of_others, probability = self._probabilities([*others, hit], head=len(head) or None).tolist()
        is_in_tail = len(others) == len(head) and bool(others) and hit.score < min(each.score for each in others)
        return rounded(min([probability, *of_others]) if is_in_tail else probability)

    @property
    def _has_one_anchor_only(self) -> bool:
        return len(self.request.anchors) == 1 and not self.request.negatives

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

    def _probabilities(self, hits: Sequence[SimilarCompany], *, head: int | None = None) -> Floats:
        """Return the probability of each hit, `[hits]`. `hits` must not be empty, and `ranker` must not be None.

        `head`: how many of the first hits are the head; None for all. Only the head decides the weights of words and
        the sparsity, so that probabilities do not depend on how many candidates are read.
        """
        request, ranker = self.request, self.ranker
        assert ranker is not None  # noqa: S101  # the callers checked it
        if request.rank is Rank.COSINE:  # one anchor, and no feature but the cosine has a weight
            return sigmoid(ranker.cosine * np.array([each.score for each in hits]) + ranker.intercept)
        both = (*request.anchors, *request.negatives)
        companies = [company_features(each.company, request.schema, each.language) for each in hits]
        features = [
            pair_features(
                company_features(each.described, request.schema, each.language),
                companies,
                cosines,
                neighbour_cosines=self._neighbour_cosines(cosines[:head])
                if ranker.sparsity or ranker.comparable
                else (),
                head=head,
            )
            for each, cosines in zip(both, self._cosines(hits), strict=True)
        ]
        self._sparsities = [float(each.sparsity[0]) for each in features]
        logit = [logits(ranker, each, request.rank) for each in features]
        anchors = len(request.anchors)
        return combined(logit[:anchors], [each.weight for each in request.anchors], logit[anchors:])

    def _neighbour_cosines(self, cosines: Floats) -> Sequence[float]:
        """Return cosines of neighbours, highest first, from which the sparsity of a neighbourhood is computed.

        If the query has filters and one anchor, they are the cosines of a search without filters. Otherwise they are
        `cosines`, the cosines of the given hits.
        """
        if self._cosines_without_filters is None and self.request.filters and len(self.request.anchors) == 1:
            neighbours = self._similar(self.request.vector, SPARSITY_RANKS.stop, ())
            self._cosines_without_filters = [each.score for each in neighbours.hits]
        sorted_cosines: list[float] = self._cosines_without_filters or np.sort(cosines)[::-1].tolist()
        return sorted_cosines

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
    """Return a filter for the industries of the anchors; None if no anchor has an industry.

    It filters by the finest field in which at least one anchor has a value.
    """
    found = [industries(each) for each in anchors if isinstance(each, Company)]
    for level, name in enumerate(INDUSTRY_FIELDS):
        if values := tuple(dict.fromkeys(each[level] for each in found if each[level])):
            return FieldFilter(field=name, any_of=values)
    return None
