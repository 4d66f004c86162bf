"""Calls about saved lists: queries with a name, the hits that are new since the user's last look, and shortlists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from similarity.client.call import Call, as_json, json_reader, path_of
from similarity.client.question import AnyQuestion, Rank, as_question, several
from similarity.client.ranking import CompanyReference, Ranking
from similarity.company import AttributeValue


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedList:
    """A saved list, shared by all users of the service. `looked_at`: the caller's own last look.

    `question`: the query as JSON; None for a shortlist. `companies` and `size`: the ids on a shortlist, and their
    number; None for a query. In the result of `lists`, a long `question` or `companies` is None, too. `new`: number of
    hits that are new to the caller; None if it was not requested, if the query failed, or if the queries of earlier
    lists took too long.
    """

    name: str
    saved_by: str = ""
    saved_at: datetime | None = None
    looked_at: datetime | None = None
    question: Mapping[str, Any] | None = None
    companies: tuple[str, ...] | None = None
    size: int | None = None
    new: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(CompanyReference):
    """A company on a shortlist, or one that a shortlist is compared with.

    `deleted`: the index no longer holds it, and only its id is known. If the request names a company, `rank`, `score`
    and `probability` are from the ranking for that company, and `verdict` and `note` are the caller's on the pair.
    `rank` and `probability` are None if that ranking does not reach this company.
    """

    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    deleted: bool = False
    rank: int | None = None
    score: float | None = None
    probability: float | None = None
    verdict: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A shortlist beside the first hits of a company, or beside another shortlist."""

    name: str
    company: CompanyReference | None = None
    other: str | None = None
    in_both: tuple[Member, ...] = ()
    only_here: tuple[Member, ...] = ()
    only_there: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The caller's look at the list `name`. `seen`: number of hits that are no longer new to the caller."""

    name: str
    looked_at: datetime
    seen: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRanking(Ranking):
    """The ranking of the list `name`.

    `looked_at`: the time of the caller's own last look. A hit is `new` if neither it nor one of its duplicates was
    among the hits of that look. If there was no look, `looked_at` is None and all hits are `new`.
    """

    name: str = ""
    looked_at: datetime | None = None


def lists(*, new: bool = False) -> Call[tuple[SavedList, ...]]:
    """Return all saved lists, by name; with `new`, also how many hits of each are new since the caller's last look."""
    path = path_of("lists", parameters={"new": "true" if new else None})
    return Call("GET", path, json_reader(tuple[SavedList, ...], member="lists"))


def saved_list(name: str) -> Call[SavedList]:
    """Return one saved list with its query."""
    return Call("GET", path_of("lists", name), json_reader(SavedList))


def save_list(name: str, question: AnyQuestion) -> Call[SavedList]:
    """Save a query under a name, in place of an earlier one. A query with a cursor cannot be saved."""
    body = as_json({"question": as_question(question).body()})
    return Call("PUT", path_of("lists", name), json_reader(SavedList), body=body)


def save_shortlist(name: str, companies: Sequence[str]) -> Call[SavedList]:
    """Save a set of companies (ids, domains, names or aliases) under a name, in place of an earlier list."""
    body = as_json({"companies": several(companies)})
    return Call("PUT", path_of("lists", name), json_reader(SavedList), body=body)


def change_shortlist(name: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Call[SavedList]:
    """Add companies to a shortlist and remove others, by id, domain, name or alias; changes of others stay."""
    body = as_json({"add": several(add), "remove": several(remove)})
    return Call("POST", path_of("lists", name, "companies"), json_reader(SavedList), body=body)


def shortlist(name: str, *, company: str | None = None, rank: Rank | None = None) -> Call[tuple[Member, ...]]:
    """Return the companies of a shortlist; with `company`, also their places in the ranking for it by `rank`."""
    path = path_of("lists", name, "companies", parameters={"company": company, "rank": rank})
    return Call("GET", path, json_reader(tuple[Member, ...], member="companies"))


def compare_shortlist(
    name: str,
    *,
    company: str | None = None,
    other: str | None = None,
    k: int | None = None,
    rank: Rank | None = None,
) -> Call[Comparison]:
    """Compare a shortlist with the first `k` hits of `company` (by `rank`), or with the shortlist `other`."""
    parameters = {"company": company, "other": other, "k": k, "rank": rank}
    path = path_of("lists", name, "compare", parameters=parameters)
    return Call("GET", path, json_reader(Comparison))


def delete_list(name: str) -> Call[None]:
    """Delete a saved list; its companies are not deleted."""
    return Call("DELETE", path_of("lists", name), lambda _: None)


def list_hits(
    name: str, *, k: int | None = None, reasons: int | None = None, cursor: str | None = None
) -> Call[ListRanking]:
    """Return the current ranking of a list; hits that are new since the caller's last look are `new`.

    `k` and `reasons`: by default those of the saved query.
    """
    path = path_of("lists", name, "hits", parameters={"k": k, "reasons": reasons, "cursor": cursor})
    return Call("GET", path, json_reader(ListRanking))


def looked(name: str, *, ids: Sequence[str] | None = None) -> Call[Look]:
    """Store which hits of a list the caller has seen, in place of the last look: `ids`, by default all current ones."""
    body = as_json({} if ids is None else {"ids": several(ids)})
    return Call("POST", path_of("lists", name, "looked"), json_reader(Look), body=body)
