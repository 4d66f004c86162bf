"""What is asked of a map, and what it is answered with."""

from typing import Literal

from pydantic import BaseModel, Field

from .question_schemas import SimilarQuery
from .ranking_schemas import Miss
from .schemas import Source


class MapQuery(SimilarQuery):
    """The parameters of a map: those of the question for the same company's competitors."""

    format: Literal["json"] | None = Field(default=None, description="A map has no other form.")


class MapPoint(BaseModel):
    """A company or a text in its place."""

    id: str | None = Field(description="Of the company; null for free words.", examples=["adidas"])
    name: str = Field(description="Of the company; the free words themselves.", examples=["adidas AG"])
    x: float = Field(ge=-1, le=1, description="Place on the first axis, along which the points differ most.")
    y: float = Field(ge=-1, le=1, description="Place on the second axis, on the same scale.")
    role: Literal["anchor", "negative", "hit"]
    score: float | None = Field(default=None, description="Of a hit: cosine to what was asked for.", examples=[0.734])
    probability: float | None = Field(
        default=None, description="Of a hit: how likely it is a competitor; null without a calibration."
    )


class Map(Source):
    """Anchors, negatives and hits on a plane: near means alike."""

    points: list[MapPoint] = Field(description="Anchors first, then negatives, then hits, the nearest first.")
    explained: float = Field(
        ge=0, le=1, description="The share of the differences between the points that the plane shows.", examples=[0.41]
    )
    misses: list[Miss] = Field(default=[], description="What the question named and nobody could tell.")
