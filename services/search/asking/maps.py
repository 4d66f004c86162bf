"""The neighbourhood of a question as a map: its anchors, negatives and hits laid flat.

A map ranks nothing: two axes show only a part of what the cosine compares, and `explained` says how much.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from services.search.asking.answers import model_of
from services.search.asking.map_schemas import Map, MapPoint, MapQuery
from services.search.asking.question_schemas import Anchor, Question
from services.search.asking.questions import Understood
from services.search.asking.ranking import Ranked
from services.search.asking.service import Found, SearchService
from services.search.asking.shaping import miss_of
from similarity.company import Vector
from similarity.projection import project


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
    """Draws what `search` finds."""

    def __init__(self, search: SearchService) -> None:
        self._search = search

    def map_of(self, question: Question) -> Map:
        """The anchors, negatives and hits of a question.

        Raises:
            Problem: as `SearchService.rank`.
        """
        return self._search.answer(question, self._drawn)

    def map_of_company(self, reference: str, query: MapQuery) -> Map:
        """The same for the company that `reference` names.

        Raises:
            Problem: as `SearchService.similar_to_company`.
        """

        def shape(found: Found) -> Map:
            for missed in found.understanding.misses:
                if (missed.role, missed.asked) == ("anchor", reference):
                    raise missed.problem
            return self._drawn(found)

        return self._search.answer(query.question(Anchor(company=reference)), shape)

    def _drawn(self, found: Found) -> Map:
        asked = found.understanding
        placed = [
            *(_asked_for(each, "anchor") for each in asked.anchors),
            *(_asked_for(each, "negative") for each in asked.negatives),
            *self._hits(found.page.hits, found.generation.name),
        ]
        projection = project(np.array([each.vector for each in placed]))
        return Map(
            points=[_point(each, x, y) for each, (x, y) in zip(placed, projection.points.tolist(), strict=True)],
            explained=round(projection.explained, 4),
            misses=[miss_of(each) for each in asked.misses],
            generation=found.generation.name,
            model=model_of(found.generation),
        )

    def _hits(self, hits: Sequence[Ranked], generation: str) -> list[_Placed]:
        documents = self._search.index.get(generation, [each.hit.company.id for each in hits])
        return [
            _Placed(
                vector=documents[each.hit.company.id].vector,
                role="hit",
                id=each.hit.company.id,
                name=each.hit.company.name,
                score=round(each.hit.score, 6),
                probability=each.probability,
            )
            for each in hits
            # One that was deleted a moment ago has no vector any more.
            if each.hit.company.id in documents
        ]


def _asked_for(understood: Understood, role: Literal["anchor", "negative"]) -> _Placed:
    document = understood.company
    return _Placed(
        vector=understood.vector,
        role=role,
        id=None if document is None else document.id,
        name=understood.asked if document is None else document.company.name,
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
