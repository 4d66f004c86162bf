"""What a question is answered with."""

from datetime import datetime
from typing import Annotated, Literal, Required

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from similarity.company import AttributeValue

from ..wire.problem_documents import (
    CompanyReference,
    ContestedNameDocument,
    InvalidRequestDocument,
    ProblemDocument,
    UnknownCompanyDocument,
)
from .schemas import CompanyAnswer, CompanyRecord, Source


class AskedFor(BaseModel):
    """An anchor or a negative, as it was understood."""

    asked: str = Field(description="What the question said.", examples=["nike.com"])
    company: CompanyRecord | None = Field(description="The company that it names; null for free words.")
    text: str | None = Field(default=None, description="The free words; null for a company.")
    weight: float = Field(default=1.0, description="How much it counts beside the others of its kind.")
    redirected_from: str | None = Field(
        default=None, description="The domain, name or alias that was asked for, if it was not the id."
    )
    confidence: float = Field(
        default=1.0, description="Measured share of right companies among those found in this way; 1 for an id."
    )
    language: str = Field(description="ISO 639 code; `und` if the text is too short to tell.", examples=["en"])
    warning: str | None = Field(default=None, description="Set where the text is not English: scores mean less there.")
    updated_at: datetime | None = Field(description="When the stored facts were true; null for free words.")
    embedded_at: datetime | None = Field(description="When the description was encoded; null for free words.")
    duplicates: list[str] = Field(
        default=[], description="Ids that would have been hits but are the same company: same domain or same text."
    )


class Miss(BaseModel):
    """Something the question named that cannot be told; the rest of the question was answered."""

    asked: str = Field(description="What the question said.", examples=["nikee"])
    role: Literal["anchor", "negative", "exclude"]
    problem: Literal["unknown-company", "contested-name"] = Field(description="As in a problem document.")
    detail: str = Field(description="What is wrong with it, and what to do.")
    suggestions: list[CompanyReference] = Field(
        default=[], description="Companies that may be meant; for the first few misses only."
    )


class SharedFactRecord(BaseModel):
    """Something the hit has in common with at least one anchor; it can be filtered by."""

    field: str = Field(examples=["country"])
    values: tuple[str, ...] = Field(examples=[["Germany"]])


class PhraseRecord(BaseModel):
    """Words that carry the match: without them the cosine of the two descriptions falls by `weight`."""

    text: str = Field(examples=["operates cable cars"])
    of: Literal["anchor", "hit"] = Field(description="Whose description it stands in.")
    anchor: int = Field(description="Which of `anchors`, from 0, the hit was compared with: the nearest.")
    start: int = Field(description="Its place in that description, in characters: from here ...")
    end: int = Field(description="... to before here.")
    weight: float = Field(description="How far the cosine falls without it.", examples=[0.12])


class Reason(BaseModel):
    """Why a company is a hit."""

    shared: list[SharedFactRecord] = Field(default=[], description="Facts in common with the anchors.")
    phrases: list[PhraseRecord] | None = Field(
        default=None, description="The strongest first; null where they were not looked for (see `reasons`)."
    )


class HitCompany(TypedDict, total=False):
    """What a company says about itself; only the members that were asked for (`fields`), and `id`."""

    id: Required[Annotated[str, Field(examples=["adidas"])]]
    name: Annotated[str, Field(examples=["adidas AG"])]
    description: Annotated[str, Field(examples=["Designs and sells sports shoes and clothing."])]
    aliases: Annotated[tuple[str, ...], Field(description="Other names it goes by.")]
    domain: Annotated[str, Field(description="The bare host name of its website.", examples=["adidas.com"])]
    country: Annotated[str, Field(examples=["Germany"])]
    industry: Annotated[str, Field(examples=["Athletic footwear and apparel"])]
    tags: Annotated[tuple[str, ...], Field(examples=[["sportswear"]])]
    attributes: Annotated[dict[str, AttributeValue], Field(description="Free facts by name.")]


class Hit(BaseModel):
    """One competitor."""

    rank: int = Field(description="1 is the nearest; counted over all pages.", examples=[1])
    score: float = Field(
        description="Cosine to what was asked for (with several anchors, to their mean), -1 to 1.", examples=[0.734]
    )
    probability: float | None = Field(
        description="How likely it is a competitor, 0 to 1, judged by the nearest anchor; null if the generation has "
        "no calibration.",
        examples=[0.81],
    )
    company: HitCompany
    updated_at: datetime = Field(description="When the stored facts were true (event time, UTC).")
    embedded_at: datetime = Field(description="When the description was turned into its vector (UTC).")
    language: str = Field(description="ISO 639 code of the description; `und` if it is too short to tell.")
    warning: str | None = Field(
        default=None, description="Set where the description is not English: scores mean less there."
    )
    reason: Reason
    duplicates: list[str] = Field(
        default=[], description="Ids of the same company (same domain or same text) among the hits looked at below it."
    )


class Ranking(Source):
    """Competitors, nearest first."""

    anchors: list[AskedFor] = Field(description="What the hits are like; misses are left out.")
    negatives: list[AskedFor] = Field(default=[], description="What they are not like.")
    misses: list[Miss] = Field(default=[], description="What the question named and nobody could tell.")
    hits: list[Hit]
    next_cursor: str | None = Field(default=None, description="Ask again with it as `cursor` for the hits that follow.")
    warnings: list[str] = Field(default=[], description="What could not be done, and why.")
    approximate: bool = Field(description="False: every company was compared. True: some nearer ones may be missing.")
    took_ms: float = Field(description="Time spent on this answer inside the service.", examples=[2.4])


class SimilarToCompany(Ranking, CompanyAnswer):
    """A company's competitors. The company itself is never among them."""


class SimilarToText(Ranking):
    """The companies nearest to a description in free words."""

    text: str = Field(examples=["rents out electric scooters by the minute"])
    language: str = Field(description="ISO 639 code of the text; `und` if it is too short to tell.")
    warning: str | None = Field(default=None, description="Set where the text is not English: scores mean less there.")


class Answered(BaseModel):
    """The answer to one question of a batch."""

    status: Literal[200] = 200
    answer: Ranking


class Refused(BaseModel):
    """The problem with one question of a batch."""

    status: int = Field(description="What the question alone would be answered with.", examples=[404])
    problem: UnknownCompanyDocument | ContestedNameDocument | InvalidRequestDocument | ProblemDocument


class BatchAnswer(BaseModel):
    """An answer or a problem for each question, in order, all from one generation."""

    answers: list[Answered | Refused]
    generation: str = Field(examples=["2026-01-31"])
    took_ms: float = Field(description="Time spent on all answers inside the service.", examples=[20.5])
