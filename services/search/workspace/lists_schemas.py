"""What saved lists take and answer."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from similarity.company import ID_PATTERN
from similarity.feedback.protocol import MAX_SEEN

from ..asking.question_schemas import DEFAULT_EXPLAINED, MAX_EXPLAINED, BatchQuestion, Cursor, FormatQuery
from ..asking.ranking_schemas import Hit, Ranking
from ..asking.schemas import MAX_HITS
from ..wire.bodies import Listed

# A name is a part of an address: no slash, no control character, no space at its ends. Written out, because
# what \s means differs between the readers of a schema.
_INNER = r"[^/\x00-\x1f\x7f-\x9f]"
_OUTER = r"[^/\x00-\x20\x7f-\xa0]"
LIST_NAME = f"^{_OUTER}({_INNER}*{_OUTER})?$"
MAX_QUESTION_SHOWN = 20_000

CompanyId = Annotated[str, StringConstraints(pattern=f"^{ID_PATTERN.pattern}$")]


class ListQuestion(BatchQuestion):
    """The question that a list asks again whenever it is opened: that of `POST /similar`, without a cursor."""

    reasons: int = Field(
        default=DEFAULT_EXPLAINED,
        ge=0,
        le=MAX_EXPLAINED,
        description="For how many of the first hits the phrases that carry the match are looked for.",
    )


class ListGiven(BaseModel):
    """A list to save."""

    model_config = ConfigDict(extra="forbid")

    question: ListQuestion


class ListRecord(BaseModel):
    """A saved list. Lists are shared by all who may use the service; looks are everyone's own."""

    name: str = Field(examples=["running shoes"])
    question: dict[str, Any] | None = Field(
        description="As `POST /similar` takes it, with ids for the anchors and negatives. Among all lists, null where "
        f"it has more than {MAX_QUESTION_SHOWN:,} characters: ask for that list itself.",
        examples=[{"anchors": [{"company": "nike", "weight": 1.0}], "k": 25}],
    )
    saved_by: str = Field(description="Who saved it last.", examples=["ann"])
    saved_at: datetime
    looked_at: datetime | None = Field(default=None, description="Your last look at it; null if there was none.")
    new: int | None = Field(
        default=None,
        description="How many of its hits were not there at your last look. Null where that was not asked for, or its "
        "question cannot be answered just now: ask for its hits to hear why.",
        examples=[3],
    )


class ListsQuery(BaseModel):
    """What to say of each list."""

    model_config = ConfigDict(extra="forbid")

    new: bool = Field(
        default=False, description="Also ask every list's question and count what is new; more than ten are heavy."
    )


class Lists(BaseModel):
    """All saved lists, by name."""

    lists: list[ListRecord]


class ListHitsQuery(FormatQuery):
    """Which part of a list's hits to show."""

    k: int | None = Field(default=None, ge=1, le=MAX_HITS, description="How many at most; as saved without it.")
    reasons: int | None = Field(
        default=None, ge=0, le=MAX_EXPLAINED, description="For how many to look for phrases; as saved without it."
    )
    cursor: Cursor | None = Field(default=None, description="`next_cursor` of the page before.")


class ListHit(Hit):
    """One competitor, and whether it is new."""

    new: bool = Field(description="Whether it was not among the hits of your last look; true if there was none.")


class ListRanking(Ranking):
    """The answer to a list's question now."""

    name: str = Field(description="The list's name.", examples=["running shoes"])
    looked_at: datetime | None = Field(description="Your last look at it; null if there was none.")
    hits: list[ListHit]  # type: ignore[assignment]  # a list cannot be narrowed, but nobody adds to this one


class LookGiven(BaseModel):
    """What was seen."""

    model_config = ConfigDict(extra="forbid")

    ids: Listed[CompanyId] | None = Field(
        default=None,
        max_length=MAX_SEEN,
        description="All hits that were seen, in place of those of the look before; without it, those there are now.",
    )


class LookRecord(BaseModel):
    """What is remembered of a look."""

    name: str = Field(examples=["running shoes"])
    looked_at: datetime
    seen: int = Field(description="How many hits are no longer new to you.")
