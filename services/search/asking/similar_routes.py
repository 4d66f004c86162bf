"""The routes that return competitors. They parse requests, call the service and return its answer.

Calls to the index block, so the routes are plain functions (not `async`), which run on the server's worker threads.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Request, Response

from similarity.company import MAX_NAME_CHARACTERS, utc_now

from ..guards.callers import CALLER, LOCAL, Scope, needs
from ..wire import problems
from ..wire.bodies import StrictRoute
from ..wire.declarations import BODY_PROBLEMS, NAME_PROBLEMS, Responses, declared
from ..wire.etags import NOT_MODIFIED, with_etag
from ..wire.tables import CSV, TABLE_CONTENT, Format, names_header, table_response, wanted_format
from .question_schemas import Anchor, Batch, Criteria, FormatQuery, Question, SimilarQuery, TextQuery
from .question_sheet import SHEET, question_rows
from .ranking_schemas import BatchAnswer, Ranking, SimilarToCompany, SimilarToText
from .ranking_tables import csv_rows, file_name, xlsx_rows
from .schemas import NoQuery
from .service import SearchService

JSON = "application/json"

Reference = Annotated[
    str,
    Path(
        min_length=1,
        max_length=MAX_NAME_CHARACTERS,
        description="A company's id, domain, name or alias.",
        examples=["nike"],
    ),
]
ASKED = Body(
    openapi_examples={
        "several": {
            "summary": "Like both, unlike a third, in two countries",
            "value": {
                "anchors": [{"company": "nike", "weight": 2.0}, {"text": "makes shoes for climbers"}],
                "negatives": [{"company": "foot-locker"}],
                "filters": [{"field": "country", "any_of": ["Germany", "Japan"]}],
                "exclude": ["adidas"],
                "k": 5,
            },
        }
    }
)
QUESTION_PROBLEMS = (
    *NAME_PROBLEMS,
    problems.ENCODER_NOT_LOADED,
    problems.CURSOR_EXPIRED,
    problems.WRONG_CURSOR,
    problems.NO_CALIBRATION,
    problems.TOO_FEW_WORDS,
    problems.UNKNOWN_LIST,
    problems.WRONG_KIND_OF_LIST,
)
TABLE: dict[str, Any] = {
    "schema": {"type": "string"},
    "example": "rank,id,name,domain,country,industry,score,probability,reason,warning\r\n",
}
ETAG = {
    "description": "Send it as `If-None-Match` to get status 304 if nothing has changed.",
    "schema": {"type": "string"},
}
UNCHANGED: Responses = {NOT_MODIFIED: {"description": "The answer is still the one that `If-None-Match` names"}}
RANKED: Responses = {
    200: {"description": "The hits, best first", "content": {**TABLE_CONTENT, CSV: TABLE}, "headers": {"ETag": ETAG}},
}


def similar_routes(service: SearchService) -> APIRouter:
    """Return the routes on `service`."""
    router = APIRouter(tags=["Competitors"], route_class=StrictRoute, dependencies=[needs(Scope.READ)])

    @router.get(
        "/similar/{company_id:path}",
        summary="Competitors of a company",
        response_model=SimilarToCompany,
        responses={**RANKED, **UNCHANGED, **declared(*QUESTION_PROBLEMS)},
    )
    def similar(request: Request, company_id: Reference, query: Annotated[SimilarQuery, Query()]) -> Response:
        """Returns the companies nearest to this one by their descriptions, best first, without the company itself.

        Compares stored vectors; only `reasons` runs the encoder. `redirected_from` is set if the path
        contains a domain, name or alias, not the id; `confidence` says how sure it is that this company is meant.
        """
        ranking = service.similar_to_company(company_id, query)
        return ranked(service, request, ranking, query.format, lambda: query.question(Anchor(company=company_id)))

    @router.get(
        "/similar",
        summary="Companies like a description",
        response_model=SimilarToText,
        responses={**RANKED, **UNCHANGED, **declared(*QUESTION_PROBLEMS)},
    )
    def similar_text(request: Request, query: Annotated[TextQuery, Query()]) -> Response:
        """Returns the companies nearest to a description in your own words.

        Needs the encoder of the live generation; `/readyz` says whether it is loaded.
        """
        ranking = service.similar_to_text(query)
        return ranked(service, request, ranking, query.format, lambda: query.question(Anchor(text=query.text)))

    @router.post(
        "/similar",
        summary="Competitors of a query",
        response_model=Ranking,
        responses={**RANKED, **declared(*QUESTION_PROBLEMS, *BODY_PROBLEMS)},
    )
    def similar_question(
        request: Request, question: Annotated[Question, ASKED], query: Annotated[FormatQuery, Query()]
    ) -> Response:
        """Returns the companies nearest to a query, which may have several anchors with weights (companies or free
        texts), negatives, filters, ranges, and more exclusions than a URL can hold.

        `misses` lists the anchors and negatives that cannot be used; if no anchor can be used, the answer is a problem.
        """
        return ranked(service, request, service.rank(question), query.format, lambda: question)

    @router.post(
        "/similar/batch",
        summary="Several queries at once",
        response_model=BatchAnswer,
        responses=declared(*QUESTION_PROBLEMS, *BODY_PROBLEMS),
    )
    def similar_batch(batch: Batch, _: Annotated[NoQuery, Query()]) -> Response:
        """Returns the rankings of up to 100 queries, in order and from one generation, each with its own status.

        `reasons` is 0 by default here, and at most 50 for all queries together.
        """
        return Response(service.rank_all(batch).model_dump_json(), media_type=JSON)

    return router


def _with_notes(table: Response, ranking: Ranking) -> Response:
    """Add the misses and warnings of a ranking, which a table cannot hold, as headers of its response."""
    if ranking.misses:
        table.headers["Misses"] = names_header(each.asked for each in ranking.misses)
    if ranking.warnings:
        table.headers["Warnings"] = names_header(ranking.warnings)
    return table


def ranked(
    service: SearchService,
    request: Request,
    ranking: Ranking,
    chosen: Format | None,
    question: Callable[[], Criteria],
    *,
    further: Sequence[str] = (),
) -> Response:
    """Return a ranking as JSON, or as a table if the request asks for one; 304 if the client has it already.

    `further`: members that only these hits have, for the table. XLSX also has the caller's verdicts and notes, and a
    sheet with the query.
    """
    wanted = wanted_format(chosen, request.headers.get("accept", ""))
    if wanted == "xlsx":
        anchor = next((each.company.id for each in ranking.anchors if each.company), None)
        verdicts = service.verdicts(anchor, request.scope.get(CALLER, LOCAL).name) if anchor else {}
        # Without an ETag, because the file contains the time at which it was made.
        sheets = {SHEET: question_rows(question(), ranking, at=utc_now())}
        rows = xlsx_rows(ranking, verdicts, further)
        return _with_notes(table_response(rows, wanted, name=file_name(ranking), sheets=sheets), ranking)
    if wanted == "csv":
        response = _with_notes(table_response(csv_rows(ranking, further), wanted, name=file_name(ranking)), ranking)
    else:
        # A sixth faster than serialization by FastAPI (benchmarks/service.py).
        response = Response(ranking.model_dump_json(), media_type=JSON, headers={"Vary": "Accept"})
    return with_etag(request, response)
