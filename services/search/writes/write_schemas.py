"""What writes take and answer."""

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from similarity.company import (
    ATTRIBUTE_NAME_PATTERN,
    MAX_DESCRIPTION_CHARACTERS,
    MAX_LIST_ITEMS,
    MAX_NAME_CHARACTERS,
    AttributeValue,
)
from similarity.index.ledger import Compaction, ErasureState

from ..wire.bodies import CompanyId, Listed

MAX_BULK_LINES = 10_000
MAX_WEBSITE_CHARACTERS = 2_048
MAX_TIME_CHARACTERS = 64
EVENT_TIME = (
    "When this became true, ISO 8601 with an offset or `Z`; not more than 5 minutes ahead. A change with an event time "
    "is applied only if it is newer than what is stored. Without it the time of receipt counts, or, if a later version "
    "is stored, the next version after that."
)
STATUS = "Address that tells what became of an accepted write; left out otherwise."

AttributeName = Annotated[str, StringConstraints(pattern=f"^{ATTRIBUTE_NAME_PATTERN.pattern}$")]
Named = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARACTERS, pattern=r"\S")]
Short = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARACTERS)]
Time = Annotated[str, StringConstraints(max_length=MAX_TIME_CHARACTERS)]


class CompanyBody(BaseModel):
    """A company as it is written: whole, so a member that is left out becomes empty. null is the same as left out."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: CompanyId | None = Field(default=None, description="If given, the id in the path again.", examples=["acme"])
    name: Named = Field(examples=["Acme, Inc."])
    description: str = Field(
        pattern=r"\S",
        max_length=MAX_DESCRIPTION_CHARACTERS,
        description="What the company does, in its own words; competitors are found by this.",
        examples=["Makes anvils and sells them to smiths."],
    )
    aliases: Listed[Named] | None = Field(
        default=None, max_length=MAX_LIST_ITEMS, description="Other names it goes by."
    )
    domain: Annotated[str, StringConstraints(max_length=MAX_WEBSITE_CHARACTERS)] | None = Field(
        default=None,
        description="Its website; stored as the bare host name. One that holds no host name is left out with a "
        "warning.",
        examples=["https://www.acme.com/about"],
    )
    country: Short | None = Field(default=None, examples=["Germany"])
    industry: Short | None = Field(default=None, examples=["Tools"])
    tags: Listed[Named] | None = Field(default=None, max_length=MAX_LIST_ITEMS)
    attributes: dict[AttributeName, AttributeValue] | None = Field(
        default=None,
        max_length=MAX_LIST_ITEMS,
        description="Free facts that filters can name: text, finite numbers, true or false.",
        examples=[{"employees": 12}],
    )
    event_time: Time | None = Field(default=None, description=EVENT_TIME, examples=["2026-01-31T12:00:00Z"])


class DeletionLine(BaseModel):
    """A line of a bulk upload that deletes a company; whatever else it says is ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)

    id: CompanyId
    deleted: bool
    event_time: Time | None = None


class CompanyLine(CompanyBody):
    """A line of a bulk upload that writes a company."""

    id: CompanyId = Field(examples=["acme"])
    deleted: bool | None = None


class Outcome(StrEnum):
    """What became of a write."""

    APPLIED = "applied"
    """It is stored, durably, in every generation."""
    UNCHANGED = "unchanged"
    """Exactly this was stored before: an earlier attempt succeeded."""
    SUPERSEDED = "superseded"
    """Something newer is stored; this changed nothing."""
    ACCEPTED = "accepted"
    """Kafka holds it durably; it is stored once the stream has read it."""
    REJECTED = "rejected"
    """It cannot be stored as it is; `reason` says why."""
    FAILED = "failed"
    """The store did not take it in time; it may be there or not: send it again, which is harmless."""


class WriteAnswer(BaseModel):
    """What became of one write."""

    id: str = Field(examples=["acme"])
    outcome: Outcome = Field(
        description="`applied`: stored. `unchanged`: exactly this was stored before. `superseded`: something newer is "
        "stored, nothing was changed. `accepted`: Kafka holds it, the stream will store it.",
        examples=["applied"],
    )
    version: int = Field(
        description="Of this write: twice its event time in microseconds since 1970, and 1 more for a delete. Without "
        "an event time it may be higher.",
        examples=[3539707200000000],
    )
    warnings: list[str] = Field(default=[], description="What was left out, or what to know about the outcome.")
    status: str | None = Field(default=None, description=STATUS, examples=["/companies/acme/writes/3539707200000000"])


class WriteStatus(BaseModel):
    """How far an accepted write is."""

    id: str = Field(examples=["acme"])
    version: int = Field(description="Of the write that was asked about.", examples=[3539707200000000])
    outcome: Outcome = Field(
        description="`accepted`: an older version is stored, or none. `applied`: this version is stored. "
        "`superseded`: a newer version is stored; this one was replaced by it, or came too late.",
        examples=["applied"],
    )
    stored: int | None = Field(description="The stored version, null if there is none.", examples=[3539707200000000])


class BulkResult(BaseModel):
    """What became of one line of a bulk upload."""

    line: int = Field(description="The line's number; the first is 1. Blank lines are counted, but not answered.")
    id: str | None = Field(description="The company's id; null where the line does not say it.")
    outcome: Outcome
    reason: str = Field(default="", description="Why it was not taken, or what was left out.")
    status: str | None = Field(default=None, description=STATUS)


class ErasedGeneration(BaseModel):
    """What the erasure did in one generation."""

    generation: str = Field(examples=["2026-01-31"])
    outcome: Outcome
    reason: str = ""


class Forgotten(BaseModel):
    """How much was removed of what people had added about the company; counted when the lists have been searched."""

    events: int = Field(default=0, description="Feedback about it.")
    lists: int = Field(
        default=0,
        description="Saved lists that named it: changed, renamed where their name did, removed where it was their only "
        "anchor.",
    )
    looks: int = Field(default=0, description="Memories of what somebody last saw of a list.")
    notes: int = Field(default=0, description="Notes on other companies that named it; they are empty now.")


class ErasureAnswer(BaseModel):
    """How far an erasure is. Nobody finds the company any more if `erased` is true."""

    id: str
    state: ErasureState = Field(
        description="`running`: accepted; it goes on in the background, also after a restart. `done`: complete. "
        "`failed`: it ended incomplete, erase again."
    )
    problem: str = Field(description="Why it is not complete; empty if there is no trouble.")
    erased: bool = Field(description="Whether every generation has taken the deletion.")
    generations: list[ErasedGeneration]
    published: bool = Field(description="Whether a delete was written to Kafka too.")
    forgotten: Forgotten
    compaction: Compaction = Field(
        description="`running`: the words are still on the disk. `done`: its files are rewritten. `skipped`: the "
        "command was told to leave that to the store."
    )
    remaining: list[str] = Field(description="What an erasure does not reach, and what to do there.")
