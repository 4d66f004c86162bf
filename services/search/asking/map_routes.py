"""The routes of the map. They only translate between HTTP and the service.

The index blocks; therefore these are functions without `async`, which the server runs on worker threads.
"""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from ..guards.callers import Scope, needs
from ..wire.bodies import StrictRoute
from ..wire.declarations import BODY_PROBLEMS, Responses, declared
from ..wire.etags import with_etag
from .maps import Map, MapQuery, MapService
from .question_schemas import Question
from .schemas import NoQuery
from .similar_routes import ASKED, ETAG, JSON, QUESTION_PROBLEMS, UNCHANGED, Reference

DRAWN: Responses = {200: {"description": "The map", "headers": {"ETag": ETAG}}, **UNCHANGED}


def map_routes(service: MapService) -> APIRouter:
    """Return the routes on `service`."""
    router = APIRouter(tags=["Competitors"], route_class=StrictRoute, dependencies=[needs(Scope.READ)])

    @router.get(
        "/map/{company_id:path}",
        summary="Competitors of a company on a map",
        response_model=Map,
        responses={**DRAWN, **declared(*QUESTION_PROBLEMS)},
    )
    def map_company(request: Request, company_id: Reference, query: Annotated[MapQuery, Query()]) -> Response:
        """Returns the hits of `GET /similar/{company_id}` with the same parameters, on the two axes along which they
        differ most (principal components). `reasons` and `fields` have no effect here.
        """
        return drawn(request, service.map_of_company(company_id, query))

    @router.post(
        "/map",
        summary="Competitors on a map, asked in full",
        response_model=Map,
        responses={**DRAWN, **declared(*QUESTION_PROBLEMS, *BODY_PROBLEMS)},
    )
    def map_question(
        request: Request, question: Annotated[Question, ASKED], _: Annotated[NoQuery, Query()]
    ) -> Response:
        """Returns the hits of `POST /similar` to the same query on a plane, with its anchors and negatives."""
        return drawn(request, service.map_of(question))

    return router


def drawn(request: Request, answer: Map) -> Response:
    """Return a map as JSON; 304 if the client has it already."""
    return with_etag(request, Response(answer.model_dump_json(), media_type=JSON))
