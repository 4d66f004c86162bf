"""Error messages, time conversion and page sizes that all workspaces share."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import wraps
from typing import ParamSpec, TypeVar

from similarity.company import EPOCH
from similarity.feedback.protocol import ErasedMeanwhile, EventConflict, FeedbackEvent, ListExists, UnknownList

FIRST_PAGE = 20
PAGE = 500
MAX_PAGE = 8_000
TRIES_BESIDE_ERASURES = 4

P = ParamSpec("P")
R = TypeVar("R")


def same_or_conflict(event: FeedbackEvent, *, known: FeedbackEvent) -> FeedbackEvent:
    """Return the event that is already stored with this user and id, if it equals the new one.

    Raises:
        EventConflict: it differs from the new one.
    """
    if event.repeats(known):
        return known
    raise EventConflict(
        f"event {event.id!r} of {event.user!r} already exists with other content ({known.verdict.value}, for "
        f"{known.anchor} and {known.hit}); send the new event with another id"
    )


def erased_meanwhile() -> ErasedMeanwhile:
    """Return the error for a save whose companies were looked up before an erasure."""
    return ErasedMeanwhile("a company was erased while this was being saved, so nothing was saved; send it again")


def retry_if_erased(save: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that reads the erasure mark, looks up companies and saves: call it again after an erasure.

    A text of the caller is saved as if it had been sent after the erasure, which does not search it. Raises
    ErasedMeanwhile after TRIES_BESIDE_ERASURES calls.
    """

    @wraps(save)
    def saved(*args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(TRIES_BESIDE_ERASURES - 1):
            with suppress(ErasedMeanwhile):
                return save(*args, **kwargs)
        return save(*args, **kwargs)

    return saved


def list_exists(name: str) -> ListExists:
    """Return the error for a list that is not to be replaced."""
    return ListExists(f"there is a list {name!r} already, so nothing was saved; choose another name, or replace it")


def unknown_list(name: str) -> UnknownList:
    """Return the error for a list that does not exist."""
    return UnknownList(f"there is no saved list {name!r}; it may have been deleted or renamed")


def microseconds(moment: datetime) -> int:
    """Return a time in its stored form: whole UTC microseconds."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def time_of(stored: int) -> datetime:
    """Return the time of a number of `microseconds`, in UTC."""
    return EPOCH + timedelta(microseconds=stored)


def page_sizes(most: int = PAGE) -> Iterator[int]:
    """Yield the numbers of events to read at a time: first a few, because often only the newest are needed.

    After PAGE each is twice the number before it, but not above `most`.
    """
    yield FIRST_PAGE
    size = PAGE
    while True:
        yield size
        size = min(2 * size, most)
