"""The routes that change the index. All need the scope `write`.

They parse requests, call the services and return their answers.
"""

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from ..asking.schemas import NoQuery
from ..guards.callers import Caller, Scope, needs
from ..wire import problems
from ..wire.bodies import JSON, WHOLE_ID, Closed, body_of, described_body
from ..wire.declarations import BODY_PROBLEMS, Responses, declared
from ..wire.etags import refuse_preconditions
from .erasing import ErasureService
from .write_schemas import EVENT_TIME, BulkResult, CompanyBody, ErasureAnswer, Time, WriteAnswer, WriteStatus
from .write_service import WriteService

NDJSON = "application/x-ndjson"
BYTES = "application/octet-stream"
LINES = (NDJSON, "application/ndjson", "application/jsonl", "application/x-jsonlines", BYTES)

Writer = Annotated[Caller, needs(Scope.WRITE)]
Version = Annotated[int, Path(ge=0, lt=2**63, description="The `version` in the answer to the write.")]
CompanyId = Annotated[str, Path(pattern=WHOLE_ID, description="The company's id.", examples=["acme"])]
Nothing = Annotated[NoQuery, Query()]


class DeleteQuery(Closed):
    """The parameters of a delete."""

    event_time: Time | None = Field(default=None, description=EVENT_TIME, examples=["2026-01-31T12:00:00Z"])


WRITE_PROBLEMS = (
    problems.WRITES_OFF,
    problems.WRITE_REJECTED,
    problems.INVALID_REQUEST,
    problems.INDEX_UNAVAILABLE,
    problems.NO_LIVE_GENERATION,
    problems.WRITE_FAILED,
    problems.WRITE_ENCODER_MISSING,
)
LOCATION = {"Location": {"description": "Address of its state", "schema": {"type": "string"}}}
ACCEPTED: Responses = {
    202: {"model": WriteAnswer, "description": "Kafka holds it; the stream will store it", "headers": LOCATION}
}
ERASURE_ACCEPTED: Responses = {
    202: {"description": "No search finds the company; the rest continues", "headers": LOCATION}
}
LINES_DESCRIBED: Responses = {
    200: {
        "description": "A result for each line, in order",
        "content": {NDJSON: {"schema": {"type": "string"}, "example": '{"line":1,"id":"acme","outcome":"applied"}\n'}},
    }
}
BULK_EXAMPLE = '{"id":"acme","name":"Acme","description":"Makes anvils."}\n{"id":"old","deleted":true}\n'
BULK_BODY = described_body(NDJSON, {"type": "string"}, BULK_EXAMPLE)
# Generators of clients know this type, and not NDJSON.
BULK_BODY["requestBody"]["content"][BYTES] = {"schema": {"type": "string", "format": "binary"}}


def write_routes(writes: WriteService) -> APIRouter:
    """Return the routes that add, change and delete companies."""
    router = APIRouter(tags=["Writing"], dependencies=[Depends(refuse_preconditions)])

    @router.put(
        "/companies/{company_id}",
        summary="Add or change a company",
        response_model=WriteAnswer,
        responses={**ACCEPTED, **declared(*WRITE_PROBLEMS, problems.WRITE_CONFLICT, *BODY_PROBLEMS)},
        openapi_extra=described_body(JSON, CompanyBody.model_json_schema()),
    )
    def company_put(
        _: Writer, company_id: CompanyId, query: Nothing, body: Annotated[bytes, body_of(JSON)]
    ) -> Response:
        """Stores the whole company: omitted members become empty.

        After 200 the write is durable in every generation. If the same write is sent again with the same `event_time`,
        the outcome is `unchanged`; if a newer version is stored, it is `superseded`, and nothing changes. Without an
        `event_time` it replaces what is stored, or the answer is a problem. `If-Match` and `If-None-Match` are refused.
        """
        return _written(writes.put(company_id, body))

    @router.delete(
        "/companies/{company_id}",
        summary="Delete a company",
        response_model=WriteAnswer,
        responses={**ACCEPTED, **declared(*WRITE_PROBLEMS, problems.WRITE_CONFLICT)},
    )
    def company_delete(_: Writer, company_id: CompanyId, query: Annotated[DeleteQuery, Query()]) -> Response:
        """Deletes a company, and stores the deletion, so that a late, older write does not restore it.

        An unknown id can be deleted too; then `warnings` say that no company has it. The company's words stay on disk
        until the store rewrites its files; `POST /companies/{company_id}/erasure` removes them.
        """
        return _written(writes.delete(company_id, query.event_time))

    @router.get(
        "/companies/{company_id}/writes/{version}",
        summary="State of a write",
        responses=declared(problems.INVALID_REQUEST, problems.INDEX_UNAVAILABLE, problems.NO_LIVE_GENERATION),
    )
    def write_status(_: Writer, company_id: CompanyId, version: Version, query: Nothing) -> WriteStatus:
        """Compares the version of a write with the version in the live generation, including deletions.

        A write that the stream could not store stays `accepted`; a dead letter says why. Of two writes with the same
        version and different content, the second is a dead letter, although its state is `applied`.
        """
        return writes.status(company_id, version)

    @router.post(
        "/companies/bulk",
        summary="Write many companies",
        response_class=StreamingResponse,
        responses={**LINES_DESCRIBED, **declared(*WRITE_PROBLEMS, *BODY_PROBLEMS)},
        openapi_extra=BULK_BODY,
    )
    def companies_bulk(_: Writer, query: Nothing, body: Annotated[bytes, body_of(*LINES)]) -> Response:
        """Accepts NDJSON: one company per line, with its `id`; `"deleted": true` deletes it.

        Returns one line of JSON for each, in order, while they are written: `{"line", "id", "outcome", "reason"}`, and
        `"status"` if it is accepted. An invalid line does not affect others. If the connection breaks, lines without a
        result may or may not be stored; sending all again is harmless. At most 10,000 lines and 10 MB.
        """
        return StreamingResponse(_lines(writes.bulk(body)), media_type=NDJSON)

    return router


def erasure_routes(erasures: ErasureService) -> APIRouter:
    """Return the routes that erase a company and return the state of its erasure."""
    router = APIRouter(tags=["Writing"], dependencies=[Depends(refuse_preconditions)])

    @router.post(
        "/companies/{company_id}/erasure",
        summary="Erase a company everywhere",
        status_code=202,
        responses={**ERASURE_ACCEPTED, **declared(*WRITE_PROBLEMS)},
    )
    def company_erase(_: Writer, company_id: CompanyId, query: Nothing, response: Response) -> ErasureAnswer:
        """Erases a company from every generation, from feedback and lists, and from the disk.

        In Kafka mode a delete is published too. After the answer no search finds the company. The rest continues in the
        background, which may take minutes; `Location` has its state. It may be repeated. An id that is not stored can
        be erased too, because feedback and lists may mention it; then `warnings` say so.
        """
        answer = erasures.erase(company_id)
        response.headers["Location"] = f"/companies/{company_id}/erasure"
        return answer

    @router.get(
        "/companies/{company_id}/erasure",
        summary="State of an erasure",
        responses=declared(problems.UNKNOWN_ERASURE, problems.INVALID_REQUEST, problems.INDEX_UNAVAILABLE),
    )
    def erasure_status(_: Writer, company_id: CompanyId, query: Nothing) -> ErasureAnswer:
        """The state of the last erasure of this id. `remaining` lists what the service cannot reach."""
        return erasures.status(company_id)

    return router


def _written(answer: WriteAnswer) -> Response:
    status = 202 if answer.status else 200
    headers = {"Location": answer.status} if answer.status else {}
    return Response(_json(answer), status_code=status, media_type=JSON, headers=headers)


def _lines(parts: Iterator[list[BulkResult]]) -> Iterator[str]:
    for results in parts:
        yield "".join(f"{_json(result)}\n" for result in results)


def _json(result: WriteAnswer | BulkResult) -> str:
    return result.model_dump_json(exclude=set() if result.status else {"status"})
