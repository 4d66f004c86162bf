"""What every workspace refuses, in one wording, and how every one keeps a time and reads pages."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from similarity.company import EPOCH
from similarity.errors import IndexUnavailable
from similarity.feedback.protocol import EventConflict, FeedbackEvent, UnknownList

FIRST_PAGE = 20
PAGE = 500


def same_or_conflict(event: FeedbackEvent, *, known: FeedbackEvent) -> FeedbackEvent:
    """The event that is stored under this user and id already, if the new one only repeats it.

    Raises:
        EventConflict: it says something else.
    """
    if event.repeats(known):
        return known
    raise EventConflict(
        f"event {event.id!r} of {event.user!r} already says {known.verdict.value} of {known.anchor} and {known.hit}, "
        "or says it with other figures or another note; give what is said now an id of its own"
    )


def unknown_list(name: str) -> UnknownList:
    """The error for a list that is not there."""
    return UnknownList(f"there is no list {name!r}; look at the names of all lists, or save it first")


def unreadable(kind: str, error: Exception) -> IndexUnavailable:
    """The error for a stored list or look that something else than this library wrote, or damaged."""
    return IndexUnavailable(
        f"the workspace holds a {kind} that cannot be read ({error}); delete it or restore a backup"
    )


def microseconds(moment: datetime) -> int:
    """A time as it is stored: whole UTC microseconds."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def time_of(stored: int) -> datetime:
    """The time that `microseconds` was made from, in UTC."""
    return EPOCH + timedelta(microseconds=stored)


def page_sizes() -> Iterator[int]:
    """How many events to read at a time: few at first, for who asks only for the newest."""
    yield FIRST_PAGE
    while True:
        yield PAGE
