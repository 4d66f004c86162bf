"""Small workspace records for tests: every field has a plain default, and a test names only what it is about."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from similarity.feedback.protocol import FeedbackEvent, Forgotten, SavedList, Verdict, Workspace
from similarity.index.name_hashes import ErasedCompanies, hashes_of

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
KEY = b"a key of 32 bytes, as an index's"


def moment(microseconds: int) -> datetime:
    """So many microseconds after noon."""
    return NOON + timedelta(microseconds=microseconds)


def make_event(
    event_id: str = "e1",
    /,
    *,
    user: str = "ann",
    at: datetime = NOON,
    anchor: str = "nike",
    hit: str = "adidas",
    verdict: str = "competitor",
    **fields: Any,
) -> FeedbackEvent:
    """One verdict."""
    return FeedbackEvent(id=event_id, user=user, at=at, anchor=anchor, hit=hit, verdict=Verdict(verdict), **fields)


def make_list(name: str = "shoes", /, *, by: str = "ann", at: datetime = NOON, **question: Any) -> SavedList:
    """A list that asks for competitors of Nike, unless `question` says otherwise."""
    asked: dict[str, Any] = {"anchors": [{"company": "nike"}]}
    return SavedList(name=name, question=asked | question, saved_by=by, saved_at=at)


def make_shortlist(name: str = "contacted", /, *companies: str, by: str = "ann", at: datetime = NOON) -> SavedList:
    """A list of companies."""
    return SavedList(name=name, question={"companies": list(companies)}, saved_by=by, saved_at=at)


def make_names(company_id: str, /, *names: str, anothers: tuple[str, ...] = ()) -> ErasedCompanies:
    """One erased company; another company has the names `anothers`, too."""
    return make_erased({company_id: names}, anothers=anothers)


def make_erased(
    named: Mapping[str, Sequence[str]],
    /,
    *,
    anothers: tuple[str, ...] = (),
    require: Callable[[Collection[str]], None] = lambda ids: None,
) -> ErasedCompanies:
    """Companies that are erased together, with their names by id; other companies have the names `anothers`, too."""
    hashes = {company_id: hashes_of(KEY, names) for company_id, names in named.items()}
    return ErasedCompanies(KEY, hashes, lambda _, name: name in anothers, require)


def forget(workspace: Workspace, company_id: str, /, *names: str, anothers: tuple[str, ...] = ()) -> Forgotten:
    """Erase one company from a workspace."""
    return workspace.forget_companies(make_names(company_id, *names, anothers=anothers))[company_id]
