"""The protocol `Workspace`, which every store implements. `tests/contract/workspace/` runs on each store.

A workspace belongs to an index, but not to a generation: promote, rollback and retire do not change it. It holds

- **feedback**: append-only events, each with the verdict of one user on one pair of companies. Only the latest event
  of a user and a pair is valid; if it withdraws the verdict, no event is (`similarity.feedback.labels`);
- **lists**: saved queries or sets of companies with a name, shared by all users of the index;
- **looks**: the hits of a list that a user has seen, so that new hits can be marked at the next look.

Every write is idempotent. When a write returns, it survives a crash, and all later reads in all processes see it.
"""

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from similarity.company import check_stored_id
from similarity.errors import InvalidInput, SimilarityError
from similarity.index.name_hashes import ErasedCompanies

Pair: TypeAlias = tuple[str, str]
"""The ids of two companies, sorted: a verdict is about a pair, whichever of the two was the anchor."""

Place: TypeAlias = tuple[datetime, str, str]
"""The position of an event in the history: time, user, id."""

MAX_USER_CHARACTERS = 128
MAX_EVENT_ID_CHARACTERS = 128
MAX_NOTE_CHARACTERS = 2_000
MAX_LIST_NAME_CHARACTERS = 100
UNREADABLE = ("Cc", "Cs")
MAX_SEEN = 1_000
"""Maximum number of hits of a look: the maximum number of hits of a ranking."""


class EventConflict(SimilarityError):
    """The same user has stored a different event with the same id."""


class ErasedMeanwhile(SimilarityError):
    """An erasure searched the workspace after the mark that was passed to a save. Nothing is saved."""


class ListExists(SimilarityError):
    """There is a list of this name, and it was not to be replaced."""


class UnknownList(SimilarityError):
    """There is no list of this name."""


class Verdict(StrEnum):
    """The judgement of a user on a pair of companies."""

    COMPETITOR = "competitor"
    NOT_COMPETITOR = "not_competitor"
    UNSURE = "unsure"
    """The user cannot decide: the pair gets no label, whatever the verdicts of others."""
    WITHDRAWN = "withdrawn"
    """The user's earlier verdict on this pair no longer counts; its event stays in the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The rank and scores that the user saw when judging; None or empty if they were not shown."""

    rank: int | None = None
    score: float | None = None
    probability: float | None = None
    generation: str = ""
    bundle_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackEvent:
    """The verdict of `user` on the pair of `anchor` and `hit` at the time `at`. `id`: unique per user.

    `at` has a time zone, and is stored with microseconds.

    Raises:
        InvalidCompany: `anchor` or `hit` is not a valid company id.
        InvalidInput: both are the same, a text is too long, or the id or the user is empty or has control characters.
    """

    id: str
    user: str
    at: datetime
    anchor: str
    hit: str
    verdict: Verdict
    shown: Shown = field(default_factory=Shown)
    note: str = ""

    def __post_init__(self) -> None:
        check_stored_id(self.anchor)
        check_stored_id(self.hit)
        if self.anchor == self.hit:
            raise InvalidInput(f"{self.anchor} cannot be judged against itself; give two companies", about="hit")
        _check_text("the event's id", self.id, MAX_EVENT_ID_CHARACTERS)
        _check_text("the user's name", self.user, MAX_USER_CHARACTERS)
        if len(self.note) > MAX_NOTE_CHARACTERS:
            raise InvalidInput(f"the note has {len(self.note):,} characters; the limit is {MAX_NOTE_CHARACTERS:,}")

    @property
    def pair(self) -> Pair:
        return (self.anchor, self.hit) if self.anchor < self.hit else (self.hit, self.anchor)

    @property
    def place(self) -> Place:
        return self.at, self.user, self.id

    def repeats(self, other: "FeedbackEvent") -> bool:
        """Return whether both events are equal, ignoring their times."""
        return replace(self, at=other.at) == other


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedList:
    """A saved query or a shortlist with its name, the user who saved it last, and the time.

    `question`: the service's query as JSON. `forget_companies` reads these members of it: `anchors` and `negatives`
    (objects with a `company` or a `text`), `exclude` (a list of companies), `exclude_lists` (names of shortlists), and
    `filters` (objects with `any_of` and `none_of`). A shortlist has the only member `companies`, a list of ids.

    Raises:
        InvalidInput: the name or the user is empty, too long, or has control characters.
    """

    name: str
    question: Mapping[str, Any]
    saved_by: str
    saved_at: datetime

    def __post_init__(self) -> None:
        _check_text("the list's name", self.name, MAX_LIST_NAME_CHARACTERS)
        _check_text("the user's name", self.saved_by, MAX_USER_CHARACTERS)

    @property
    def companies(self) -> tuple[str, ...] | None:
        """The ids on a shortlist; None for a saved query."""
        return tuple(self.question["companies"]) if "companies" in self.question else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The hits of the list `list_name` that `user` saw at the last look.

    Raises:
        InvalidInput: there are more than `MAX_SEEN` hits, or the user is empty, too long, or has control characters.
    """

    list_name: str
    user: str
    at: datetime
    seen: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_text("the user's name", self.user, MAX_USER_CHARACTERS)
        if len(self.seen) > MAX_SEEN:
            raise InvalidInput(f"a look has {len(self.seen):,} hits; the limit is {MAX_SEEN:,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The counts of one company's erasure: `events` removed, `lists`, `looks` removed or changed, `notes` emptied."""

    events: int = 0
    lists: int = 0
    looks: int = 0
    notes: int = 0


class Workspace(Protocol):
    """A store of feedback and lists. Every method raises IndexUnavailable if the store cannot be reached.

    A save with `since`, a mark from `erasure_mark`, raises ErasedMeanwhile and saves nothing if an erasure searched the
    workspace after that mark. A caller that takes the mark before it looks up companies therefore never saves a
    company that was erased in between. An erasure finds a company that was saved before its search. A later save is
    refused if the mark is older than the search; if the mark is newer, the look-up does not find the company.
    """

    def erasure_mark(self) -> str:
        """Return a mark that is different after every `forget_companies`, in all processes."""

    def add_event(self, event: FeedbackEvent, *, since: str | None = None) -> FeedbackEvent:
        """Append an event and return it; if an event that it `repeats` is stored, return the stored one.

        Raises EventConflict if a different event with this user and id is stored.
        """

    def events(self, *, company: str = "", user: str = "", before: Place | None = None) -> Iterator[FeedbackEvent]:
        """Yield events, newest first; they are read in pages.

        `company`: only events with this company on either side. `user`: only of this user. `before`: only older ones.
        An event that is added while they are read may be missing.
        """

    def save_list(self, saved: SavedList, *, since: str | None = None, replace: bool = True) -> bool:
        """Save a list, replacing one of the same name; return True if there was none. Looks at it are kept.

        Unless `replace`, raises ListExists if there is one.
        """

    def change_list(
        self, name: str, change: Callable[[SavedList], SavedList], *, since: str | None = None
    ) -> SavedList:
        """Replace a list by `change(list)`, which keeps the name, and return the new one. Raises UnknownList.

        No change of another process is lost: if the list was changed meanwhile, `change` is called again.
        """

    def lists(self) -> list[SavedList]:
        """Return all lists, by name."""

    def list_lengths(self) -> dict[str, int]:
        """Return how many characters of JSON the question of each list has, by the list's name."""

    def saved_list(self, name: str) -> SavedList:
        """Return the list of this name. Raises UnknownList if there is none."""

    def remove_list(self, name: str) -> None:
        """Remove a list and all looks at it. Raises UnknownList if there is none."""

    def add_look(self, look: Look, *, since: str | None = None) -> None:
        """Store the look of a user, replacing the earlier one. Raises UnknownList if there is no such list."""

    def last_look(self, name: str, user: str) -> Look | None:
        """Return the user's last look at a list; None if there is none."""

    def looks(self, user: str) -> list[Look]:
        """Return the user's last looks at all lists, by the lists' names."""

    def forget_companies(self, companies: ErasedCompanies) -> dict[str, Forgotten]:
        """Erase companies: events about them, their names in notes and lists, and their ids in looks.

        Returns the counts by company. A saved query without another anchor is removed. A list is renamed if its name
        contains a name of a company (`forgetting`), and queries that exclude the list are changed to the new name. A
        note that contains a name is emptied; its verdict on other companies is kept. Erase the companies from the index
        first, or they may be judged again meanwhile. Changes the `erasure_mark` once for all of them. The removed data
        is on the disk until `compact`.
        """

    def compact(self) -> bool:
        """Remove deleted and replaced data from the disk; may take a minute on a cluster.

        Returns False if it stays for now, because a copy of the store is unavailable.
        """

    def check(self) -> None:
        """Read from the store; raises IndexUnavailable if events or lists cannot be read."""

    def close(self) -> None:
        """Close files and connections."""


def _check_text(what: str, text: str, limit: int) -> None:
    if not text.strip() or len(text) > limit:
        raise InvalidInput(f"{what} must have 1 to {limit} characters, not {len(text):,}")
    if any(unicodedata.category(character) in UNREADABLE for character in text):
        raise InvalidInput(f"{what} contains a control character or invalid Unicode; remove it")
