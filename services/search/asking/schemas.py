"""Requests and responses about companies and readiness, and parts that other schemas share.

The facts about a stored document (`updated_at`, `embedded_at`, `language`, `warning`) are not members of `company`, but
of the object that contains it: the response, an anchor or a hit.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from similarity.company import MAX_NAME_CHARACTERS, AttributeValue

from ..wire.bodies import Closed, Listed

MAX_HITS = 250
MAX_FILTER_VALUES = 100
# Longer than most descriptions of companies, and within the limits that servers have for URLs.
MAX_TEXT_CHARACTERS = 5_000

Text = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT_CHARACTERS),
    Field(description="What the company does, in your own words, preferably in English."),
]
Word = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARACTERS)]
Words = Annotated[Listed[Word], Field(max_length=MAX_FILTER_VALUES)]
LanguageWarning = Annotated[
    str | None, Field(description="Set if the description is in a language that the encoder does not read.")
]


class FindQuery(Closed):
    """The parameters of a look-up."""

    q: Word = Field(description="A name or its beginning, a domain, or words of a description.", examples=["nik"])
    limit: int = Field(default=10, ge=1, le=MAX_HITS, description="Maximum number of companies.")


class CompanyQuery(Closed):
    """The parameters of a look-up of one company."""

    resolve: Literal["exact", "id"] | None = Field(
        default=None,
        description="`id`: only by id, case-sensitive. `exact`: only by id, domain, name or alias. Without it, also "
        "by a similar name.",
    )


class ResolveQuery(Closed):
    """The parameters of a request for the segments of a company."""

    resolve: Literal["exact"] | None = Field(
        default=None,
        description="`exact`: only by id, domain, name or alias. Without it, also by a similar name.",
    )


class NoQuery(Closed):
    """No parameters: any parameter is an error."""


class CompanyRecord(BaseModel):
    """A company. Unknown texts are empty."""

    id: str = Field(examples=["nike"])
    name: str = Field(examples=["Nike, Inc."])
    description: str = Field(examples=["Designs and sells athletic shoes, apparel and equipment."])
    aliases: tuple[str, ...] = Field(default=(), description="Other names.", examples=[["Nike"]])
    domain: str = Field(default="", description="The bare host name of its website.", examples=["nike.com"])
    country: str = Field(default="", examples=["United States"])
    industry: str = Field(default="", examples=["Athletic footwear and apparel"])
    tags: tuple[str, ...] = Field(default=(), examples=[["sportswear"]])
    attributes: dict[str, AttributeValue] = Field(
        default={}, description="Free facts by name.", examples=[{"employees": 83000}]
    )


class StoredCompany(BaseModel):
    """A company and facts about its stored document."""

    company: CompanyRecord
    updated_at: datetime = Field(description="When the stored facts were true (event time, UTC).")
    embedded_at: datetime = Field(description="When the description was turned into its vector (UTC).")
    language: str = Field(description="ISO 639 code of the description's language; `und` if it is too short to tell.")
    warning: LanguageWarning = None


class Model(BaseModel):
    """The model that computed the vectors of the generation."""

    encoder_id: str = Field(description="Vectors of one encoder_id are comparable.", examples=["7f9a54bb4fd1bba2"])
    bundle_id: str = Field(description="The encoder with its calibration and card.", examples=["04c1e0f3a2b8d955"])


class Source(BaseModel):
    """The origin of an answer."""

    generation: str = Field(description="The copy of the corpus that answered.", examples=["2026-01-31"])
    model: Model


class CompanyAnswer(Source, StoredCompany):
    """A company and how it was found."""

    redirected_from: str | None = Field(
        default=None,
        description="The domain, name or alias in the request, if it was not the id.",
        examples=["nike.com"],
    )
    confidence: float = Field(
        default=1.0,
        description="Measured share of right companies among those found in this way: 1 for an id, domain, name or "
        "alias, less for a similar name.",
    )


class FoundCompanies(BaseModel):
    """Companies for a search box, best matches first."""

    query: str = Field(examples=["nik"])
    companies: list[CompanyRecord]
    generation: str = Field(examples=["2026-01-31"])


class DeclaredType(BaseModel):
    """The declared type of an attribute."""

    type: Literal["number", "ordinal"]
    levels: tuple[str, ...] = Field(
        default=(), description="Of an ordinal: its levels, the lowest first.", examples=[["small", "mid", "large"]]
    )


class DeclaredAttributes(BaseModel):
    """The declared types of attributes. Companies may have other attributes, too."""

    types: dict[str, DeclaredType] = Field(examples=[{"employees": {"type": "number", "levels": []}}])
    size: str | None = Field(
        description="The attribute that is the size of a company; null if none is.", examples=["employees"]
    )


class Alive(BaseModel):
    """The process runs; nothing else was checked."""

    status: str = Field(default="alive", examples=["alive"])


class Ready(Source):
    """The index answers and holds a live generation. Other members say what else works."""

    status: str = Field(default="ready", examples=["ready"])
    companies: int = Field(description="Number of companies in the live generation.", examples=[714])
    loaded_encoder_id: str | None = Field(
        description="The encoder that this process has loaded for free text; null if none.",
        examples=["7f9a54bb4fd1bba2"],
    )
    free_text: bool = Field(description="Whether queries in free text work: both encoder ids are equal.")
    free_text_reason: str | None = Field(
        default=None, description="Why free text does not work, and what to do; null if it works."
    )
    feedback: bool = Field(
        default=True, description="Whether the store of feedback and lists answers; the rest works without it."
    )
    feedback_reason: str | None = Field(
        default=None, description="Why the store of feedback and lists does not answer; null if it does."
    )
