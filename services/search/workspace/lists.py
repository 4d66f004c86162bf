"""Saved lists, without the routes: named queries that are run again, which of their hits are new, and shortlists."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from similarity.company import utc_now
from similarity.errors import InvalidInput
from similarity.feedback.protocol import MAX_SEEN, Look, SavedList, UnknownList, Workspace
from similarity.feedback.rules import retry_if_erased
from similarity.feedback.shortlists import WrongKindOfList, companies_of
from similarity.search.errors import EncoderNotLoaded
from similarity.search.names.resolver import Resolver, without_description
from similarity.search.queries.level_filters import with_levels
from similarity.search.searcher import retry_if_retired

from ..asking.question_schemas import MAX_EXCLUDED, Question
from ..asking.ranking_schemas import Hit, Ranking
from ..asking.service import SearchService
from ..guards.callers import Caller
from ..wire import problems
from ..wire.problem_documents import Problem
from .lists_schemas import (
    MAX_QUESTION_SHOWN,
    CompaniesChange,
    ListGiven,
    ListHit,
    ListHitsQuery,
    ListQuestion,
    ListRanking,
    ListRecord,
    Lists,
    LookGiven,
    LookRecord,
)

MAX_QUESTION_CHARACTERS = 300_000
"""Of one list, as JSON."""
MAX_LISTS = 200
MAX_LONG_CHARACTERS = 2_000_000
"""Of all lists with more than MAX_QUESTION_SHOWN characters: 50 million made each look at the lists take 0.7 s."""
QUICKLY_ASKED = 10
"""Running the queries of more lists than this is heavy work. A query that needs the encoder always is."""
QUICK_SECONDS = 1.0
"""Queries of lists that take longer count as heavy, too: nine with 9,500 exclusions each took 15 s."""
SECONDS_TO_COUNT = 10.0
"""Time limit for counting new hits: running 200 saved queries may take an hour."""
ONLY_IDS: Mapping[str, Any] = {"reasons": 0, "fields": ["id"]}
REMOVED_MEMBERS = frozenset({"mode"})
"""Members of queries that no longer exist. Earlier releases stored `mode` (hybrid search) in every saved query."""


@dataclass(frozen=True, slots=True)
class ListsService:
    """Stores lists in `workspace` and runs their queries with `search`. `clock`: returns the current time.

    `seconds`: a monotonic clock, for the time limit of counting new hits. `before_heavy_work`: called before many
    queries are run at once, or before further queries after QUICK_SECONDS; it may raise.
    """

    search: SearchService
    workspace: Workspace
    clock: Callable[[], datetime] = utc_now
    seconds: Callable[[], float] = time.monotonic
    before_heavy_work: Callable[[], None] = lambda: None

    @retry_if_erased
    def save(self, name: str, given: ListGiven, caller: Caller, *, replace: bool) -> tuple[ListRecord, bool]:
        """Save a query or companies under a name. Return the list, and whether it is new.

        `replace`: whether an earlier list of the name is replaced.

        Raises:
            UnknownCompany, AmbiguousCompany: a reference to a company matches none, or several.
            ListExists: there is a list of this name, and `replace` is false.
            UnknownList, WrongKindOfList: a list that the query excludes does not exist, or is a query.
            Problem: there are too many lists, or too many long ones.
            InvalidInput: the name is invalid, or the list is too long.
            ErasedMeanwhile: companies were erased meanwhile, at each try.
        """
        mark = self.workspace.erasure_mark()  # before the companies are looked up
        if set(name) == {"."}:
            raise InvalidInput(
                "dots alone cannot name a list, because URLs give them another meaning; choose another name"
            )
        if given.question is not None:
            kept = self._with_ids(given.question)
        else:
            kept = {"companies": self.search.ids_of(given.companies or ())}
        others = self._lengths_of_others(name)
        if len(others) >= MAX_LISTS:
            raise Problem(
                problems.TOO_MANY_LISTS, f"there are {len(others)} lists already, which is the limit; delete one first"
            )
        _check_length(kept, others)
        saved = SavedList(name=name, question=kept, saved_by=caller.name, saved_at=self.clock())
        is_new = self.workspace.save_list(saved, since=mark, replace=replace)
        return self._record(saved, caller), is_new

    @retry_if_erased
    def change(self, name: str, change: CompaniesChange, caller: Caller) -> ListRecord:
        """Add companies to a shortlist and remove others; return it.

        Raises:
            UnknownList, WrongKindOfList: there is no such list, or it is a query.
            UnknownCompany, AmbiguousCompany: a company to add or to remove is not known, or several go by that name.
            InvalidInput: the list becomes too long.
            Problem: there are too many long lists.
            ErasedMeanwhile: companies were erased meanwhile, at each try.
        """
        mark = self.workspace.erasure_mark()
        added, removed = self.search.ids_of(change.add), self._ids_to_remove(name, change.remove)
        others = self._lengths_of_others(name)

        def changed(saved: SavedList) -> SavedList:
            ids = [each for each in dict.fromkeys((*companies_of(saved), *added)) if each not in removed]
            kept = {"companies": ids}
            is_longer = len(json.dumps(kept)) > len(json.dumps(saved.question))
            _check_length(kept, others if is_longer else ())
            return replace(saved, question=kept, saved_by=caller.name, saved_at=self.clock())

        return self._record(self.workspace.change_list(name, changed, since=mark), caller)

    def _lengths_of_others(self, name: str) -> list[int]:
        return [length for other, length in self.workspace.list_lengths().items() if other != name]

    def _ids_to_remove(self, name: str, references: Sequence[str]) -> frozenset[str]:
        """Return the ids of these companies. What is on the list is an id, also if another company has that name."""
        listed = frozenset(companies_of(self.workspace.saved_list(name)))
        others = [each for each in references if each not in listed]
        known, deleted = self.search.known(others)
        gone = {each for each in deleted if each not in known}
        return frozenset([*references, *self.search.ids_of([each for each in others if each not in gone])])

    def lists(self, caller: Caller, *, count_new: bool = False) -> Lists:
        """Return all lists, sorted by name; very long queries and shortlists are left out of them.

        `count_new`: run each query and count the new hits, until SECONDS_TO_COUNT are over.
        """
        looks = {look.list_name: look for look in self.workspace.looks(caller.name)}
        lists = self.workspace.lists()
        records = [_record(saved, looks.get(saved.name)) for saved in lists]
        if count_new:
            if len(lists) > QUICKLY_ASKED or any(_needs_encoder(saved) for saved in lists):
                self.before_heavy_work()
            started = self.seconds()
            for record, saved in zip(records, lists, strict=True):
                taken = self.seconds() - started
                if taken > SECONDS_TO_COUNT:
                    break
                if taken > QUICK_SECONDS:
                    self.before_heavy_work()
                record.new = self._count_new(saved, looks.get(saved.name))
        lengths = self.workspace.list_lengths()
        for record in records:
            if lengths.get(record.name, 0) > MAX_QUESTION_SHOWN:
                record.question = record.companies = None
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
            UnknownList, WrongKindOfList: there is no such list, or it is a shortlist.
            Problem: its query cannot be answered.
        """
        changes = query.model_dump(include={"k", "reasons", "cursor"}, exclude_none=True)
        ranking = self._run(self.workspace.saved_list(name), changes)
        look = self.workspace.last_look(name, caller.name)
        members = dict(ranking)
        members["hits"] = [ListHit(**dict(hit), new=is_new) for hit, is_new in _with_news(ranking, look)]
        return ListRanking(**members, name=name, looked_at=look.at if look else None)

    def question(self, name: str) -> Question:
        """Return the query of a list. Raises what `hits` raises."""
        return _question(self.workspace.saved_list(name), {})

    @retry_if_erased
    def look(self, name: str, given: LookGiven, caller: Caller) -> LookRecord:
        """Store what the caller has seen: the ids of stored companies in the request, by default the current hits.

        Raises:
            UnknownList, WrongKindOfList: there is no such list, or it is a shortlist.
            Problem: its query cannot be answered.
            ErasedMeanwhile: companies were erased meanwhile, at each try.
        """
        mark = self.workspace.erasure_mark()
        saved = self.workspace.saved_list(name)
        ids = self._current_ids(saved) if given.ids is None else self._stored(given.ids)
        look = Look(list_name=name, user=caller.name, at=self.clock(), seen=tuple(dict.fromkeys(ids))[:MAX_SEEN])
        self.workspace.add_look(look, since=mark)
        return LookRecord(name=name, looked_at=look.at, seen=len(look.seen))

    def _count_new(self, saved: SavedList, look: Look | None) -> int | None:
        try:
            ranking = self._run(saved, ONLY_IDS)
        except (Problem, InvalidInput, EncoderNotLoaded, UnknownList, WrongKindOfList):
            return None
        return sum(is_new for _, is_new in _with_news(ranking, look))

    def _current_ids(self, saved: SavedList) -> Sequence[str]:
        hits = self._run(saved, ONLY_IDS).hits
        return [company_id for hit in hits for company_id in (hit.company["id"], *hit.duplicates)]

    def _stored(self, ids: Sequence[str]) -> list[str]:
        """Return only the ids of stored companies: an erasure could not find other texts."""

        def run_once() -> list[str]:
            live = self.search.searcher.live()
            resolver = Resolver(self.search.searcher.index, live, exact=True, shorten=without_description)
            stored = resolver.stored(ids)
            return [each for each in ids if each in stored]

        return retry_if_retired(run_once)

    def _run(self, saved: SavedList, changes: Mapping[str, Any]) -> Ranking:
        return self.search.rank(_question(saved, changes), by_id=True)

    def _with_ids(self, question: ListQuestion) -> dict[str, Any]:
        """Return the query to store: with ids, so that a list keeps its companies when their names change."""
        asked = self.search.asked(question)  # refuses lists to exclude that do not exist
        searcher = self.search.searcher
        with_levels(searcher.index, searcher.live().name, asked.filters)  # refuses unknown levels
        kept = question.model_dump(mode="json", exclude_none=True)
        for anchor in (*kept["anchors"], *kept["negatives"]):
            if "company" in anchor:
                [anchor["company"]] = self.search.ids_of([anchor["company"]])
        known, deleted = self.search.known(kept["exclude"])
        excluded: list[str] = []
        for each in kept["exclude"]:  # where ids have changed, both the old id and the company that goes by it now
            excluded += [each] if each in deleted or each not in known else []
            excluded += [known[each].id] if each in known else []
        kept["exclude"] = list(dict.fromkeys(excluded))
        return kept

    def _record(self, saved: SavedList, caller: Caller) -> ListRecord:
        return _record(saved, self.workspace.last_look(saved.name, caller.name))


def _record(saved: SavedList, look: Look | None) -> ListRecord:
    companies = saved.companies
    return ListRecord(
        name=saved.name,
        question=_question_of(saved) if companies is None else None,
        companies=None if companies is None else list(companies),
        size=None if companies is None else len(companies),
        saved_by=saved.saved_by,
        saved_at=saved.saved_at,
        looked_at=look.at if look else None,
    )


def _question(saved: SavedList, changes: Mapping[str, Any]) -> Question:
    if saved.companies is not None:
        raise WrongKindOfList(
            f"the list {saved.name!r} holds companies, not a query; get them from /lists/NAME/companies"
        )
    try:
        return Question.model_validate({**_question_of(saved), **changes})
    except ValidationError as error:
        reason = f"the query of {saved.name!r} has a part that this release does not know; save the list again"
        raise Problem(problems.UNUSABLE_LIST, reason) from error


def _question_of(saved: SavedList) -> dict[str, Any]:
    """Return the stored query without REMOVED_MEMBERS, which would be refused as unknown when the query is run."""
    return {name: value for name, value in saved.question.items() if name not in REMOVED_MEMBERS}


def _check_length(kept: Mapping[str, Any], others: Sequence[int]) -> None:
    """Raise an exception if a list is too long, or too long beside `others`, the lengths of the other lists."""
    if len(kept.get("companies", ())) > MAX_EXCLUDED:
        raise InvalidInput(f"the list would have more than {MAX_EXCLUDED:,} companies; begin another list")
    if len(kept.get("exclude", ())) > MAX_EXCLUDED:  # one given id may be two now (`_with_ids`)
        raise InvalidInput(f"the query would exclude more than {MAX_EXCLUDED:,} companies; exclude lists instead")
    if (characters := len(json.dumps(kept))) > MAX_QUESTION_CHARACTERS:
        raise InvalidInput(
            f"the list has {characters:,} characters as JSON, and a saved one has at most "
            f"{MAX_QUESTION_CHARACTERS:,}; save fewer companies, or exclude them by their ids or by lists"
        )
    if characters > MAX_QUESTION_SHOWN:
        total = characters + sum(length for length in others if length > MAX_QUESTION_SHOWN)
        if total > MAX_LONG_CHARACTERS:
            raise Problem(
                problems.TOO_MANY_LISTS,
                f"the lists with more than {MAX_QUESTION_SHOWN:,} characters would have {total:,} in all, and the "
                f"limit is {MAX_LONG_CHARACTERS:,}; delete one of them first, or save fewer companies",
            )


def _needs_encoder(saved: SavedList) -> bool:
    question = saved.question
    asked = (*question.get("anchors", ()), *question.get("negatives", ()))
    return any(each.get("text") or each.get("segment") for each in asked)


def _with_news(ranking: Ranking, look: Look | None) -> Iterator[tuple[Hit, bool]]:
    """Yield each hit, and whether neither it nor a duplicate of it was seen at the last look."""
    seen = frozenset(look.seen) if look else frozenset()
    for hit in ranking.hits:
        yield hit, seen.isdisjoint((hit.company["id"], *hit.duplicates))
