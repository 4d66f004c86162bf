"""The neighbourhood of a question as a map: its anchors, negatives and hits laid flat.

A map ranks nothing: two axes show only a part of what the cosine compares, and `explained` says how much.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from similarity.company import Vector
from similarity.search.projection import project
from similarity.search.resolution import ResolvedAnchor
from similarity.search.searcher import Ranking, retry_if_retired

from .answers import model_of
from .map_schemas import Map, MapPoint, MapQuery
from .question_schemas import Anchor, Question
from .service import SearchService
from .shaping import miss_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """What is at one point of the map, and the vector that decides where."""

    vector: Vector
    role: Literal["anchor", "negative", "hit"]
    id: str | None
    name: str
    score: float | None = None
    probability: float | None = None


class MapService:
    """Draws the rankings of `search`."""

    def __init__(self, search: SearchService) -> None:
        self._search = search

    def map_of(self, question: Question) -> Map:
        """Return the anchors, negatives and hits of a question. Raises what `SearchService.rank` raises."""
        return retry_if_retired(lambda: self._drawn(self._search.ranking(question)))

    def map_of_company(self, reference: str, query: MapQuery) -> Map:
        """Return the same for one company. Raises what `SearchService.similar_to_company` raises."""
        question = query.question(Anchor(company=reference))
        return retry_if_retired(lambda: self._drawn(self._search.ranking_about(reference, question)))

    def _drawn(self, ranking: Ranking) -> Map:
        placed = [
            *(_anchor(each, "anchor") for each in ranking.anchors),
            *(_anchor(each, "negative") for each in ranking.negatives),
            *self._hits(ranking),
        ]
        projection = project(np.array([each.vector for each in placed]))
        return Map(
            points=[_point(each, x, y) for each, (x, y) in zip(placed, projection.points.tolist(), strict=True)],
            explained=round(projection.explained, 4),
            misses=[miss_of(each) for each in ranking.unresolved],
            generation=ranking.generation.name,
            model=model_of(ranking.generation),
        )

    def _hits(self, ranking: Ranking) -> list[_Placed]:
        ids = [hit.company.id for hit in ranking.hits]
        documents = self._search.searcher.index.get(ranking.generation.name, ids)
        return [
            _Placed(
                vector=documents[hit.company.id].vector,
                role="hit",
                id=hit.company.id,
                name=hit.company.name,
                score=round(hit.score, 6),
                probability=hit.probability,
            )
            for hit in ranking.hits
            # A company that was deleted a moment ago has no vector any more.
            if hit.company.id in documents
        ]


def _anchor(anchor: ResolvedAnchor, role: Literal["anchor", "negative"]) -> _Placed:
    document = anchor.document
    return _Placed(
        vector=anchor.vector,
        role=role,
        id=None if document is None else document.id,
        name=anchor.reference if document is None else document.company.name,
    )


def _point(placed: _Placed, x: float, y: float) -> MapPoint:
    return MapPoint(
        id=placed.id,
        name=placed.name,
        # Rounded away from the noise of the last digits, so that the same neighbourhood has the same ETag.
        x=round(x, 4),
        y=round(y, 4),
        role=placed.role,
        score=placed.score,
        probability=placed.probability,
    )
