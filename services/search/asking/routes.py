"""The routes of queries, companies and health checks. They parse requests, call the service and return its answer.

Calls to the index block, so the routes are plain functions (not `async`), which run on the server's worker threads.
"""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from ..guards.callers import Scope, needs
from ..wire import problems
from ..wire.declarations import NAME_PROBLEMS, STORE_PROBLEMS, Responses, declared
from ..wire.etags import with_etag
from .locate_routes import locate_routes
from .ranking_schemas import CompanySegments
from .schemas import (
    Alive,
    CompanyAnswer,
    CompanyQuery,
    DeclaredAttributes,
    FindQuery,
    FoundCompanies,
    NoQuery,
    Ready,
    ResolveQuery,
)
from .service import SearchService
from .similar_routes import ETAG, JSON, UNCHANGED, Reference, similar_routes

FOUND: Responses = {200: {"description": "The company", "headers": {"ETag": ETAG}}, **UNCHANGED}


def search_routes(service: SearchService, feedback_trouble: Callable[[], str | None] = lambda: None) -> APIRouter:
    """Return the routes on `service`. `feedback_trouble`: returns why the store of feedback fails; None if it works."""
    router = APIRouter()
    router.include_router(similar_routes(service))
    router.include_router(locate_routes(service))

    @router.get(
        "/companies",
        tags=["Companies"],
        summary="Find companies",
        responses=declared(*STORE_PROBLEMS),
        dependencies=[needs(Scope.READ)],
    )
    def companies_find(query: Annotated[FindQuery, Query()]) -> FoundCompanies:
        """Finds companies by domain, by the beginning of a name or alias, or by a similar name, then by words."""
        return service.find(query)

    @router.get(
        "/attributes",
        tags=["Companies"],
        summary="Declared attributes",
        responses=declared(*STORE_PROBLEMS),
        dependencies=[needs(Scope.READ)],
    )
    def attributes(_: Annotated[NoQuery, Query()]) -> DeclaredAttributes:
        """Returns the types that were declared for attributes, and which of them is the size of a company."""
        return service.attributes()

    @router.get(
        "/companies/{company_id:path}",
        tags=["Companies"],
        summary="One company",
        response_model=CompanyAnswer,
        responses={**FOUND, **declared(*NAME_PROBLEMS)},
        dependencies=[needs(Scope.READ)],
    )
    def company_get(request: Request, company_id: Reference, query: Annotated[CompanyQuery, Query()]) -> Response:
        """Returns a company by its id, domain, name or alias, or by a similar name that is clearly the best match."""
        by_id = query.resolve == "id"
        found = service.stored(company_id) if by_id else service.company(company_id, exact=query.resolve == "exact")
        answer = Response(found.model_dump_json(), media_type=JSON)
        return with_etag(request, answer)

    @router.get(
        "/segments/{company_id:path}",
        tags=["Companies"],
        summary="Lines of business in the description of a company",
        responses=declared(*NAME_PROBLEMS, problems.ENCODER_NOT_LOADED),
        dependencies=[needs(Scope.READ)],
    )
    def segments(company_id: Reference, query: Annotated[ResolveQuery, Query()]) -> CompanySegments:
        """Returns numbered lines of business; `segment` of an anchor is one of these numbers. Runs the encoder."""
        return service.segments(company_id, exact=query.resolve == "exact")

    @router.get("/healthz", tags=["Operation"], summary="Is the process alive?")
    def healthz() -> Alive:
        """Returns 200 while the process runs; checks nothing else."""
        return Alive()

    # The first of STORE_PROBLEMS, INVALID_REQUEST, cannot occur: the route has no parameters.
    @router.get("/readyz", tags=["Operation"], summary="Can it answer?", responses=declared(*STORE_PROBLEMS[1:]))
    def readyz() -> Ready:
        """Returns 200 while the index answers and holds a live generation; names its encoder and the loaded one.

        If the store of feedback and lists does not answer, `feedback` is false and the status is still 200.
        """
        return service.ready(feedback_trouble)

    return router
