"""Calls about feedback: verdicts on hits, the labelled pairs that result, and the pairs to label next."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias
from uuid import uuid4

from similarity.client.call import NDJSON, Call, as_json, json_reader, lines_reader, path_of
from similarity.client.ranking import CompanyReference, Hit, Ranking

Verdict: TypeAlias = Literal["competitor", "not_competitor", "unsure", "withdrawn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackEvent:
    """One verdict of a user on the pair of `anchor` and `hit`, with the rank and scores that the user saw."""

    id: str
    anchor: str
    hit: str
    verdict: str
    user: str = ""
    at: datetime | None = None
    rank: int | None = None
    score: float | None = None
    probability: float | None = None
    generation: str = ""
    bundle_id: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingVerdict:
    """The latest verdict of a user on the anchor and `hit`."""

    hit: str
    verdict: str
    user: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPair:
    """Two texts and the label on which `users` people agree; empty if they disagree or one is unsure."""

    text_a: str
    text_b: str
    label: str
    anchor_id: str = ""
    hit_id: str = ""
    users: int = 1
    judged_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A pair to label next: the value of a verdict (`worth`, 0 to 1), and the reasons (`why`)."""

    anchor: CompanyReference
    hit: CompanyReference
    worth: float = 0.0
    why: tuple[str, ...] = ()
    score: float | None = None
    probability: float | None = None
    cosine_rank: int | None = None
    business_rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsPage:
    """Events, newest first; `next_cursor` is for the next, older page."""

    events: tuple[FeedbackEvent, ...]
    next_cursor: str | None = None


def feedback(
    anchor: str,
    hit: str | Hit,
    verdict: Verdict,
    *,
    ranking: Ranking | None = None,
    note: str | None = None,
    event_id: str | None = None,
) -> Call[FeedbackEvent]:
    """Store a verdict on whether `hit` competes with `anchor`; `withdrawn` removes the caller's earlier verdict.

    If you have them, give the `Hit` itself and its `ranking`: rank, score, probability, generation and model are
    then stored too. Two calls with the same `event_id` store one event; by default each call has a new id.
    """
    shown = hit if isinstance(hit, Hit) else None
    members = {
        "id": event_id or uuid4().hex,
        "anchor": anchor,
        "hit": shown.company.id if shown else hit,
        "verdict": verdict,
        "rank": shown and shown.rank,
        "score": shown and shown.score,
        "probability": shown and shown.probability,
        "generation": ranking and ranking.generation,
        "bundle_id": ranking and ranking.model.bundle_id,
        "note": note,
    }
    body = as_json({name: value for name, value in members.items() if value is not None})
    return Call("POST", "/feedback", json_reader(FeedbackEvent), body=body)


def verdicts(anchor: str, *, who: Literal["mine", "all"] = "mine") -> Call[tuple[StandingVerdict, ...]]:
    """Return the caller's latest verdict on each pair with this anchor, newest first; with `all`, also other users'."""
    path = path_of("feedback", parameters={"anchor": anchor, "who": who})
    return Call("GET", path, json_reader(tuple[StandingVerdict, ...], member="verdicts"))


def history(
    *, anchor: str | None = None, user: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[EventsPage]:
    """Return one page of the events, newest first. `anchor`: only pairs with this company. `user`: only this user's."""
    parameters = {"anchor": anchor, "user": user, "limit": limit, "cursor": cursor}
    return Call("GET", path_of("feedback", parameters=parameters), json_reader(EventsPage))


def pairs() -> Call[tuple[LabelledPair, ...]]:
    """Return the pairs that training reads: one for each pair of companies with a verdict, also without a label."""
    path = path_of("feedback", "pairs", parameters={"format": "jsonl"})
    return Call("GET", path, lines_reader(LabelledPair), accept=NDJSON)


def next_to_label(*, k: int | None = None, anchor: str | None = None) -> Call[tuple[Suggestion, ...]]:
    """Return the pairs whose labels are worth most, best first: for `anchor`, or for recently used anchors."""
    path = path_of("feedback", "next", parameters={"k": k, "anchor": anchor})
    return Call("GET", path, json_reader(tuple[Suggestion, ...], member="pairs"))
