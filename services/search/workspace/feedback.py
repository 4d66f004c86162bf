"""Feedback: what users say about hits is kept, shown again, and comes back as labelled pairs. Without HTTP."""

import base64
import binascii
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from similarity.company import EmbeddedCompany, utc_now
from similarity.feedback.labels import (
    LabelledPair,
    id_record,
    labelled_pairs,
    latest_verdicts,
    text_record,
    with_consistent_texts,
)
from similarity.feedback.protocol import EventConflict, FeedbackEvent, Place, Shown, Workspace
from similarity.feedback.rules import microseconds, time_of
from similarity.formats.json_text import read_json
from similarity.search.searcher import retry_if_retired
from similarity.text import embedding_text

from ..asking.service import SearchService
from ..guards.callers import Caller
from ..wire import problems
from ..wire.problem_documents import Offence, Problem
from .feedback_schemas import (
    Feedback,
    FeedbackGiven,
    FeedbackQuery,
    FeedbackRecord,
    VerdictRecord,
)
from .text_hashes import TextHashes

COMPANIES_PER_READ = 500
TICK = timedelta(microseconds=1)

PairRecord = dict[str, str | int]
ReadTexts = Callable[[Mapping[str, EmbeddedCompany]], dict[str, str]]


@dataclass(frozen=True, slots=True)
class FeedbackService:
    """Keeps verdicts in `workspace`, about companies of the index behind `search`. `clock` is the service's own."""

    search: SearchService
    workspace: Workspace
    clock: Callable[[], datetime] = utc_now
    text_hashes: TextHashes = field(default_factory=TextHashes)

    def judge(self, given: FeedbackGiven, caller: Caller) -> tuple[FeedbackRecord, bool]:
        """Keeps a verdict under the caller's name; and whether it is new, or was kept before.

        Raises:
            Problem: a company is unknown or goes by a contested name, or the id says something else already.
            InvalidInput: both are the same company.
        """
        event = FeedbackEvent(
            id=given.id or uuid.uuid4().hex,
            user=caller.name,
            at=self._next_moment(caller.name),
            anchor=self._id_of(given.anchor),
            hit=self._id_of(given.hit),
            verdict=given.verdict,
            shown=Shown(
                rank=given.rank,
                score=given.score,
                probability=given.probability,
                generation=given.generation,
                bundle_id=given.bundle_id,
            ),
            note=given.note,
        )
        try:
            kept = self.workspace.add_event(event)
        except EventConflict as error:
            raise Problem(problems.EVENT_CONFLICT, str(error)) from error
        return record_of(kept), kept == event

    def feedback(self, query: FeedbackQuery, caller: Caller) -> Feedback:
        """One page of the history, and the verdicts that count for the company that is asked about.

        Raises:
            Problem: the company is unknown or contested, or the cursor is none of ours.
        """
        before = None if query.cursor is None else _place_of(query.cursor)
        anchor = None if query.anchor is None else self._id_of(query.anchor)
        found = self.workspace.events(company=anchor or "", user=query.user or "", before=before)
        page = list(islice(found, query.limit + 1))
        shown = page[: query.limit]
        more = len(page) > query.limit
        return Feedback(
            anchor=anchor,
            verdicts=[] if anchor is None else self._verdicts(anchor, caller.name if query.who == "mine" else ""),
            events=[record_of(event) for event in shown],
            next_cursor=_cursor_of(shown[-1].place) if more else None,
        )

    def text_pairs(self) -> Iterator[PairRecord]:
        """The labelled pairs with both texts, as `training` reads them; companies that are gone are left out.

        All that can fail is done before this returns; only the rows come one by one.
        """
        rows, texts = self._rows(_prepared)
        return (text_record(row, texts) for row in rows)

    def id_pairs(self) -> Iterator[PairRecord]:
        """The same with both ids; which texts are equal decides on labels here too, but hashes tell that."""
        rows, _ = self._rows(self.text_hashes.of)
        return (id_record(row) for row in rows)

    def _verdicts(self, anchor: str, user: str) -> list[VerdictRecord]:
        latest = latest_verdicts(self.workspace.events(company=anchor, user=user))
        events = [event for by_user in latest.values() for event in by_user.values()]
        return [
            VerdictRecord(
                hit=event.hit if event.anchor == anchor else event.anchor,
                verdict=event.verdict,
                user=event.user,
                at=event.at,
            )
            for event in sorted(events, key=lambda event: event.place, reverse=True)
        ]

    def _rows(self, read: ReadTexts) -> tuple[list[LabelledPair], dict[str, str]]:
        rows = labelled_pairs(latest_verdicts(self.workspace.events()))
        ids = sorted({company for row in rows for company in (row.anchor, row.hit)})
        texts = self._texts(ids, read)
        return with_consistent_texts(rows, texts), texts

    def _texts(self, ids: Sequence[str], read: ReadTexts) -> dict[str, str]:
        """What `read` makes of each company that is there."""
        texts: dict[str, str] = {}
        for start in range(0, len(ids), COMPANIES_PER_READ):
            texts |= read(retry_if_retired(partial(self._live_documents, ids[start : start + COMPANIES_PER_READ])))
        return texts

    def _live_documents(self, ids: Sequence[str]) -> dict[str, EmbeddedCompany]:
        return self.search.searcher.index.get(self.search.searcher.index.live().name, ids)

    def _id_of(self, reference: str) -> str:
        return self.search.company(reference, exact=True).company.id

    def _next_moment(self, user: str) -> datetime:
        """Now, or right after this user's newest event if another replica's clock is ahead: their last word counts."""
        newest = next(self.workspace.events(user=user), None)
        return self.clock() if newest is None else max(self.clock(), newest.at + TICK)


def record_of(event: FeedbackEvent) -> FeedbackRecord:
    """An event as it is answered."""
    shown = event.shown
    return FeedbackRecord(
        id=event.id,
        user=event.user,
        at=event.at,
        anchor=event.anchor,
        hit=event.hit,
        verdict=event.verdict,
        rank=shown.rank,
        score=shown.score,
        probability=shown.probability,
        generation=shown.generation,
        bundle_id=shown.bundle_id,
        note=event.note,
    )


def _prepared(documents: Mapping[str, EmbeddedCompany]) -> dict[str, str]:
    """The text of each company as an encoder reads it."""
    return {company_id: embedding_text(document.company) for company_id, document in documents.items()}


def _cursor_of(place: Place) -> str:
    moment, user, event_id = place
    return base64.urlsafe_b64encode(json.dumps([microseconds(moment), user, event_id]).encode()).decode()


def _place_of(cursor: str) -> Place:
    try:
        stored, user, event_id = read_json(base64.urlsafe_b64decode(cursor))
        place = time_of(int(stored)), str(user), str(event_id)
        # What no store could be asked for: a lone surrogate.
        f"{user}{event_id}".encode()
        return place
    except (binascii.Error, ValueError, TypeError, OverflowError) as error:
        reason = "is not a cursor of this service; send `next_cursor` of the page before, or leave it out"
        offence = Offence(parameter="cursor", where="query", reason=reason)
        raise Problem(problems.INVALID_REQUEST, f"cursor {reason}", errors=[offence]) from error
