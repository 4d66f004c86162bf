"""The contract every workspace keeps. The same tests (`tests/contract/workspace/`) run on each store.

A workspace belongs to an index but stands outside its generations: promote, rollback and retire do
not touch it. It holds

- **feedback**: events, each one verdict of one user on one pair of companies. Events are only ever
  appended; of one user and one pair the latest counts, and none where that withdraws it
  (`similarity.feedback.labels`);
- **lists**: a name and a question, shared by everybody who may use the index;
- **looks**: which hits of a list a user saw at the last look, so that the next one can say what is new.

Every write may be sent again: it leaves the same state. When a write returns, it survives a crash,
and every later read, in whatever process, sees it.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from similarity.company import check_stored_id
from similarity.errors import InvalidInput, SimilarityError
from similarity.index.name_hashes import CompanyNames

Pair: TypeAlias = tuple[str, str]
"""The ids of two companies, sorted: a verdict is about a pair, whichever of the two was the anchor."""

Place: TypeAlias = tuple[datetime, str, str]
"""Where an event stands in the history: time, user, id."""

MAX_USER_CHARACTERS = 128
MAX_EVENT_ID_CHARACTERS = 128
MAX_NOTE_CHARACTERS = 2_000
MAX_LIST_NAME_CHARACTERS = 100
UNREADABLE = ("Cc", "Cs")
MAX_SEEN = 1_000
"""How many hits a look remembers: as deep as a ranking can be read."""


class EventConflict(SimilarityError):
    """The same user has said something else under the same event id."""


class UnknownList(SimilarityError):
    """No list has this name (any more)."""


class Verdict(StrEnum):
    """What a user says about a hit."""

    COMPETITOR = "competitor"
    NOT_COMPETITOR = "not_competitor"
    UNSURE = "unsure"
    """It cannot be told: the pair is not labelled, whatever others say of it."""
    WITHDRAWN = "withdrawn"
    """The earlier verdict is void: as if the user had never judged this pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the user was shown when they judged: None or empty where they were shown no such thing."""

    rank: int | None = None
    score: float | None = None
    probability: float | None = None
    generation: str = ""
    bundle_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackEvent:
    """One verdict: `user` says at `at` what `hit` is to `anchor`. `id` is unique among one user's events.

    `at` carries its zone and is kept to the microsecond.

    Raises:
        InvalidCompany: `anchor` or `hit` is no company id.
        InvalidInput: both are the same, or a text is empty or too long.
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
            raise InvalidInput(f"{self.anchor} cannot be judged against itself; name two companies")
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
        """Whether this is the same saying sent again; when it was sent does not matter."""
        return _said(self) == _said(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedList:
    """A saved list: its question, who saved it last, and when. `question` is the JSON of the service's question.

    Its members `anchors` and `negatives` are lists of objects with a `company` or a `text`, `exclude` is a
    list of companies, and `filters` are objects with `any_of` and `none_of`: `forget_company` looks there.
    """

    name: str
    question: Mapping[str, Any]
    saved_by: str
    saved_at: datetime

    def __post_init__(self) -> None:
        _check_text("the list's name", self.name, MAX_LIST_NAME_CHARACTERS)
        _check_text("the user's name", self.saved_by, MAX_USER_CHARACTERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Which hits `user` saw of the list called `list_name` at the last look, at most `MAX_SEEN`."""

    list_name: str
    user: str
    at: datetime
    seen: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_text("the user's name", self.user, MAX_USER_CHARACTERS)
        if len(self.seen) > MAX_SEEN:
            raise InvalidInput(f"a look at {len(self.seen):,} hits is too much; the limit is {MAX_SEEN:,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What an erasure took out: `events` removed, `lists` and `looks` removed or changed, `notes` emptied."""

    events: int = 0
    lists: int = 0
    looks: int = 0
    notes: int = 0


class Workspace(Protocol):
    """A store of feedback and lists. Every method raises IndexUnavailable where the store cannot be reached."""

    def add_event(self, event: FeedbackEvent) -> FeedbackEvent:
        """Appends an event and returns it; if the same was said before under this user and id, the event of then.

        EventConflict if something else was said under them.
        """

    def events(self, *, company: str = "", user: str = "", before: Place | None = None) -> Iterator[FeedbackEvent]:
        """Events, newest first, read page by page as they are asked for.

        Those about a `company`, on either side; those of a `user`; those older than a `place`. An event
        that is added while they are read may be missing.
        """

    def save_list(self, saved: SavedList) -> bool:
        """Saves a list in place of one of the same name; True if there was none. Looks at it stay."""

    def lists(self) -> list[SavedList]:
        """All lists, by name."""

    def saved_list(self, name: str) -> SavedList:
        """The list of this name. UnknownList if there is none."""

    def remove_list(self, name: str) -> None:
        """Removes a list and all looks at it. UnknownList if there is none."""

    def add_look(self, look: Look) -> None:
        """Remembers what a user saw, in place of what they saw before. UnknownList if there is no such list."""

    def last_look(self, name: str, user: str) -> Look | None:
        """What the user saw last of a list; None if they never looked."""

    def looks(self, user: str) -> list[Look]:
        """The user's last looks at all lists, by the lists' names."""

    def forget_company(self, names: CompanyNames) -> Forgotten:
        """Erases a company: events about it, its names in notes and lists, and itself from looks.

        A list that has no anchor without it is removed; one whose own name contains a name is renamed
        (`forgetting`). A note that contains a name becomes empty; its verdict on other companies stays.
        Erase the company from the index first, or it may be judged again meanwhile. What was removed is
        on the disk until `compact`.
        """

    def compact(self) -> bool:
        """Removes from the disk what was removed or replaced; may take a minute on a cluster.

        False if it stays for now, because a copy of the store is away.
        """

    def check(self) -> None:
        """Reads something and throws it away: raises IndexUnavailable where events or lists cannot be read."""

    def close(self) -> None:
        """Releases files and connections."""


def _said(event: FeedbackEvent) -> tuple[object, ...]:
    return event.user, event.id, event.anchor, event.hit, event.verdict, event.shown, event.note


def _check_text(what: str, text: str, limit: int) -> None:
    if not text.strip() or len(text) > limit:
        raise InvalidInput(f"{what} must have 1 to {limit} characters, not {len(text):,}")
    if any(unicodedata.category(character) in UNREADABLE for character in text):
        raise InvalidInput(f"{what} holds a control character or broken Unicode; leave that out")
