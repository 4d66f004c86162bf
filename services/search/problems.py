"""Every error the service answers, as an RFC 9457 problem document.

`type` points into the manual, where `meaning` says what to do. Internals (paths, traces) go to the
log, never into a document.
"""

from dataclasses import dataclass

from fastapi import Response
from pydantic import BaseModel, Field

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of problem; `slug` names its place in the manual, `meaning` says what to do."""

    slug: str
    status: int
    title: str
    meaning: str
    retry_after: int | None = None


UNKNOWN_ADDRESS = Kind(
    slug="unknown-address",
    status=404,
    title="No such address",
    meaning="Nothing answers at this path. This page lists what does.",
)
UNKNOWN_COMPANY = Kind(
    slug="unknown-company",
    status=404,
    title="Unknown company",
    meaning="No company has this id, domain, name or alias. `suggestions` holds companies that look alike; "
    "`GET /companies?q=` finds more.",
)
METHOD_NOT_ALLOWED = Kind(
    slug="method-not-allowed",
    status=405,
    title="Method not allowed",
    meaning="The address exists but takes another method; the `Allow` header says which.",
)
CONTESTED_NAME = Kind(
    slug="contested-name",
    status=409,
    title="Several companies go by that name",
    meaning="Ask again with the id of one of `candidates`.",
)
INVALID_REQUEST = Kind(
    slug="invalid-request",
    status=422,
    title="Invalid request",
    meaning="A parameter is missing, unknown or out of range; `errors` names each with the reason.",
)
OTHER_REFUSAL = Kind(
    slug="refused",
    status=400,
    title="Request refused",
    meaning="The server cannot take this request as it is; `detail` says why.",
)
INTERNAL_ERROR = Kind(
    slug="internal-error",
    status=500,
    title="Internal error",
    meaning="A fault of the service, not of the request. Its log holds the trace.",
)
INDEX_UNAVAILABLE = Kind(
    slug="index-unavailable",
    status=503,
    title="The index does not answer",
    meaning="The store behind the service cannot be read just now. The service's log says why.",
    retry_after=5,
)
NO_LIVE_GENERATION = Kind(
    slug="no-live-generation",
    status=503,
    title="The index holds no companies yet",
    meaning="Fill it with `similarity ingest FILE`; the service need not be restarted.",
    retry_after=30,
)
GENERATION_GONE = Kind(
    slug="generation-gone",
    status=503,
    title="The index is being replaced",
    meaning="The live generation was retired twice while one question was answered. Ask again.",
    retry_after=1,
)
ENCODER_NOT_LOADED = Kind(
    slug="encoder-not-loaded",
    status=503,
    title="Free text needs an encoder that is not loaded",
    meaning="Questions by company work without it. Start the service with the bundle of the live generation "
    "(`--bundle FOLDER` or SIMILARITY_BUNDLE), or ingest again with the loaded one.",
    retry_after=300,
)
KINDS = (
    OTHER_REFUSAL,
    UNKNOWN_ADDRESS,
    UNKNOWN_COMPANY,
    METHOD_NOT_ALLOWED,
    CONTESTED_NAME,
    INVALID_REQUEST,
    INTERNAL_ERROR,
    INDEX_UNAVAILABLE,
    NO_LIVE_GENERATION,
    GENERATION_GONE,
    ENCODER_NOT_LOADED,
)


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
    where: str = Field(description="`query` or `path`.", examples=["query"])
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


class Problem(Exception):
    """Ends a request with a problem document; `extras` are its further members."""

    def __init__(self, kind: Kind, detail: str, **extras: list[CompanyReference] | list[Offence]) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.extras = extras


DOCUMENTS: dict[str, type[ProblemDocument]] = {
    UNKNOWN_COMPANY.slug: UnknownCompanyDocument,
    CONTESTED_NAME.slug: ContestedNameDocument,
    INVALID_REQUEST.slug: InvalidRequestDocument,
}


def problem_response(problem: Problem, *, path: str, headers: dict[str, str] | None = None) -> Response:
    """The answer to the request for `path` that ran into `problem`."""
    kind = problem.kind
    document = DOCUMENTS.get(kind.slug, ProblemDocument).model_validate(
        {
            "type": f"/docs#{kind.slug}",
            "title": kind.title,
            "status": kind.status,
            "detail": problem.detail,
            "instance": path,
            **problem.extras,
        }
    )
    retry = {} if kind.retry_after is None else {"Retry-After": str(kind.retry_after)}
    return Response(
        document.model_dump_json(),
        status_code=kind.status,
        headers={**retry, **(headers or {})},
        media_type=MEDIA_TYPE,
    )
