"""Feedback, independent of HTTP: stores verdicts of users on hits, returns them, and exports labelled pairs."""

import base64
import binascii
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from similarity.company import Company, EmbeddedCompany, utc_now
from similarity.feedback.labels import (
    JudgedPair,
    id_record,
    judged_pairs,
    latest_verdicts,
    text_record,
    with_consistent_texts,
)
from similarity.feedback.protocol import FeedbackEvent, Place, Shown, Workspace
from similarity.feedback.rules import microseconds, retry_if_erased, time_of
from similarity.formats.json_text import read_json
from similarity.search.searcher import retry_if_retired
from similarity.text import embedding_text, text_hash

from ..asking.service import SearchService
from ..guards.callers import Caller
from ..wire.problem_documents import invalid_request
from .feedback_schemas import Feedback, FeedbackGiven, FeedbackQuery, FeedbackRecord, VerdictRecord

COMPANIES_PER_READ = 50
"""Number of companies read at a time. A description may have 800 kB, and a read holds all its companies in memory."""
TICK = timedelta(microseconds=1)
# About 500 bytes each. Preparing a text takes some tenths of a millisecond, and the page exports with every verdict.
MAX_HASHES = 30_000

PairRecord = dict[str, str | int]


class TextHashes:
    """Hashes of the texts that an encoder reads, at most about `most` of them in memory. Thread-safe."""

    def __init__(self, *, most: int = MAX_HASHES, prepare: Callable[[Company], str] = embedding_text) -> None:
        self._most = most
        self._prepare = prepare
        self._known: dict[tuple[str, int, str], str] = {}

    def of(self, documents: Mapping[str, EmbeddedCompany]) -> dict[str, str]:
        """Return the hash of each document's text by company id: equal for equal texts."""
        if len(self._known) > self._most:
            self._known.clear()
        return {company_id: self._hash(document) for company_id, document in documents.items()}

    def _hash(self, document: EmbeddedCompany) -> str:
        # The key identifies a state of a company, and does not change when another encoder is promoted.
        key = (document.id, document.version, document.text_hash)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = text_hash(self._prepare(document.company))
        return known


@dataclass(frozen=True, slots=True)
class FeedbackService:
    """Stores verdicts in `workspace`, on companies of the index behind `search`. `clock`: returns the current time."""

    search: SearchService
    workspace: Workspace
    clock: Callable[[], datetime] = utc_now
    text_hashes: TextHashes = field(default_factory=TextHashes)

    @retry_if_erased
    def judge(self, given: FeedbackGiven, caller: Caller) -> tuple[FeedbackRecord, bool]:
        """Store a verdict under the caller's name. Return the stored event, and whether it is new.

        Raises:
            UnknownCompany, AmbiguousCompany: a name matches no company, or several.
            EventConflict: an event with this id has other content.
            InvalidInput: both are the same company.
            ErasedMeanwhile: companies were erased meanwhile, at each try.
        """
        mark = self.workspace.erasure_mark()  # before the companies are looked up
        event = FeedbackEvent(
            id=given.id or uuid.uuid4().hex,
            user=caller.name,
            at=self._next_moment(caller.name),
            anchor=self._id_of(given.anchor),
            hit=self._id_of(given.hit),
            verdict=given.verdict,
            shown=Shown(**given.model_dump(include={each.name for each in fields(Shown)})),
            note=given.note,
        )
        kept = self.workspace.add_event(event, since=mark)
        return record_of(kept), kept == event

    def feedback(self, query: FeedbackQuery, caller: Caller) -> Feedback:
        """Return one page of the history, and the valid verdicts on pairs with the anchor.

        Raises:
            UnknownCompany, AmbiguousCompany: the name matches no company, or several.
            Problem: the cursor is invalid.
        """
        before = None if query.cursor is None else _place_of(query.cursor)
        anchor = None if query.anchor is None else self._id_of(query.anchor)
        found = self.workspace.events(company=anchor or "", user=query.user or "", before=before)
        page = list(islice(found, query.limit + 1))
        return Feedback(
            anchor=anchor,
            verdicts=[] if anchor is None else self._verdicts(anchor, caller.name if query.who == "mine" else ""),
            events=[record_of(event) for event in page[: query.limit]],
            next_cursor=_cursor_of(page[-2].place) if len(page) > query.limit else None,
        )

    def text_pairs(self) -> Iterator[PairRecord]:
        """Return the labelled pairs with both texts, as `training` reads them, without deleted companies.

        The texts are read again for each few rows, because the texts of all companies may not fit into memory. A row is
        left out if a text has changed or gone meanwhile: its label was decided with the former text. Everything else
        that can fail, except the index, is done before this returns.
        """
        rows, hashes = self._rows()
        return self._text_records(rows, hashes)

    def id_pairs(self) -> Iterator[PairRecord]:
        """Return the labelled pairs with both ids. As in `text_pairs`, hashes show which texts are equal."""
        rows, _ = self._rows()
        return (id_record(row) for row in rows)

    def _text_records(self, rows: Sequence[JudgedPair], hashes: Mapping[str, str]) -> Iterator[PairRecord]:
        for start in range(0, len(rows), COMPANIES_PER_READ // 2):
            part = rows[start : start + COMPANIES_PER_READ // 2]
            texts = {
                company_id: text
                for company_id, document in self._documents(_companies_of(part)).items()
                if text_hash(text := embedding_text(document.company)) == hashes[company_id]
            }
            yield from (text_record(row, texts) for row in part if row.anchor in texts and row.hit in texts)

    def _verdicts(self, anchor: str, user: str) -> list[VerdictRecord]:
        events = self.search.valid_events(anchor, user)
        return [
            VerdictRecord(
                hit=event.hit if event.anchor == anchor else event.anchor,
                verdict=event.verdict,
                user=event.user,
                at=event.at,
                note=event.note,
            )
            for event in sorted(events, key=lambda event: event.place, reverse=True)
        ]

    def _rows(self) -> tuple[list[JudgedPair], dict[str, str]]:
        """Return the judged pairs, and the hashes of the texts by company id."""
        rows = judged_pairs(latest_verdicts(self.workspace.events()))
        hashes: dict[str, str] = {}
        ids = _companies_of(rows)
        for start in range(0, len(ids), COMPANIES_PER_READ):
            hashes |= self.text_hashes.of(self._documents(ids[start : start + COMPANIES_PER_READ]))
        return with_consistent_texts(rows, hashes), hashes

    def _documents(self, ids: Sequence[str]) -> dict[str, EmbeddedCompany]:
        """Return the companies that the live generation holds, by id."""
        return retry_if_retired(partial(self._live_documents, ids))

    def _live_documents(self, ids: Sequence[str]) -> dict[str, EmbeddedCompany]:
        return self.search.searcher.index.get(self.search.searcher.index.live().name, ids)

    def _id_of(self, reference: str) -> str:
        [company_id] = self.search.ids_of([reference])
        return company_id

    def _next_moment(self, user: str) -> datetime:
        """Return the time of a user's new event: after their newest one, even if another process's clock is ahead."""
        newest = next(self.workspace.events(user=user), None)
        return self.clock() if newest is None else max(self.clock(), newest.at + TICK)


def record_of(event: FeedbackEvent) -> FeedbackRecord:
    """Return the response model of an event."""
    members = asdict(event)
    return FeedbackRecord(**members.pop("shown"), **members)


def _companies_of(rows: Iterable[JudgedPair]) -> list[str]:
    return sorted({company for row in rows for company in (row.anchor, row.hit)})


def _cursor_of(place: Place) -> str:
    moment, user, event_id = place
    return base64.urlsafe_b64encode(json.dumps([microseconds(moment), user, event_id]).encode()).decode()


def _place_of(cursor: str) -> Place:
    try:
        stored, user, event_id = read_json(base64.urlsafe_b64decode(cursor))
        f"{user}{event_id}".encode()  # no store accepts a lone surrogate
        return time_of(int(stored)), str(user), str(event_id)
    except (binascii.Error, ValueError, TypeError, OverflowError) as error:
        reason = "is not a cursor of this service; send `next_cursor` of the page before, or omit it"
        raise invalid_request([{"loc": ("query", "cursor"), "msg": reason}]) from error
