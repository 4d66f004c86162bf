"""The neighbourhood of a query as a map: its anchors, negatives and hits on a plane.

A map does not rank: two axes show only a part of what the cosine compares, and `explained` says how much.
"""

from typing import Any, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, Field

from similarity.company import Vector
from similarity.search.projection import project
from similarity.search.queries.resolution import ResolvedAnchor
from similarity.search.ranking import Ranking
from similarity.search.searcher import retry_if_retired

from .answers import model_of
from .question_schemas import Anchor, Question, SimilarQuery
from .ranking_schemas import Miss
from .schemas import Source
from .service import SearchService
from .shaping import miss_of

Placed: TypeAlias = tuple[Vector, dict[str, Any]]
"""A vector, and the members of its point without the coordinates."""


class MapQuery(SimilarQuery):
    """The parameters of a map: those of `GET /similar/{company_id}`."""

    format: Literal["json"] | None = Field(default=None, description="A map has no other format.")


class MapPoint(BaseModel):
    """A company or a text at its position."""

    id: str | None = Field(description="The company's id; null for free text.", examples=["adidas"])
    name: str = Field(description="The company's name, or the free text.", examples=["adidas AG"])
    x: float = Field(ge=-1, le=1, description="Position on the first axis, along which the points differ most.")
    y: float = Field(ge=-1, le=1, description="Position on the second axis, on the same scale.")
    role: Literal["anchor", "negative", "hit"]
    score: float | None = Field(default=None, description="Of a hit: its cosine to the query.", examples=[0.734])
    probability: float | None = Field(
        default=None, description="Of a hit: how likely it is a competitor; null without a calibration."
    )


class Map(Source):
    """Anchors, negatives and hits on a plane: similar companies are near each other."""

    points: list[MapPoint] = Field(description="Anchors first, then negatives, then hits, the nearest first.")
    explained: float = Field(
        ge=0, le=1, description="Share of the differences between the points that the plane shows.", examples=[0.41]
    )
    misses: list[Miss] = Field(default=[], description="References of the query that name no company, or several.")


class MapService:
    """Draws the rankings of `search`."""

    def __init__(self, search: SearchService) -> None:
        self._search = search

    def map_of(self, question: Question) -> Map:
        """Return the map of a query. Raises what `SearchService.ranking` raises."""
        return retry_if_retired(lambda: self._drawn(self._search.ranking(question)))

    def map_of_company(self, reference: str, query: MapQuery) -> Map:
        """Return the map of one company. Raises what `SearchService.ranking_about` raises."""
        question = query.question(Anchor(company=reference))
        return retry_if_retired(lambda: self._drawn(self._search.ranking_about(reference, question)))

    def _drawn(self, ranking: Ranking) -> Map:
        placed = [
            *(_anchor(each, "anchor") for each in ranking.anchors),
            *(_anchor(each, "negative") for each in ranking.negatives),
            *self._hits(ranking),
        ]
        projection = project(np.array([vector for vector, _ in placed]))
        return Map(
            # Rounded, so that noise in the last digits does not change the ETag.
            points=[
                MapPoint(**members, x=round(x, 4), y=round(y, 4))
                for (_, members), (x, y) in zip(placed, projection.points.tolist(), strict=True)
            ],
            explained=round(projection.explained, 4),
            misses=[miss_of(each) for each in ranking.unresolved],
            generation=ranking.generation.name,
            model=model_of(ranking.generation),
        )

    def _hits(self, ranking: Ranking) -> list[Placed]:
        documents = self._search.searcher.index.get(ranking.generation.name, [hit.company.id for hit in ranking.hits])
        placed: list[Placed] = []
        for hit in ranking.hits:
            # A company that was changed or deleted a moment ago may have no vector any more.
            if (document := documents.get(hit.company.id)) and document.has_vector:
                members = {"role": "hit", "id": hit.company.id, "name": hit.company.name}
                scores = {"score": round(hit.score, 6), "probability": hit.probability}
                placed.append((document.vector, {**members, **scores}))
        return placed


def _anchor(anchor: ResolvedAnchor, role: str) -> Placed:
    if anchor.document is None:
        return anchor.vector, {"role": role, "id": None, "name": anchor.reference}
    return anchor.vector, {"role": role, "id": anchor.document.id, "name": anchor.document.company.name}
