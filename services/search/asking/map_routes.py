"""The routes of the map. They parse requests, call the service and return its answer.

Calls to the index block, so the routes are plain functions (not `async`), which run on the server's worker threads.
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

MAP_RESPONSES: Responses = {200: {"description": "The map", "headers": {"ETag": ETAG}}, **UNCHANGED}


def map_routes(service: MapService) -> APIRouter:
    """Return the routes on `service`."""
    router = APIRouter(tags=["Competitors"], route_class=StrictRoute, dependencies=[needs(Scope.READ)])

    @router.get(
        "/map/{company_id:path}",
        summary="Competitors of a company on a map",
        response_model=Map,
        responses={**MAP_RESPONSES, **declared(*QUESTION_PROBLEMS)},
    )
    def map_company(request: Request, company_id: Reference, query: Annotated[MapQuery, Query()]) -> Response:
        """Returns the company and its hits of `GET /similar/{company_id}` with the same parameters, on the two axes
        along which they differ most (principal components). `reasons` and `fields` have no effect here.
        """
        return map_response(request, service.map_of_company(company_id, query))

    @router.post(
        "/map",
        summary="Competitors of a query on a map",
        response_model=Map,
        responses={**MAP_RESPONSES, **declared(*QUESTION_PROBLEMS, *BODY_PROBLEMS)},
    )
    def map_question(
        request: Request, question: Annotated[Question, ASKED], _: Annotated[NoQuery, Query()]
    ) -> Response:
        """Returns the hits of `POST /similar` for the same query on a plane, with its anchors and negatives."""
        return map_response(request, service.map_of(question))

    return router


def map_response(request: Request, answer: Map) -> Response:
    """Return a map as JSON; 304 if the client has it already."""
    return with_etag(request, Response(answer.model_dump_json(), media_type=JSON))
