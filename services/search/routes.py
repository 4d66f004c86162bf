"""The addresses of the service. They only translate: parse, ask the service, hand back its answer.

The index blocks, so these are plain functions and run on the server's worker threads.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from services.search import problems
from services.search.problems import DOCUMENTS, Kind, ProblemDocument
from services.search.schemas import (
    Alive,
    CompanyAnswer,
    FindQuery,
    FoundCompanies,
    NoQuery,
    Ranking,
    Ready,
    SimilarQuery,
    SimilarToCompany,
    SimilarToText,
    TextQuery,
)
from services.search.service import SearchService
from similarity.company import MAX_NAME_CHARACTERS

Responses = dict[int | str, dict[str, Any]]

Reference = Annotated[
    str,
    Path(
        min_length=1,
        max_length=MAX_NAME_CHARACTERS,
        description="A company's id; its domain, name or an alias will do as well.",
        examples=["nike"],
    ),
]


def declared(*kinds: Kind) -> Responses:
    """The OpenAPI entries of the problems a route may answer, by status."""
    by_status: Responses = {}
    for kind in kinds:
        known = by_status.get(kind.status)
        by_status[kind.status] = {
            "model": DOCUMENTS.get(kind.slug, ProblemDocument),
            "description": f"{known['description']} / {kind.title}" if known else kind.title,
        }
    return by_status


STORE_PROBLEMS = (
    problems.INVALID_REQUEST,
    problems.INTERNAL_ERROR,
    problems.INDEX_UNAVAILABLE,
    problems.NO_LIVE_GENERATION,
    problems.GENERATION_GONE,
)
NAME_PROBLEMS = (problems.UNKNOWN_COMPANY, problems.CONTESTED_NAME, *STORE_PROBLEMS)


def ranking_response(ranking: Ranking) -> Response:
    """A ranking as finished JSON; a sixth quicker than leaving it to FastAPI (benchmarks/service.py)."""
    return Response(ranking.model_dump_json(), media_type="application/json")


def search_routes(service: SearchService) -> APIRouter:
    """The API on `service`."""
    router = APIRouter()

    @router.get(
        "/similar/{company_id:path}",
        tags=["Competitors"],
        summary="Competitors of a company",
        response_model=SimilarToCompany,
        responses=declared(*NAME_PROBLEMS),
    )
    def similar_to_company(company_id: Reference, query: Annotated[SimilarQuery, Query()]) -> Response:
        """The companies whose descriptions are nearest to this one's, best first, without itself.

        Uses the stored vector: no model runs. `redirected_from` is set where a domain, name or alias
        was asked for instead of the id.
        """
        return ranking_response(service.similar_to_company(company_id, query))

    @router.get(
        "/similar",
        tags=["Competitors"],
        summary="Companies like a description",
        response_model=SimilarToText,
        responses=declared(*STORE_PROBLEMS, problems.ENCODER_NOT_LOADED),
    )
    def similar_to_text(query: Annotated[TextQuery, Query()]) -> Response:
        """The companies nearest to a description in your own words.

        Needs the encoder of the live generation; `/readyz` says whether it is loaded.
        """
        return ranking_response(service.similar_to_text(query))

    @router.get("/companies", tags=["Companies"], summary="Find companies", responses=declared(*STORE_PROBLEMS))
    def find_companies(query: Annotated[FindQuery, Query()]) -> FoundCompanies:
        """Companies by domain, by the start of a name or alias, then by words; for search boxes."""
        return service.find(query)

    @router.get(
        "/companies/{company_id:path}",
        tags=["Companies"],
        summary="One company",
        responses=declared(*NAME_PROBLEMS),
    )
    def company(company_id: Reference, _: Annotated[NoQuery, Query()]) -> CompanyAnswer:
        """A company by its id, domain, name or alias."""
        return service.company(company_id)

    @router.get("/healthz", tags=["Operation"], summary="Is the process alive?")
    def healthz() -> Alive:
        """Always 200 while the process runs; touches nothing else."""
        return Alive()

    @router.get("/readyz", tags=["Operation"], summary="Can it answer?", responses=declared(*STORE_PROBLEMS[1:]))
    def readyz() -> Ready:
        """200 while the index answers and holds a live generation; names its encoder and the loaded one."""
        return service.ready()

    return router
