"""Requests and responses of saved lists."""

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from similarity.feedback.protocol import MAX_SEEN

from ..asking.question_schemas import (
    DEFAULT_EXPLAINED,
    MAX_EXCLUDED,
    MAX_EXPLAINED,
    BatchQuestion,
    Cursor,
    Explained,
    FormatQuery,
    Reference,
)
from ..asking.ranking_schemas import Hit, Ranking
from ..asking.schemas import MAX_HITS
from ..wire.bodies import Closed, CompanyId, Listed, example
from ..wire.problem_documents import pattern_of

# A name is a part of a URL: no slash, no control character, no space at its ends. The blanks are written out, because
# the meaning of \s differs between readers of a schema.
_INNER = r"[^/\x00-\x1f\x7f-\x9f]"
_OUTER = r"[^/\x00-\x20\x7f-\xa0]"
LIST_NAME = pattern_of(
    f"^{_OUTER}({_INNER}*{_OUTER})?$", "must have no slash, no control character, and no space at its ends"
)
MAX_QUESTION_SHOWN = 5_000


class ListQuestion(BatchQuestion):
    """The query that runs whenever a list is opened: that of `POST /similar`, without a cursor."""

    reasons: Explained = DEFAULT_EXPLAINED


class ListGiven(Closed):
    """A list to save: exactly one of `question` and `companies`."""

    model_config = example(question={"anchors": [{"company": "nike"}]})

    question: ListQuestion | None = None
    companies: Listed[Reference] | None = Field(
        default=None,
        max_length=MAX_EXCLUDED,
        description="The companies of a shortlist: ids, domains, names or aliases, without typing errors.",
        examples=[["adidas", "about.puma.com"]],
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.question is None) == (self.companies is None):
            raise PydanticCustomError("one_of_both", "give either question or companies")
        return self


class CompaniesChange(Closed):
    """Companies to add to a shortlist and to remove from it."""

    add: Listed[Reference] = Field(
        default=[], max_length=MAX_EXCLUDED, description="Ids, domains, names or aliases.", examples=[["asics"]]
    )
    remove: Listed[Reference] = Field(
        default=[], max_length=MAX_EXCLUDED, description="The same; of a deleted company its id.", examples=[["nike"]]
    )


class ListRecord(BaseModel):
    """A saved list: a query or companies. All users share the lists, but have looks of their own."""

    name: str = Field(examples=["running shoes"])
    question: dict[str, Any] | None = Field(
        default=None,
        description="The query as in `POST /similar`, with ids of anchors and negatives; null for a shortlist. In "
        f"`GET /lists` null if it has more than {MAX_QUESTION_SHOWN:,} characters: get that list itself.",
        examples=[{"anchors": [{"company": "nike", "weight": 1.0}], "k": 25}],
    )
    companies: list[str] | None = Field(
        default=None,
        description="The ids on a shortlist, in the order in which they were added; null for a query. In `GET /lists` "
        "null if they are longer than that.",
        examples=[None],
    )
    size: int | None = Field(default=None, description="Number of companies on a shortlist; null for a query.")
    saved_by: str = Field(description="The user who saved it last.", examples=["ann"])
    saved_at: datetime
    looked_at: datetime | None = Field(default=None, description="Your last look at it; null if there was none.")
    new: int | None = Field(
        default=None,
        description="Number of hits that are new since your last look. Null without `new` in the request, if the query "
        "fails (get the hits to see why), or if the queries before it took more than 10 seconds.",
        examples=[3],
    )


class ListsQuery(Closed):
    """The parameters of a request for all lists."""

    new: bool = Field(
        default=False, description="Also run all queries and count new hits; heavy work beyond ten lists or a second."
    )


class Lists(BaseModel):
    """All saved lists, by name."""

    lists: list[ListRecord]


class ListHitsQuery(FormatQuery):
    """The parameters of a request for the hits of a list."""

    k: int | None = Field(default=None, ge=1, le=MAX_HITS, description="Maximum number of hits; by default as saved.")
    reasons: int | None = Field(
        default=None, ge=0, le=MAX_EXPLAINED, description="Number of hits to explain; by default as saved."
    )
    cursor: Cursor | None = Field(default=None, description="`next_cursor` of the page before.")


class ListHit(Hit):
    """One competitor, and whether it is new."""

    new: bool = Field(description="Whether it was not among the hits of your last look; true if there was none.")


class ListRanking(Ranking):
    """The current ranking of a list's query."""

    name: str = Field(description="The list's name.", examples=["running shoes"])
    looked_at: datetime | None = Field(description="Your last look at it; null if there was none.")
    hits: list[ListHit]  # type: ignore[assignment]  # a list cannot be narrowed, but nobody adds to this one


class LookGiven(Closed):
    """The hits that a user has seen."""

    ids: Listed[CompanyId] | None = Field(
        default=None,
        max_length=MAX_SEEN,
        description="All hits that were seen, replacing those of the last look; by default the current hits.",
    )


class LookRecord(BaseModel):
    """A stored look."""

    name: str = Field(examples=["running shoes"])
    looked_at: datetime
    seen: int = Field(description="Number of hits that are no longer new to you.")
