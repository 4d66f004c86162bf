"""Responses to queries."""

from datetime import datetime
from typing import Annotated, Literal, Required

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from similarity.company import AttributeValue
from similarity.search.location import RemovedBy
from similarity.search.reranking.fact_effects import Relation

from ..wire.problem_documents import (
    CompanyReference,
    ContestedNameDocument,
    InvalidRequestDocument,
    ProblemDocument,
    UnknownCompanyDocument,
)
from .schemas import CompanyAnswer, CompanyRecord, LanguageWarning, Source


class SegmentRecord(BaseModel):
    """A line of business in a company's description."""

    number: int = Field(description="From 1; send it as `segment` of an anchor.", examples=[3])
    text: str = Field(description="Its phrases, as they are written.", examples=["rail vehicles; rail automation"])


class CompanySegments(CompanyAnswer):
    """A company and the lines of business in its description."""

    segments: list[SegmentRecord] = Field(description="Empty if the description is about one business.")


class AskedFor(BaseModel):
    """An anchor or a negative of the query, resolved."""

    asked: str = Field(description="The reference in the query.", examples=["nike.com"])
    company: CompanyRecord | None = Field(description="The company that it names; null for free text.")
    text: str | None = Field(default=None, description="The free text; null for a company.")
    segment: SegmentRecord | None = Field(default=None, description="Set if only this line of business counts.")
    weight: float = Field(default=1.0, description="Relative to the other anchors.")
    redirected_from: str | None = Field(
        default=None, description="The domain, name or alias in the query, if it was not the id."
    )
    confidence: float = Field(
        default=1.0, description="Measured share of right companies among those found in this way; 1 for an id."
    )
    language: str = Field(description="ISO 639 code; `und` if the text is too short to tell.", examples=["en"])
    warning: str | None = Field(
        default=None, description="Set if the text is in a language that the encoder does not read."
    )
    updated_at: datetime | None = Field(description="When the stored facts were true; null for free text.")
    embedded_at: datetime | None = Field(description="When the description was encoded; null for free text.")
    duplicates: list[str] = Field(
        default=[], description="Ids of the same company (same domain or text), which are therefore no hits."
    )
    others: list[CompanyReference] = Field(
        default=[], description="Companies that the reference may also mean, as `warnings` say."
    )


class Miss(BaseModel):
    """A reference of the query that names no company, several, or one without a vector; the rest was answered."""

    asked: str = Field(description="The reference in the query.", examples=["nikee"])
    role: Literal["anchor", "negative", "exclude"]
    problem: Literal["unknown-company", "contested-name", "too-few-words"] = Field(
        description="As in a problem document."
    )
    detail: str = Field(description="What is wrong, and what to do.")
    suggestions: list[CompanyReference] = Field(
        default=[], description="Companies that may be meant; only for the first few misses."
    )


class SharedFactRecord(BaseModel):
    """A filter field with values that the hit shares with at least one anchor."""

    field: str = Field(examples=["country"])
    values: tuple[str, ...] = Field(examples=[["Germany"]])


class RankFactRecord(BaseModel):
    """A fact that moved the hit up or down."""

    field: Literal["industry", "size", "country"]
    relation: Relation = Field(description="How the hit compares with the anchors.")
    effect: float = Field(
        description="Change of the log-odds of being a competitor, compared with a hit of unknown industry, the same "
        "size and another country.",
        examples=[0.47],
    )


class PhraseRecord(BaseModel):
    """A phrase that says why the two are alike: without it the cosine of the two descriptions falls by `weight`."""

    text: str = Field(examples=["operates cable cars"])
    of: Literal["anchor", "hit"] = Field(description="Whose description contains it.")
    anchor: int = Field(description="Index in `anchors` of the nearest anchor, which the hit was compared with.")
    start: int = Field(description="Position of its first character in that description.")
    end: int = Field(description="Position after its last character.")
    weight: float = Field(description="Decrease of the cosine without it.", examples=[0.12])


class Reason(BaseModel):
    """Why a company is a hit."""

    shared: list[SharedFactRecord] = Field(default=[], description="Facts in common with the anchors.")
    moved: list[RankFactRecord] = Field(
        default=[], description="Facts that moved its rank, the largest effect first; none with `rank=cosine`."
    )
    phrases: list[PhraseRecord] | None = Field(
        default=None,
        description="The pair of both sides that matches best, then the strongest; null if they were not computed "
        "(see `reasons`).",
    )


class HitCompany(TypedDict, total=False):
    """A company: `id`, and the members in `fields`, by default all."""

    id: Required[Annotated[str, Field(examples=["adidas"])]]
    name: Annotated[str, Field(examples=["adidas AG"])]
    description: Annotated[str, Field(examples=["Designs and sells sports shoes and clothing."])]
    aliases: Annotated[tuple[str, ...], Field(description="Other names.")]
    domain: Annotated[str, Field(description="The bare host name of its website.", examples=["adidas-group.com"])]
    country: Annotated[str, Field(examples=["Germany"])]
    industry: Annotated[str, Field(examples=["Athletic footwear and apparel"])]
    tags: Annotated[tuple[str, ...], Field(examples=[["sportswear"]])]
    attributes: Annotated[dict[str, AttributeValue], Field(description="Free facts by name.")]


class Hit(BaseModel):
    """One competitor."""

    rank: int = Field(description="1 is the nearest; counted over all pages.", examples=[1])
    score: float = Field(
        description="Cosine to the query (with several anchors, to their mean), -1 to 1.", examples=[0.734]
    )
    probability: float | None = Field(
        description="How likely it is a competitor of the anchors and of no negative, 0 to 1. No later hit has a "
        "higher one. null if the encoder's bundle has no weights for it; with `rank=cosine` also with several anchors; "
        "and if the encoder cannot read the description, an anchor or a negative (see their `warning`).",
        examples=[0.81],
    )
    company: HitCompany
    updated_at: datetime = Field(description="When the stored facts were true (event time, UTC).")
    embedded_at: datetime = Field(description="When the description was turned into its vector (UTC).")
    language: str = Field(description="ISO 639 code of the description; `und` if it is too short to tell.")
    warning: LanguageWarning = None
    reason: Reason
    duplicates: list[str] = Field(
        default=[], description="Ids of the same company (same domain or text) among the candidates below it."
    )


class Ranking(Source):
    """Competitors, nearest first."""

    anchors: list[AskedFor] = Field(description="What the hits are similar to, without misses.")
    negatives: list[AskedFor] = Field(default=[], description="What they are not similar to.")
    misses: list[Miss] = Field(
        default=[], description="References that name no company, several, or one with too few words to rank by."
    )
    hits: list[Hit]
    next_cursor: str | None = Field(default=None, description="The `cursor` of the next page.")
    warnings: list[str] = Field(default=[], description="What could not be done, and why.")
    approximate: bool = Field(description="False: every company was compared. True: some nearer ones may be missing.")
    took_ms: float = Field(description="Time spent on this answer inside the service.", examples=[2.4])


class SimilarToCompany(Ranking, CompanyAnswer):
    """A company's competitors. The company itself is never among them."""


class SimilarToText(Ranking):
    """The companies nearest to a description in free text."""

    text: str = Field(examples=["rents out electric scooters by the minute"])
    language: str = Field(description="ISO 639 code of the text; `und` if it is too short to tell.")
    warning: str | None = Field(
        default=None, description="Set if the text is in a language that the encoder does not read."
    )


class RemovalRecord(BaseModel):
    """One reason why a company has no rank."""

    by: RemovedBy = Field(
        description="`anchor`, `negative`, `exclude`: it is this company of the query, or the same company under "
        "another id. `duplicate`: a better hit is the same company. `filter`: it does not pass the filter on `field`. "
        "`min_probability`: its probability is lower."
    )
    company: str | None = Field(
        default=None, description="The id of that anchor, negative, exclusion or hit.", examples=["puma"]
    )
    field: str | None = Field(default=None, description="The field of that filter.", examples=["country"])


class Located(CompanyAnswer):
    """The place of a company in a ranking, and why it is there."""

    rank: int | None = Field(
        description="Its rank. null: something removes it (see `removed_by`), or the pages of this query do not reach "
        "it: they end at rank 1,000.",
        examples=[519],
    )
    nearer: int | None = Field(
        description="How many companies that pass the filters and are not excluded have a higher cosine; duplicates "
        "count. null: at least 1,100, and the store counts no further (Elasticsearch).",
        examples=[531],
    )
    score: float = Field(description="As in a hit.", examples=[0.41])
    probability: float | None = Field(description="As in a hit.", examples=[0.12])
    reason: Reason
    removed_by: list[RemovalRecord] = Field(description="Everything that removes it; empty if nothing.")
    warnings: list[str] = Field(default=[], description="What could not be done, and why.")
    approximate: bool = Field(description="As in a ranking: if true, `rank` may be null although `nearer` is small.")
    took_ms: float = Field(description="Time spent on this answer inside the service.", examples=[12.5])


class Answered(BaseModel):
    """The answer to one query of a batch."""

    status: Literal[200] = 200
    answer: Ranking


class Refused(BaseModel):
    """The problem with one query of a batch."""

    status: int = Field(description="The status that the query alone would get.", examples=[404])
    problem: UnknownCompanyDocument | ContestedNameDocument | InvalidRequestDocument | ProblemDocument


class BatchAnswer(BaseModel):
    """An answer or a problem for each query, in order, all from one generation."""

    answers: list[Answered | Refused]
    generation: str = Field(examples=["2026-01-31"])
    took_ms: float = Field(description="Time spent on all answers inside the service.", examples=[20.5])
