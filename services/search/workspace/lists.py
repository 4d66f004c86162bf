"""Saved lists: a question with a name, asked again, and which of its hits are new to the caller. Without HTTP."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from similarity.company import utc_now
from similarity.errors import InvalidInput
from similarity.feedback.protocol import MAX_SEEN, Look, SavedList, UnknownList, Workspace
from similarity.search.errors import EncoderNotLoaded

from ..asking.question_schemas import Question
from ..asking.ranking_schemas import Hit, Ranking
from ..asking.service import SearchService
from ..guards.callers import Caller
from ..wire import problems
from ..wire.problem_documents import Problem
from .lists_schemas import (
    MAX_QUESTION_SHOWN,
    ListHit,
    ListHitsQuery,
    ListQuestion,
    ListRanking,
    ListRecord,
    Lists,
    LookGiven,
    LookRecord,
)

MAX_LISTS = 200
QUICKLY_ASKED = 10
"""So many questions of lists at once are no heavy work, as long as none is in free words."""
ONLY_IDS: Mapping[str, Any] = {"reasons": 0, "fields": ["id"]}


@dataclass(frozen=True, slots=True)
class ListsService:
    """Keeps lists in `workspace` and asks `search` their questions. `clock` is the service's own.

    `before_much` is called before many questions are asked at once, and may raise instead.
    """

    search: SearchService
    workspace: Workspace
    clock: Callable[[], datetime] = utc_now
    before_much: Callable[[], None] = lambda: None

    def save(self, name: str, question: ListQuestion, caller: Caller) -> tuple[ListRecord, bool]:
        """Saves a question under a name, in place of what was there; and whether the name is new.

        Raises:
            Problem: an anchor or negative is unknown or goes by a contested name, or there are too many lists.
            InvalidInput: the name cannot be one.
        """
        if set(name) == {"."}:
            raise InvalidInput("a list cannot be called by dots alone, which mean another thing in an address")
        names = {saved.name for saved in self.workspace.lists()}
        if name not in names and len(names) >= MAX_LISTS:
            raise Problem(problems.TOO_MANY_LISTS, f"there are {len(names)} lists, which is the most there may be")
        saved = SavedList(name=name, question=self._with_ids(question), saved_by=caller.name, saved_at=self.clock())
        is_new = self.workspace.save_list(saved)
        return self._record(saved, caller), is_new

    def lists(self, caller: Caller, *, count_new: bool = False) -> Lists:
        """All lists, by name; very long questions are left out. With `count_new` the question of each is asked."""
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
        """The list of this name.

        Raises:
            Problem: there is none.
        """
        return self._record(self._saved(name), caller)

    def remove(self, name: str) -> None:
        """Removes a list, for everybody.

        Raises:
            Problem: there is none of this name.
        """
        try:
            self.workspace.remove_list(name)
        except UnknownList as error:
            raise Problem(problems.UNKNOWN_LIST, str(error)) from error

    def hits(self, name: str, query: ListHitsQuery, caller: Caller) -> ListRanking:
        """The answer to a list's question now, and what of it is new since the caller's last look.

        Raises:
            Problem: there is no such list, or its question cannot be answered.
        """
        changes = query.model_dump(include={"k", "reasons", "cursor"}, exclude_none=True)
        ranking = self._asked(self._saved(name), changes)
        look = self.workspace.last_look(name, caller.name)
        members = dict(ranking)
        members["hits"] = [ListHit(**dict(hit), new=is_new) for hit, is_new in _with_news(ranking, look)]
        return ListRanking(**members, name=name, looked_at=look.at if look else None)

    def look(self, name: str, given: LookGiven, caller: Caller) -> LookRecord:
        """Remembers what the caller saw: the ids they name, else the hits as they are now.

        Raises:
            Problem: there is no such list, or its question cannot be answered.
        """
        saved = self._saved(name)
        ids = self._now(saved) if given.ids is None else given.ids
        look = Look(list_name=name, user=caller.name, at=self.clock(), seen=tuple(dict.fromkeys(ids))[:MAX_SEEN])
        try:
            self.workspace.add_look(look)
        except UnknownList as error:
            raise Problem(problems.UNKNOWN_LIST, str(error)) from error
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
            reason = f"the question of {saved.name!r} has a part that this release does not know; save the list anew"
            raise Problem(problems.UNUSABLE_LIST, reason) from error
        return self.search.rank(question)

    def _saved(self, name: str) -> SavedList:
        try:
            return self.workspace.saved_list(name)
        except UnknownList as error:
            raise Problem(problems.UNKNOWN_LIST, str(error)) from error

    def _with_ids(self, question: ListQuestion) -> dict[str, Any]:
        """The question as it is kept: by id, so that a list still means the same company when names change hands."""
        kept = question.model_dump(mode="json", exclude_none=True)
        for asked in (*kept["anchors"], *kept["negatives"]):
            if "company" in asked:
                asked["company"] = self.search.company(asked["company"], exact=True).company.id
        return kept

    def _record(self, saved: SavedList, caller: Caller) -> ListRecord:
        return _record(saved, self.workspace.last_look(saved.name, caller.name))


def _record(saved: SavedList, look: Look | None) -> ListRecord:
    return ListRecord(
        name=saved.name,
        question=dict(saved.question),
        saved_by=saved.saved_by,
        saved_at=saved.saved_at,
        looked_at=look.at if look else None,
    )


def _has_words(saved: SavedList) -> bool:
    question = saved.question
    return any(asked.get("text") for asked in (*question.get("anchors", ()), *question.get("negatives", ())))


def _with_news(ranking: Ranking, look: Look | None) -> Iterator[tuple[Hit, bool]]:
    """Each hit, and whether neither it nor a duplicate of it was there at the look."""
    seen = frozenset(look.seen) if look else frozenset()
    for hit in ranking.hits:
        yield hit, seen.isdisjoint((hit.company["id"], *hit.duplicates))
