"""What the service takes and answers, as pydantic models: validation and the API's manual in one.

One rule of shape: facts about a stored document (`updated_at`, `embedded_at`, `language`,
`warning`) stand beside its `company`, in an anchor as in a hit.
"""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from similarity.company import MAX_NAME_CHARACTERS, AttributeValue

from ..wire.bodies import Closed, Listed

MAX_HITS = 250
MAX_FILTER_VALUES = 100
MAX_TEXT_CHARACTERS = 5_000

# Longer than a company's description usually is, short enough for any server's limit on addresses.
Text = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT_CHARACTERS),
    Field(description="What the company does, in your own words; English is what the encoder reads best."),
]
Word = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARACTERS)]
Words = Annotated[Listed[Word], Field(max_length=MAX_FILTER_VALUES)]


class FindQuery(Closed):
    """The parameters of a look-up."""

    q: Word = Field(description="A name, the start of one, a domain, or words of a description.", examples=["nik"])
    limit: int = Field(default=10, ge=1, le=MAX_HITS, description="How many companies at most.")


class NoQuery(Closed):
    """No parameters: any parameter is an error."""


class CompanyRecord(BaseModel):
    """What a company says about itself. Unknown texts are empty."""

    id: str = Field(examples=["nike"])
    name: str = Field(examples=["Nike, Inc."])
    description: str = Field(examples=["Designs and sells athletic shoes, apparel and equipment."])
    aliases: tuple[str, ...] = Field(default=(), description="Other names it goes by.", examples=[["Nike"]])
    domain: str = Field(default="", description="The bare host name of its website.", examples=["nike.com"])
    country: str = Field(default="", examples=["United States"])
    industry: str = Field(default="", examples=["Athletic footwear and apparel"])
    tags: tuple[str, ...] = Field(default=(), examples=[["sportswear"]])
    attributes: dict[str, AttributeValue] = Field(
        default={}, description="Free facts by name.", examples=[{"employees": 83000}]
    )


class StoredCompany(BaseModel):
    """A company and what the index knows of its stored document."""

    company: CompanyRecord
    updated_at: datetime = Field(description="When the stored facts were true (event time, UTC).")
    embedded_at: datetime = Field(description="When the description was turned into its vector (UTC).")
    language: str = Field(description="ISO 639 code of the description; `und` if it is too short to tell.")
    warning: str | None = Field(
        default=None, description="Set where the description is not English: scores mean less there."
    )


class Model(BaseModel):
    """The model whose vectors were compared."""

    encoder_id: str = Field(description="Vectors of one encoder_id are comparable.", examples=["7f9a54bb4fd1bba2"])
    bundle_id: str = Field(description="The encoder with its calibration and card.", examples=["04c1e0f3a2b8d955"])


class Source(BaseModel):
    """Where an answer comes from."""

    generation: str = Field(description="The copy of the corpus that answered.", examples=["2026-01-31"])
    model: Model


class CompanyAnswer(Source, StoredCompany):
    """A company, by whichever of its names it was asked for."""

    redirected_from: str | None = Field(
        default=None,
        description="The domain, name or alias that was asked for, if it was not the id.",
        examples=["nike.com"],
    )


class FoundCompanies(BaseModel):
    """Companies for a search box, better matches first."""

    query: str = Field(examples=["nik"])
    companies: list[CompanyRecord]
    generation: str = Field(examples=["2026-01-31"])


class Alive(BaseModel):
    """The process runs; nothing else was asked."""

    status: str = Field(default="alive", examples=["alive"])


class Ready(Source):
    """The index answers and holds a live generation. What else may be missing is named."""

    status: str = Field(default="ready", examples=["ready"])
    companies: int = Field(description="How many companies the live generation holds.", examples=[714])
    loaded_encoder_id: str | None = Field(
        description="The encoder that this process has loaded for free text; null if none.",
        examples=["7f9a54bb4fd1bba2"],
    )
    free_text: bool = Field(description="Whether `GET /similar?text=` can answer: both encoder ids are the same.")
    free_text_reason: str | None = Field(default=None, description="Why not, and what to do.")
    feedback: bool = Field(
        default=True, description="Whether the store of feedback and lists answers; all else works without it."
    )
    feedback_reason: str | None = Field(default=None, description="Why not.")
