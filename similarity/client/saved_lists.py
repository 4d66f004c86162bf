"""Calls about saved lists: a query with a name, and the hits that are new since the user's last look."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from similarity.client.call import Call, as_json, json_reader, path_of
from similarity.client.question import Question
from similarity.client.ranking import Ranking


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedList:
    """A saved list, shared by all users of the service. `looked_at`: the caller's own last look.

    `question`: the query as JSON; None if it is long and all lists were requested. `new`: how many hits are new to
    the caller, if that was requested.
    """

    name: str
    saved_by: str = ""
    saved_at: datetime | None = None
    looked_at: datetime | None = None
    question: Mapping[str, Any] | None = None
    new: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A stored look at the list `name`: `seen` hits are no longer new."""

    name: str
    looked_at: datetime
    seen: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRanking(Ranking):
    """The ranking of the list `name`; a hit is `new` if it was not in the ranking at `looked_at`.

    `looked_at`: the caller's own last look; None if there was none, and all hits are new.
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


def save_list(name: str, question: Question) -> Call[SavedList]:
    """Save a query under a name, in place of an earlier one. A query with a cursor cannot be saved."""
    body = as_json({"question": question.body()})
    return Call("PUT", path_of("lists", name), json_reader(SavedList), body=body)


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
    """Store which hits of a list the caller has seen, in place of the last look: `ids`, by default its current hits."""
    body = as_json({} if ids is None else {"ids": list(ids)})
    return Call("POST", path_of("lists", name, "looked"), json_reader(Look), body=body)
