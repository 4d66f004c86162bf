"""Small workspace records for tests: every field has a plain default, and a test names only what it is about."""

from datetime import UTC, datetime, timedelta
from typing import Any

from similarity.feedback.protocol import FeedbackEvent, SavedList, Verdict
from similarity.index.name_hashes import CompanyNames, hashes_of

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)


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


def make_names(company_id: str, /, *names: str, anothers: tuple[str, ...] = ()) -> CompanyNames:
    """What a company is recognised by; another company goes by `anothers` too."""
    key = b"a key of 32 bytes, as an index's"
    return CompanyNames(company_id, key, hashes_of(key, names), lambda name: name in anothers)
