"""The calls about feedback: what people say of hits, the labelled pairs it makes, and what to judge next."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias
from uuid import uuid4

from similarity.client.call import NDJSON, Call, Reply, as_json, decoded, path_of, reading
from similarity.client.problems import UnreadableAnswer
from similarity.client.ranking import CompanyReference, Hit, Ranking

Verdict: TypeAlias = Literal["competitor", "not_competitor", "unsure", "withdrawn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackEvent:
    """One verdict: who said when what `hit` is to `anchor`, and what they had been shown."""

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
    """What a user says now of the company that was asked about and another one, `hit`."""

    hit: str
    verdict: str
    user: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPair:
    """Two texts and what `users` people say of them together; `label` is empty where they do not agree."""

    text_a: str
    text_b: str
    label: str
    anchor_id: str = ""
    hit_id: str = ""
    users: int = 1
    judged_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A pair to judge next: what a verdict is `worth`, 0 to 1, and `why`."""

    anchor: CompanyReference
    hit: CompanyReference
    worth: float = 0.0
    why: tuple[str, ...] = ()
    score: float | None = None
    probability: float | None = None
    vector_rank: int | None = None
    hybrid_rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdicts:
    verdicts: tuple[StandingVerdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsPage:
    """Events, newest first; `next_cursor` is for the older ones."""

    events: tuple[FeedbackEvent, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suggestions:
    pairs: tuple[Suggestion, ...]


def feedback(
    anchor: str,
    hit: str | Hit,
    verdict: Verdict,
    *,
    ranking: Ranking | None = None,
    note: str | None = None,
    event_id: str | None = None,
) -> Call[FeedbackEvent]:
    """Says of `hit` whether it competes with `anchor`; `withdrawn` takes back what was said of the two before.

    Give the `Hit` itself and its `ranking` where there are such: then it is kept what was shown (rank,
    score, probability, generation, model). The same `event_id` is the same event, so that nothing is
    said twice; without one, a new one is made.
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
    return Call(method="POST", path="/feedback", body=body, read=reading(FeedbackEvent))


def verdicts(anchor: str, *, who: Literal["mine", "all"] = "mine") -> Call[tuple[StandingVerdict, ...]]:
    """What counts for pairs with one company: the latest verdict of each user and pair, newest first."""

    def read(reply: Reply) -> tuple[StandingVerdict, ...]:
        return reading(_Verdicts)(reply).verdicts

    return Call(method="GET", path=path_of("feedback", parameters={"anchor": anchor, "who": who}), read=read)


def history(
    *, anchor: str | None = None, user: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[EventsPage]:
    """All that was ever said, newest first: of one company, by one user, or everything."""
    parameters = {"anchor": anchor, "user": user, "limit": limit, "cursor": cursor}
    return Call(method="GET", path=path_of("feedback", parameters=parameters), read=reading(EventsPage))


def pairs() -> Call[tuple[LabelledPair, ...]]:
    """The labelled pairs that training reads: one for each pair of companies that anybody judged."""
    path = path_of("feedback", "pairs", parameters={"format": "jsonl"})

    def read(reply: Reply) -> tuple[LabelledPair, ...]:
        try:
            return tuple(decoded(LabelledPair, json.loads(line), reply) for line in reply.body.splitlines())
        except ValueError:
            raise UnreadableAnswer("a line is no JSON", request_id=reply.request_id) from None

    return Call(method="GET", path=path, accept=NDJSON, read=read)


def next_to_label(*, k: int | None = None, anchor: str | None = None) -> Call[tuple[Suggestion, ...]]:
    """The pairs most worth a verdict, best first: neighbours of `anchor`, else of the companies asked about last."""

    def read(reply: Reply) -> tuple[Suggestion, ...]:
        return reading(_Suggestions)(reply).pairs

    return Call(method="GET", path=path_of("feedback", "next", parameters={"k": k, "anchor": anchor}), read=read)
