"""The calls about saved lists: a question with a name, and what is new in its answer since the last look."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from similarity.client.call import Call, Reply, as_json, nothing, path_of, reading
from similarity.client.question import Question
from similarity.client.ranking import Ranking


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedList:
    """A saved list, shared by all who may use the service; `looked_at` is the caller's own last look.

    `question` is its question as JSON; None where all lists were asked for and it is long. `new` is how many of its
    hits are new to the caller, where all lists were asked for that.
    """

    name: str
    saved_by: str = ""
    saved_at: datetime | None = None
    looked_at: datetime | None = None
    question: Mapping[str, Any] | None = None
    new: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What is remembered of a look at the list `name`: `seen` hits are no longer new."""

    name: str
    looked_at: datetime
    seen: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRanking(Ranking):
    """The answer to the question of the list `name`; its hits are `new` where they were not there at `looked_at`.

    `looked_at` is the caller's own last look; None if there was none, and everything is new.
    """

    name: str = ""
    looked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lists:
    lists: tuple[SavedList, ...]


def lists(*, new: bool = False) -> Call[tuple[SavedList, ...]]:
    """All saved lists, by name; with `new` how many hits of each were not there at the caller's last look."""

    def read(reply: Reply) -> tuple[SavedList, ...]:
        return reading(_Lists)(reply).lists

    return Call(method="GET", path=path_of("lists", parameters={"new": "true" if new else None}), read=read)


def saved_list(name: str) -> Call[SavedList]:
    """One saved list with its question."""
    return Call(method="GET", path=path_of("lists", name), read=reading(SavedList))


def save_list(name: str, question: Question) -> Call[SavedList]:
    """Keeps a question under a name, in place of what was kept under it. A question of a page cannot be kept."""
    body = as_json({"question": question.body()})
    return Call(method="PUT", path=path_of("lists", name), body=body, read=reading(SavedList))


def delete_list(name: str) -> Call[None]:
    """Forgets a saved list; the companies in it stay."""
    return Call(method="DELETE", path=path_of("lists", name), read=nothing)


def list_hits(
    name: str, *, k: int | None = None, reasons: int | None = None, cursor: str | None = None
) -> Call[ListRanking]:
    """The answer to a list's question now; hits that were not there at the caller's last look are `new`.

    `k` and `reasons` are as they were saved, unless they are given.
    """
    path = path_of("lists", name, "hits", parameters={"k": k, "reasons": reasons, "cursor": cursor})
    return Call(method="GET", path=path, read=reading(ListRanking))


def looked(name: str, *, ids: Sequence[str] | None = None) -> Call[Look]:
    """Remembers what the caller has seen of a list, in place of what they saw before: `ids`, else its hits now."""
    body = as_json({} if ids is None else {"ids": list(ids)})
    return Call(method="POST", path=path_of("lists", name, "looked"), body=body, read=reading(Look))
