"""The addresses of feedback. They only translate: parse, ask the service, hand back its answer."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from similarity.feedback.labels import ID_COLUMNS, TEXT_COLUMNS

from ..asking.schemas import NoQuery
from ..guards.callers import Caller, Scope, needs
from ..wire import problems
from ..wire.bodies import StrictRoute
from ..wire.declarations import BODY_PROBLEMS, NAME_PROBLEMS, STORE_PROBLEMS, Responses, declared
from ..wire.tables import CSV, wants_csv
from .feedback import FeedbackService
from .feedback_next import NextService
from .feedback_rows import csv_lines, jsonl_lines
from .feedback_schemas import (
    Feedback,
    FeedbackGiven,
    FeedbackQuery,
    FeedbackRecord,
    NextQuery,
    PairsQuery,
    Suggestions,
)

JSONL = "application/x-ndjson"
LINES_PER_CHUNK = 100

FeedbackCaller = Annotated[Caller, needs(Scope.FEEDBACK)]
Accept = Annotated[str, Header(include_in_schema=False)]

PAIRS_RESPONSE: Responses = {
    200: {
        "description": "One pair a row, as `training` reads it.",
        "content": {JSONL: {"schema": {"type": "string"}}, CSV: {"schema": {"type": "string"}}},
    }
}


def feedback_routes(service: FeedbackService, next_service: NextService) -> APIRouter:
    """The API of feedback on these services."""
    router = APIRouter(tags=["Feedback"], route_class=StrictRoute)

    @router.post(
        "/feedback",
        summary="Judge a hit",
        status_code=201,
        responses={
            200: {"model": FeedbackRecord, "description": "The same event was sent before; nothing was added."},
            **declared(problems.EVENT_CONFLICT, *NAME_PROBLEMS, *BODY_PROBLEMS),
        },
    )
    def judge(
        given: FeedbackGiven, _: Annotated[NoQuery, Query()], caller: FeedbackCaller, response: Response
    ) -> FeedbackRecord:
        """Says whether a hit competes with an anchor; kept for good, with your name and the time.

        Change your mind by judging again: your latest verdict on a pair counts. `withdrawn` takes it back.
        With an `id` of your own the same event can be sent again without harm.
        """
        record, is_new = service.judge(given, caller)
        if not is_new:
            response.status_code = 200
        return record

    @router.get(
        "/feedback",
        summary="What was said",
        responses=declared(*NAME_PROBLEMS),
    )
    def feedback(query: Annotated[FeedbackQuery, Query()], caller: FeedbackCaller) -> Feedback:
        """The verdicts that count for a company, and the history of events."""
        return service.feedback(query, caller)

    @router.get(
        "/feedback/pairs",
        summary="Export labelled pairs",
        response_class=Response,
        responses={**PAIRS_RESPONSE, **declared(*STORE_PROBLEMS)},
    )
    def pairs(query: Annotated[PairsQuery, Query()], _: FeedbackCaller, accept: Accept = "") -> Response:
        """All judged pairs, as a file that `training` reads.

        A pair is labelled where all who judged it agree, and unlabelled where they do not or somebody is
        unsure. Withdrawn verdicts count for nothing. Companies that are no longer in the index are left out.
        """
        records = service.text_pairs() if query.sides == "texts" else service.id_pairs()
        if wants_csv(query.format, accept):
            columns = TEXT_COLUMNS if query.sides == "texts" else ID_COLUMNS
            return _file(csv_lines(records, columns), CSV, "pairs.csv")
        return _file(jsonl_lines(records), JSONL, "pairs.jsonl")

    @router.get(
        "/feedback/next",
        summary="What to judge next",
        responses=declared(*NAME_PROBLEMS),
    )
    def next_pairs(query: Annotated[NextQuery, Query()], _: FeedbackCaller) -> Suggestions:
        """Pairs that nobody has judged and that a model would learn most from, each with the reason."""
        return next_service.next(query)

    return router


def _file(lines: Iterator[str], media_type: str, name: str) -> Response:
    disposition = f'attachment; filename="{name}"'
    return StreamingResponse(_chunks(lines), media_type=media_type, headers={"Content-Disposition": disposition})


def _chunks(lines: Iterator[str]) -> Iterator[str]:
    """The lines, some at a time: each piece that is sent costs a change of threads."""
    while chunk := "".join(islice(lines, LINES_PER_CHUNK)):
        yield chunk
