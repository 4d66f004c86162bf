"""RFC 9457 problem documents.

`type` points into the manual, where the kind's `meaning` says what to do. Internals (paths, traces) go to the log,
never into a document.
"""

from fastapi import Response
from pydantic import BaseModel, Field

from similarity.company import Company

from .problems import CONTESTED_NAME, INVALID_REQUEST, UNKNOWN_COMPANY, Kind

MEDIA_TYPE = "application/problem+json"


class CompanyReference(BaseModel):
    """Just enough of a company to choose it."""

    id: str = Field(examples=["delta-air-lines"])
    name: str = Field(examples=["Delta Air Lines, Inc."])
    domain: str = Field(default="", examples=["delta.com"])
    country: str = Field(default="", examples=["United States"])
    industry: str = Field(default="", examples=["Airlines"])


class Offence(BaseModel):
    """What is wrong with one parameter."""

    parameter: str = Field(examples=["k"])
    where: str = Field(description="`query`, `path` or `body`.", examples=["query"])
    reason: str = Field(examples=["must be at most 250"])


class ProblemDocument(BaseModel):
    """An RFC 9457 problem document."""

    type: str = Field(
        description="Names the kind of problem and links to its meaning.", examples=["/docs#internal-error"]
    )
    title: str = Field(examples=["Internal error"])
    status: int = Field(description="The HTTP status again.", examples=[500])
    detail: str = Field(description="What went wrong this time, and what to do.")
    instance: str = Field(description="The path that was asked.", examples=["/similar/nike"])


class UnknownCompanyDocument(ProblemDocument):
    """404: no company goes by that name."""

    suggestions: list[CompanyReference] = Field(description="Companies that look alike, best first; may be empty.")


class ContestedNameDocument(ProblemDocument):
    """409: several companies go by that name."""

    candidates: list[CompanyReference] = Field(description="The first of those that do, by id.")


class InvalidRequestDocument(ProblemDocument):
    """422: the parameters are wrong."""

    errors: list[Offence]


def reference_of(company: Company) -> CompanyReference:
    """Just enough of a company to choose it."""
    return CompanyReference(
        id=company.id, name=company.name, domain=company.domain, country=company.country, industry=company.industry
    )


class Problem(Exception):
    """Ends a request with a problem document; `extras` are its further members.

    `retry_after`: seconds after which to ask again, where that is not what its kind says.
    """

    def __init__(
        self,
        kind: Kind,
        detail: str,
        retry_after: int | None = None,
        /,
        **extras: list[CompanyReference] | list[Offence],
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.retry_after = kind.retry_after if retry_after is None else retry_after
        self.extras = extras


DOCUMENTS: dict[str, type[ProblemDocument]] = {
    UNKNOWN_COMPANY.slug: UnknownCompanyDocument,
    CONTESTED_NAME.slug: ContestedNameDocument,
    INVALID_REQUEST.slug: InvalidRequestDocument,
}


def problem_document(problem: Problem, *, path: str) -> ProblemDocument:
    """The document for the request for `path` that ran into `problem`."""
    kind = problem.kind
    return DOCUMENTS.get(kind.slug, ProblemDocument).model_validate(
        {
            "type": f"/docs#{kind.slug}",
            "title": kind.title,
            "status": kind.status,
            "detail": problem.detail,
            "instance": path,
            **problem.extras,
        }
    )


def problem_response(problem: Problem, *, path: str, headers: dict[str, str] | None = None) -> Response:
    """The answer to the request for `path` that ran into `problem`."""
    kind = problem.kind
    retry = {} if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}
    return Response(
        problem_document(problem, path=path).model_dump_json(),
        status_code=kind.status,
        headers={**retry, **(headers or {})},
        media_type=MEDIA_TYPE,
    )
