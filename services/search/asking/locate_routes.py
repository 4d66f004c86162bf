"""The route that locates a company in a ranking. It parses a request, calls the service and returns its answer.

Calls to the index block, so the route is a plain function (not `async`), which runs on the server's worker threads.
"""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response

from ..guards.callers import Scope, needs
from ..wire.bodies import StrictRoute
from ..wire.declarations import BODY_PROBLEMS, declared
from .question_schemas import Locate
from .ranking_schemas import Located
from .schemas import NoQuery
from .service import SearchService
from .similar_routes import JSON, QUESTION_PROBLEMS

LOCATE_BODY = Body(
    openapi_examples={
        "filtered": {
            "summary": "Where is PUMA among the competitors of Nike in Japan?",
            "value": {
                "anchors": [{"company": "nike"}],
                "filters": [{"field": "country", "any_of": ["Japan"]}],
                "company": "puma",
            },
        }
    }
)


def locate_routes(service: SearchService) -> APIRouter:
    """Return the route, which calls `service`."""
    router = APIRouter(tags=["Competitors"], route_class=StrictRoute, dependencies=[needs(Scope.READ)])

    @router.post(
        "/similar/locate",
        summary="Where a company is in a ranking, and why",
        response_model=Located,
        responses=declared(*QUESTION_PROBLEMS, *BODY_PROBLEMS),
    )
    def locate(question: Annotated[Locate, LOCATE_BODY], _: Annotated[NoQuery, Query()]) -> Response:
        """Returns the rank, scores and reasons of `company` in the ranking of a query, even if it is far down, or what
        removes it: a filter, an exclusion, the minimum probability, or a better hit that is the same company.
        """
        return Response(service.locate(question).model_dump_json(), media_type=JSON)

    return router
