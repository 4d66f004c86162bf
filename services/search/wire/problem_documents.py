"""RFC 9457 problem documents.

`type` links to the manual, where the kind's `meaning` says what to do. Internal details (paths, traces) go to the log,
never into a document.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Response
from pydantic import BaseModel, Field

from similarity.company import Company

from .problems import CONTESTED_NAME, INVALID_REQUEST, UNKNOWN_COMPANY, Kind

MEDIA_TYPE = "application/problem+json"
MAX_OFFENCES = 20
_SHOULD = re.compile(r"^(?:Input|String|List|Dictionary) should ")
MAX_NAME_CHARACTERS = 100
NO_OBJECT = "must be a JSON object"
REASONS: Mapping[str, str] = {
    "missing": "is missing",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "dict_type": NO_OBJECT,
    "list_type": "must be a list",
    "model_type": NO_OBJECT,
    "model_attributes_type": NO_OBJECT,
}
"""The reason shown for each of pydantic's error types; other types keep pydantic's text."""
PATTERN_REASONS: dict[str, str] = {r"\S": "must not be blank"}
"""The reason shown for a text that does not match a pattern, by the pattern; see `pattern_of`."""
UNKNOWN_PARAMETER = "there is no such parameter here; see /docs"


class CompanyReference(BaseModel):
    """The members of a company by which a person recognises it."""

    id: str = Field(examples=["delta-air-lines"])
    name: str = Field(examples=["Delta Air Lines, Inc."])
    domain: str = Field(default="", examples=["delta.com"])
    country: str = Field(default="", examples=["United States"])
    industry: str = Field(default="", examples=["Airlines"])


class Offence(BaseModel):
    """One invalid parameter, and the reason."""

    parameter: str = Field(examples=["k"])
    where: str = Field(description="`query`, `path` or `body`.", examples=["query"])
    reason: str = Field(examples=["must be at most 250"])


class ProblemDocument(BaseModel):
    """An RFC 9457 problem document."""

    type: str = Field(description="The kind of problem: a link to its meaning.", examples=["/docs#internal-error"])
    title: str = Field(examples=["Internal error"])
    status: int = Field(description="The HTTP status again.", examples=[500])
    detail: str = Field(description="The reason for this response, and what to do.")
    instance: str = Field(description="The path of the request.", examples=["/similar/nike"])


class UnknownCompanyDocument(ProblemDocument):
    """404: no company has that name."""

    suggestions: list[CompanyReference] = Field(
        description="Companies with similar names, best first, else those whose names begin alike; may be empty."
    )


class ContestedNameDocument(ProblemDocument):
    """409: several companies have that name."""

    candidates: list[CompanyReference] = Field(description="The first companies with that name, by id.")


class InvalidRequestDocument(ProblemDocument):
    """422: the parameters are wrong."""

    errors: list[Offence]


DOCUMENTS: Mapping[Kind, type[ProblemDocument]] = {
    UNKNOWN_COMPANY: UnknownCompanyDocument,
    CONTESTED_NAME: ContestedNameDocument,
    INVALID_REQUEST: InvalidRequestDocument,
}


def reference_of(company: Company) -> CompanyReference:
    """Return the members of a company by which a person recognises it."""
    return CompanyReference.model_validate(company, from_attributes=True)


class Problem(Exception):
    """Ends a request with a problem document; `extras` are its further members.

    `retry_after`: overrides `kind.retry_after`.
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


def invalid_request(errors: Sequence[Mapping[str, Any]], *, unknown: str = UNKNOWN_PARAMETER) -> Problem:
    """Return the problem of a request that failed validation.

    `errors`: as pydantic describes them; `loc` begins with `query`, `path` or `body`. `unknown`: the reason shown
    for a parameter that does not exist.
    """
    offences = [_offence(each, unknown) for each in errors[:MAX_OFFENCES]]
    detail = "; ".join(f"{each.parameter}: {each.reason}" for each in offences)
    if len(errors) > MAX_OFFENCES:
        detail += f"; and {len(errors) - MAX_OFFENCES:,} more"
    return Problem(INVALID_REQUEST, detail, errors=offences)


def pattern_of(pattern: str, reason: str) -> str:
    """Return `pattern`; a text that does not match it is refused with `reason`, because few people read patterns."""
    PATTERN_REASONS[pattern] = reason
    return pattern


def reason_of(error: Mapping[str, Any]) -> str:
    """Return the reason in plain words; `error`: as pydantic describes it."""
    pattern = error.get("ctx", {}).get("pattern")
    reason = REASONS.get(error.get("type", "")) or PATTERN_REASONS.get(pattern)
    return reason or _SHOULD.sub("must ", str(error["msg"])).replace(" after validation", "")


def _offence(error: Mapping[str, Any], unknown: str) -> Offence:
    where, *names = error["loc"]
    reason = unknown if error.get("type") == "extra_forbidden" else reason_of(error)
    # Which value of a repeated parameter is wrong does not matter; in a body it does: `anchors[0].weight`.
    parts = (f"[{name}]" if isinstance(name, int) else f".{name}" for name in (names if where == "body" else names[:1]))
    path = "".join(parts).removeprefix(".")[:MAX_NAME_CHARACTERS]
    return Offence(parameter=path or str(where), where=str(where), reason=reason)


def problem_document(problem: Problem, *, path: str) -> ProblemDocument:
    """Return the document of `problem`, which the request for `path` ended with."""
    kind = problem.kind
    return DOCUMENTS.get(kind, ProblemDocument).model_validate(
        {
            "type": f"/docs#{kind.slug}",
            "title": kind.title,
            "status": kind.status,
            "detail": problem.detail,
            "instance": path,
            **problem.extras,
        }
    )


def problem_response(problem: Problem, *, path: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response to the request for `path` that ended with `problem`."""
    retry = {} if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}
    return Response(
        problem_document(problem, path=path).model_dump_json(),
        status_code=problem.kind.status,
        headers={**retry, **(headers or {})},
        media_type=MEDIA_TYPE,
    )
