"""Requests and responses of writes."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import PydanticCustomError

from similarity.company import (
    ATTRIBUTE_NAME_PATTERN,
    MAX_ALIAS_CHARACTERS,
    MAX_ALIASES_CHARACTERS,
    MAX_LIST_ITEMS,
    MAX_NAME_CHARACTERS,
    AttributeValue,
)
from similarity.feedback.protocol import Forgotten
from similarity.index.ledger import Compaction, ErasureState

from ..wire.bodies import CompanyId, Listed
from ..wire.problem_documents import pattern_of

MAX_BULK_LINES = 10_000
MAX_COMPANY_BYTES = 32_768
"""Maximum size of the JSON of one company: all other writes wait while it is stored. The longest of 46,616 real
descriptions has 5,251 characters. Files may hold longer descriptions."""
MAX_WEBSITE_CHARACTERS = 2_048
MAX_TIME_CHARACTERS = 64
EVENT_TIME = (
    "When this became true: ISO 8601 with an offset or `Z`, at most 5 minutes ahead. The change is applied only if it "
    "is newer than what is stored. By default the time of receipt, or the next version after a later stored one."
)
STATUS = "Address of the state of an accepted write; omitted otherwise."

ATTRIBUTE_NAME = pattern_of(
    f"^{ATTRIBUTE_NAME_PATTERN.pattern}$",
    "must be a name of at most 64 letters, digits and _ that begins with a letter",
)
AttributeName = Annotated[str, StringConstraints(pattern=ATTRIBUTE_NAME)]
Named = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARACTERS, pattern=r"\S")]
Alias = Annotated[str, StringConstraints(max_length=MAX_ALIAS_CHARACTERS, pattern=r"\S")]
Short = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARACTERS)]
# A list or an object is ignored with a warning (`parse_record`), as in files; the rest of the company is stored.
_read: Any = TypeAdapter(AttributeValue | None).json_schema()
Fact = Annotated[
    AttributeValue | None,
    BeforeValidator(lambda value: None if isinstance(value, list | dict) else value),
    WithJsonSchema({"anyOf": [*_read["anyOf"], {"type": "array"}, {"type": "object"}]}),
]
Time = Annotated[str, StringConstraints(max_length=MAX_TIME_CHARACTERS)]


class CompanyBody(BaseModel):
    """A whole company: a member that is omitted or null becomes empty."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: CompanyId | None = Field(default=None, description="If given, the same as in the path.", examples=["acme"])
    name: Named = Field(examples=["Acme, Inc."])
    description: str = Field(
        pattern=r"\S",
        max_length=MAX_COMPANY_BYTES,
        description="What the company does, in its own words. The search compares these texts. The whole company has "
        f"at most {MAX_COMPANY_BYTES:,} bytes of JSON.",
        examples=["Makes anvils and sells them to smiths."],
    )
    aliases: Listed[Alias] | None = Field(
        default=None,
        max_length=MAX_LIST_ITEMS,
        description=f"Other names, of at most {MAX_ALIASES_CHARACTERS:,} characters in all.",
    )
    domain: Annotated[str, StringConstraints(max_length=MAX_WEBSITE_CHARACTERS)] | None = Field(
        default=None,
        description="Its website; the bare host name is stored. Without a host name it is ignored with a warning.",
        examples=["https://www.acme.com/about"],
    )
    country: Short | None = Field(default=None, examples=["Germany"])
    industry: Short | None = Field(default=None, examples=["Tools"])
    tags: Listed[Named] | None = Field(default=None, max_length=MAX_LIST_ITEMS)
    attributes: dict[AttributeName, Fact] | None = Field(
        default=None,
        max_length=MAX_LIST_ITEMS,
        description="Free facts for filters: text, finite numbers, true or false; null is no value. Those with a "
        "declared type (`GET /attributes`) are read as that type; a value of another type is ignored with a warning, "
        "as is a list or an object.",
        examples=[{"employees": 12}],
    )
    event_time: Time | None = Field(default=None, description=EVENT_TIME, examples=["2026-01-31T12:00:00Z"])

    @field_validator("aliases")
    @classmethod
    def _are_short(cls, aliases: list[str] | None) -> list[str] | None:
        if (characters := sum(map(len, aliases or ()))) > MAX_ALIASES_CHARACTERS:
            reason = f"have {characters:,} characters in all; send at most {MAX_ALIASES_CHARACTERS:,}"
            raise PydanticCustomError("too_long_in_all", "{reason}", {"reason": reason})
        return aliases


class DeletionLine(BaseModel):
    """A line of a bulk upload that deletes a company; other members are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)

    id: CompanyId
    deleted: bool
    event_time: Time | None = None


class CompanyLine(CompanyBody):
    """A line of a bulk upload that writes a company."""

    id: CompanyId = Field(examples=["acme"])
    deleted: bool | None = None


class Outcome(StrEnum):
    """The outcome of a write."""

    APPLIED = "applied"
    """It is stored durably in every generation."""
    UNCHANGED = "unchanged"
    """The same was stored before: an earlier attempt succeeded."""
    SUPERSEDED = "superseded"
    """A newer version is stored; this changed nothing."""
    ACCEPTED = "accepted"
    """Kafka holds it durably; the stream will store it."""
    REJECTED = "rejected"
    """It cannot be stored as it is; `reason` says why."""
    FAILED = "failed"
    """The store did not accept it in time. It may or may not be stored: send it again, which is harmless."""


class WriteAnswer(BaseModel):
    """The outcome of one write."""

    id: str = Field(examples=["acme"])
    outcome: Outcome = Field(
        description="`applied`: stored. `unchanged`: the same was stored before. `superseded`: a newer version is "
        "stored, nothing was changed. `accepted`: Kafka holds it, the stream will store it.",
        examples=["applied"],
    )
    version: int = Field(
        description="Twice the event time in microseconds since 1970, plus 1 for a delete; higher without event time "
        "if a later version was stored.",
        examples=[3539707200000000],
    )
    warnings: list[str] = Field(default=[], description="What was ignored, and notes on the outcome.")
    status: str | None = Field(default=None, description=STATUS, examples=["/companies/acme/writes/3539707200000000"])


class WriteStatus(BaseModel):
    """The state of an accepted write."""

    id: str = Field(examples=["acme"])
    version: int = Field(description="The version in the request.", examples=[3539707200000000])
    outcome: Outcome = Field(
        description="`accepted`: an older version is stored, or none. `applied`: this one. `superseded`: a newer one.",
        examples=["applied"],
    )
    stored: int | None = Field(description="The stored version, null if there is none.", examples=[3539707200000000])


class BulkResult(BaseModel):
    """The outcome of one line of a bulk upload."""

    line: int = Field(description="The line's number, from 1. Blank lines are counted, but have no result.")
    id: str | None = Field(description="The company's id; null if the line has none.")
    outcome: Outcome
    reason: str = Field(default="", description="Why it was not accepted, or what was ignored.")
    status: str | None = Field(default=None, description=STATUS)


class ErasedGeneration(BaseModel):
    """The outcome of an erasure in one generation."""

    generation: str = Field(examples=["2026-01-31"])
    outcome: Outcome
    reason: str = ""


class ErasureAnswer(BaseModel):
    """The state of an erasure. If `erased` is true, no search finds the company."""

    id: str
    state: ErasureState = Field(
        description="`running`: it continues in the background, also after a restart. `done`: complete. `failed`: it "
        "ended incomplete, erase again."
    )
    problem: str = Field(description="Why it is not complete; empty without a problem.")
    warnings: list[str] = Field(
        default=[], description="Of the POST: if no company with this id was stored, and which id may be meant."
    )
    erased: bool = Field(description="Whether every generation has the deletion.")
    generations: list[ErasedGeneration]
    published: bool = Field(description="Whether a delete was written to Kafka too.")
    forgotten: Forgotten
    compaction: Compaction = Field(
        description="`running`: the words are still on disk. `done`: the files are rewritten. `skipped`: the store "
        "will rewrite them."
    )
    remaining: list[str] = Field(description="Places that an erasure does not reach, and what to do there.")
