"""The route that matches lists of names and websites. It needs the scope `read`."""

from collections.abc import Callable, Mapping
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from ..asking.question_schemas import FormatQuery
from ..guards.callers import Caller, Scope, needs
from ..wire.bodies import JSON, body_of, media_type_of
from ..wire.declarations import BODY_PROBLEMS, STORE_PROBLEMS, declared
from ..wire.tables import CSV, TABLE_CONTENT, names_header, table_response, wanted_format
from .match_rows import ListRows, rows_of_json, rows_of_lines, rows_of_table
from .match_schemas import Matched, MatchedRow, MatchRequest
from .matching import MatchService

READERS: Mapping[str, Callable[[bytes], ListRows]] = {
    JSON: rows_of_json,
    CSV: rows_of_table,
    "text/plain": rows_of_lines,
}
COLUMNS = "row name domain country id matched_name matched_domain confidence how candidates miss".split()
EXAMPLES = {
    CSV: "name,website,country\nCoca Cola,https://www.coca-cola.com,United States\n",
    "text/plain": "Coca Cola\nnike.com\n",
}


def _request_body() -> dict[str, object]:
    """Return the OpenAPI description of the request body, which may have one of three media types."""
    text = {kind: {"schema": {"type": "string"}, "example": example} for kind, example in EXAMPLES.items()}
    schema = MatchRequest.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema}, **text}}}


def match_routes(service: MatchService) -> APIRouter:
    """Return the router of `POST /match`, which calls `service`."""
    router = APIRouter(tags=["Matching"])

    @router.post(
        "/match",
        summary="Match a list of names or websites",
        response_model=Matched,
        responses={
            200: {"content": TABLE_CONTENT},
            **declared(*BODY_PROBLEMS, *STORE_PROBLEMS),
        },
        openapi_extra=_request_body(),
    )
    def match(
        _: Annotated[Caller, needs(Scope.READ)],
        request: Request,
        query: Annotated[FormatQuery, Query()],
        body: Annotated[bytes, body_of(*READERS)],
    ) -> Response:
        """Finds the company for each row by its website, name or id; up to 5,000 rows.

        Send JSON, a CSV table with a column `name`, `domain` (`website`, `url`) or `id` (`ticker`, `symbol`; `country`
        decides between companies with the same name), or plain lines. `confidence` is the measured share of correct
        matches of the same kind. If no company or several match, the row is a miss with a reason and candidates.
        `unused_columns` (of a table: the header `Unused-Columns`, percent-encoded) names the columns that were not
        used.
        """
        matched = service.match(READERS[media_type_of(request, *READERS)](body))
        wanted = wanted_format(query.format, request.headers.get("accept", ""))
        if wanted != "json":
            table = table_response([COLUMNS, *map(_cells, matched.rows)], wanted, name="matched")
            if matched.unused_columns:
                table.headers["Unused-Columns"] = names_header(matched.unused_columns)
            return table
        return Response(matched.model_dump_json(), media_type=JSON, headers={"Vary": "Accept"})

    return router


def _cells(row: MatchedRow) -> tuple[str | float | None, ...]:
    name, domain = (row.company.name, row.company.domain) if row.company else ("", "")
    candidates = " ".join(each.id for each in row.candidates)
    sent = (row.row, row.asked.name or row.asked.id, row.asked.domain, row.asked.country)
    return (*sent, row.id, name, domain, row.confidence, row.how and row.how.value, candidates, row.miss)
