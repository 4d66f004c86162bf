"""The routes of feedback: they parse requests, call the service and return its answer."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from similarity.feedback.labels import ID_COLUMNS, TEXT_COLUMNS

from ..asking.schemas import NoQuery
from ..guards.callers import Caller, Scope, needs
from ..wire import problems
from ..wire.bodies import StrictRoute
from ..wire.declarations import BODY_PROBLEMS, NAME_PROBLEMS, STORE_PROBLEMS, Responses, declared
from ..wire.tables import CSV, csv_lines, wanted_format
from .feedback import FeedbackService, PairRecord
from .feedback_next import NextService
from .feedback_schemas import Feedback, FeedbackGiven, FeedbackQuery, FeedbackRecord, NextQuery, PairsQuery, Suggestions

JSONL = "application/x-ndjson"
LINES_PER_CHUNK = 100
CHARACTERS_PER_CHUNK = 1_000_000

FeedbackCaller = Annotated[Caller, needs(Scope.FEEDBACK)]
Accept = Annotated[str, Header(include_in_schema=False)]

PAIRS_RESPONSE: Responses = {
    200: {
        "description": "One pair a row, as `training` reads it.",
        "content": {JSONL: {"schema": {"type": "string"}}, CSV: {"schema": {"type": "string"}}},
    }
}


def feedback_routes(service: FeedbackService, next_service: NextService) -> APIRouter:
    """Return the routes on these services."""
    router = APIRouter(tags=["Feedback"], route_class=StrictRoute)

    @router.post(
        "/feedback",
        summary="Judge a hit",
        status_code=201,
        responses={
            200: {"model": FeedbackRecord, "description": "The same event was stored before; nothing was added."},
            **declared(problems.EVENT_CONFLICT, problems.ERASED_MEANWHILE, *NAME_PROBLEMS, *BODY_PROBLEMS),
        },
    )
    def feedback_add(
        given: FeedbackGiven, _: Annotated[NoQuery, Query()], caller: FeedbackCaller, response: Response
    ) -> FeedbackRecord:
        """Stores whether a hit competes with an anchor, with your name and the time.

        You can judge a pair again: only your latest verdict counts, and `withdrawn` takes it back. If you send an `id`
        of your own, it is safe to send the event again.
        """
        record, is_new = service.judge(given, caller)
        if not is_new:
            response.status_code = 200
        return record

    @router.get("/feedback", summary="List feedback", responses=declared(*NAME_PROBLEMS))
    def feedback_get(query: Annotated[FeedbackQuery, Query()], caller: FeedbackCaller) -> Feedback:
        """Returns the valid verdicts on pairs with a company, and the history of events."""
        return service.feedback(query, caller)

    @router.get(
        "/feedback/pairs",
        summary="Export labelled pairs",
        response_class=Response,
        responses={**PAIRS_RESPONSE, **declared(*STORE_PROBLEMS)},
    )
    def feedback_pairs(query: Annotated[PairsQuery, Query()], _: FeedbackCaller, accept: Accept = "") -> Response:
        """Returns all judged pairs, as a file that `training` reads.

        A pair is labelled if all users agree on it, and unlabelled if they do not or one is unsure. Withdrawn verdicts
        do not count. Deleted companies are omitted.
        """
        texts = query.sides == "texts"
        records, columns = (service.text_pairs(), TEXT_COLUMNS) if texts else (service.id_pairs(), ID_COLUMNS)
        if query.format == "csv" or (query.format is None and wanted_format(None, accept) == "csv"):
            return _file(csv_of_pairs(records, columns), CSV, "pairs.csv")
        return _file((json.dumps(each, ensure_ascii=False) + "\n" for each in records), JSONL, "pairs.jsonl")

    @router.get(
        "/feedback/next", summary="Suggest pairs to judge", responses=declared(*NAME_PROBLEMS, problems.TOO_FEW_WORDS)
    )
    def feedback_next(query: Annotated[NextQuery, Query()], _: FeedbackCaller) -> Suggestions:
        """Returns unjudged pairs from which a model would learn most, each with the reason."""
        return next_service.next(query)

    return router


def csv_of_pairs(records: Iterable[PairRecord], columns: Sequence[str]) -> Iterator[str]:
    """Yield a header and one row per record."""
    return csv_lines(chain([columns], ([record[column] for column in columns] for record in records)))


def _file(lines: Iterator[str], media_type: str, name: str) -> Response:
    disposition = f'attachment; filename="{name}"'
    return StreamingResponse(_chunks(lines), media_type=media_type, headers={"Content-Disposition": disposition})


def _chunks(lines: Iterator[str]) -> Iterator[str]:
    """Yield many short or a few long lines at a time, because each chunk that is sent costs a change of threads."""
    chunk: list[str] = []
    characters = 0
    for line in lines:
        chunk.append(line)
        characters += len(line)
        if len(chunk) >= LINES_PER_CHUNK or characters >= CHARACTERS_PER_CHUNK:
            yield "".join(chunk)
            chunk, characters = [], 0
    if chunk:
        yield "".join(chunk)
