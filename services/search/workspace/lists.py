"""Saved lists, independent of HTTP: named queries that are run again, and which of their hits are new to the caller."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from similarity.company import utc_now
from similarity.errors import InvalidInput
from similarity.feedback.protocol import MAX_SEEN, Look, SavedList, Workspace
from similarity.search.errors import EncoderNotLoaded

from ..asking.question_schemas import (
    DEFAULT_EXPLAINED,
    MAX_EXPLAINED,
    BatchQuestion,
    Cursor,
    Explained,
    FormatQuery,
    Question,
)
from ..asking.ranking_schemas import Hit, Ranking
from ..asking.schemas import MAX_HITS
from ..asking.service import SearchService
from ..guards.callers import Caller
from ..wire import problems
from ..wire.bodies import Closed, CompanyId, Listed
from ..wire.problem_documents import Problem

# A name is a part of a URL: no slash, no control character, no space at its ends. Written out, because the meaning of
# \s differs between readers of a schema.
_INNER = r"[^/\x00-\x1f\x7f-\x9f]"
_OUTER = r"[^/\x00-\x20\x7f-\xa0]"
LIST_NAME = f"^{_OUTER}({_INNER}*{_OUTER})?$"
MAX_QUESTION_SHOWN = 20_000
MAX_QUESTION_CHARACTERS = 300_000
"""All lists are read whenever the page opens: 200 of this length take about a second."""
MAX_LISTS = 200
QUICKLY_ASKED = 10
"""At most this many queries of lists are not heavy work, unless one has free text."""
ONLY_IDS: Mapping[str, Any] = {"reasons": 0, "fields": ["id"]}


class ListQuestion(BatchQuestion):
    """The query that runs whenever a list is opened: that of `POST /similar`, without a cursor."""

    reasons: Explained = DEFAULT_EXPLAINED


class ListGiven(Closed):
    """A list to save."""

    question: ListQuestion


class ListRecord(BaseModel):
    """A saved list. All users share the lists, but have looks of their own."""

    name: str = Field(examples=["running shoes"])
    question: dict[str, Any] | None = Field(
        description="The query as in `POST /similar`, with ids of anchors and negatives. In `GET /lists` null if it "
        f"has more than {MAX_QUESTION_SHOWN:,} characters: get that list itself.",
        examples=[{"anchors": [{"company": "nike", "weight": 1.0}], "k": 25}],
    )
    saved_by: str = Field(description="Who saved it last.", examples=["ann"])
    saved_at: datetime
    looked_at: datetime | None = Field(default=None, description="Your last look at it; null if there was none.")
    new: int | None = Field(
        default=None,
        description="Number of hits that are new since your last look. Null without `new` in the request, or if the "
        "query fails: get the hits to see why.",
        examples=[3],
    )


class ListsQuery(Closed):
    """What to return of each list."""

    new: bool = Field(
        default=False, description="Also run all queries and count new hits; heavy work for more than ten lists."
    )


class Lists(BaseModel):
    """All saved lists, by name."""

    lists: list[ListRecord]


class ListHitsQuery(FormatQuery):
    """Which part of a list's hits to return."""

    k: int | None = Field(default=None, ge=1, le=MAX_HITS, description="Maximum number of hits; by default as saved.")
    reasons: int | None = Field(
        default=None, ge=0, le=MAX_EXPLAINED, description="How many to explain; by default as saved."
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
    """The hits that were seen."""

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


@dataclass(frozen=True, slots=True)
class ListsService:
    """Stores lists in `workspace` and runs their queries with `search`. `clock`: returns the current time.

    `before_much`: called before many queries are run at once; it may raise.
    """

    search: SearchService
    workspace: Workspace
    clock: Callable[[], datetime] = utc_now
    before_much: Callable[[], None] = lambda: None

    def save(self, name: str, question: ListQuestion, caller: Caller) -> tuple[ListRecord, bool]:
        """Save a query under a name, replacing an earlier one. Return the list, and whether the name is new.

        Raises:
            UnknownCompany, AmbiguousCompany: an anchor or negative matches no company, or several.
            Problem: there are too many lists.
            InvalidInput: the name is invalid, or the query is too long.
        """
        if set(name) == {"."}:
            raise InvalidInput(
                "dots alone cannot name a list, because URLs give them another meaning; choose another name"
            )
        kept = self._with_ids(question)
        if (characters := len(json.dumps(kept))) > MAX_QUESTION_CHARACTERS:
            raise InvalidInput(
                f"the query has {characters:,} characters as JSON, and a saved one has at most "
                f"{MAX_QUESTION_CHARACTERS:,}; exclude fewer companies, or by their ids"
            )
        names = {saved.name for saved in self.workspace.lists()}
        if name not in names and len(names) >= MAX_LISTS:
            raise Problem(problems.TOO_MANY_LISTS, f"there are {len(names)} lists, which is the limit")
        saved = SavedList(name=name, question=kept, saved_by=caller.name, saved_at=self.clock())
        is_new = self.workspace.save_list(saved)
        return self._record(saved, caller), is_new

    def lists(self, caller: Caller, *, count_new: bool = False) -> Lists:
        """Return all lists by name, without very long queries. `count_new`: run each query and count the new hits."""
        looks = {look.list_name: look for look in self.workspace.looks(caller.name)}
        lists = self.workspace.lists()
        records = [_record(saved, looks.get(saved.name)) for saved in lists]
        if count_new:
            if len(lists) > QUICKLY_ASKED or any(_has_words(saved) for saved in lists):
                self.before_much()
            for record, saved in zip(records, lists, strict=True):
                record.new = self._count_new(saved, looks.get(saved.name))
        for record in records:
            if len(json.dumps(record.question)) > MAX_QUESTION_SHOWN:
                record.question = None
        return Lists(lists=records)

    def saved_list(self, name: str, caller: Caller) -> ListRecord:
        """Return the list of this name.

        Raises:
            UnknownList: there is none.
        """
        return self._record(self.workspace.saved_list(name), caller)

    def remove(self, name: str) -> None:
        """Delete a list for all users.

        Raises:
            UnknownList: there is none of this name.
        """
        self.workspace.remove_list(name)

    def hits(self, name: str, query: ListHitsQuery, caller: Caller) -> ListRanking:
        """Return the ranking of a list's query, with the hits marked that are new since the caller's last look.

        Raises:
            UnknownList: there is no such list.
            Problem: its query cannot be answered.
        """
        changes = query.model_dump(include={"k", "reasons", "cursor"}, exclude_none=True)
        ranking = self._asked(self.workspace.saved_list(name), changes)
        look = self.workspace.last_look(name, caller.name)
        members = dict(ranking)
        members["hits"] = [ListHit(**dict(hit), new=is_new) for hit, is_new in _with_news(ranking, look)]
        return ListRanking(**members, name=name, looked_at=look.at if look else None)

    def look(self, name: str, given: LookGiven, caller: Caller) -> LookRecord:
        """Store what the caller has seen: the ids in the request, by default the current hits.

        Raises:
            UnknownList: there is no such list.
            Problem: its query cannot be answered.
        """
        saved = self.workspace.saved_list(name)
        ids = self._now(saved) if given.ids is None else given.ids
        look = Look(list_name=name, user=caller.name, at=self.clock(), seen=tuple(dict.fromkeys(ids))[:MAX_SEEN])
        self.workspace.add_look(look)
        return LookRecord(name=name, looked_at=look.at, seen=len(look.seen))

    def _count_new(self, saved: SavedList, look: Look | None) -> int | None:
        try:
            ranking = self._asked(saved, ONLY_IDS)
        except (Problem, InvalidInput, EncoderNotLoaded):
            return None
        return sum(is_new for _, is_new in _with_news(ranking, look))

    def _now(self, saved: SavedList) -> Sequence[str]:
        hits = self._asked(saved, ONLY_IDS).hits
        return [company_id for hit in hits for company_id in (hit.company["id"], *hit.duplicates)]

    def _asked(self, saved: SavedList, changes: Mapping[str, Any]) -> Ranking:
        try:
            question = Question.model_validate({**saved.question, **changes})
        except ValidationError as error:
            reason = f"the query of {saved.name!r} has a part that this release does not know; save the list again"
            raise Problem(problems.UNUSABLE_LIST, reason) from error
        return self.search.rank(question)

    def _with_ids(self, question: ListQuestion) -> dict[str, Any]:
        """Return the query to store: with ids, so that a list keeps its companies when their names change."""
        kept = question.model_dump(mode="json", exclude_none=True)
        for asked in (*kept["anchors"], *kept["negatives"]):
            if "company" in asked:
                asked["company"] = self.search.company(asked["company"], exact=True).company.id
        return kept

    def _record(self, saved: SavedList, caller: Caller) -> ListRecord:
        return _record(saved, self.workspace.last_look(saved.name, caller.name))


def _record(saved: SavedList, look: Look | None) -> ListRecord:
    return ListRecord(**asdict(saved), looked_at=look.at if look else None)


def _has_words(saved: SavedList) -> bool:
    question = saved.question
    return any(asked.get("text") for asked in (*question.get("anchors", ()), *question.get("negatives", ())))


def _with_news(ranking: Ranking, look: Look | None) -> Iterator[tuple[Hit, bool]]:
    """Yield each hit, and whether neither it nor a duplicate of it was seen at the last look."""
    seen = frozenset(look.seen) if look else frozenset()
    for hit in ranking.hits:
        yield hit, seen.isdisjoint((hit.company["id"], *hit.duplicates))
