"""Which problem each error becomes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from similarity.errors import IndexUnavailable, InvalidInput, NoLiveGeneration, UnknownGeneration
from similarity.search.errors import (
    AmbiguousCompany,
    EncoderNotLoaded,
    NotCalibrated,
    RankingExpired,
    UnknownCompany,
)

from . import problems
from .problem_documents import Offence, Problem, problem_response, reference_of
from .problems import Kind

# Said to the client instead of the error's own words, which may name files of the server; the log has those
# (`similarity.upkeep.outage`).
STORE_FAILURES: Mapping[type[Exception], tuple[Kind, str]] = {
    IndexUnavailable: (
        problems.INDEX_UNAVAILABLE,
        "the index cannot be read just now; try again, and if it stays so look into the service's log",
    ),
    NoLiveGeneration: (
        problems.NO_LIVE_GENERATION,
        "the index holds no companies yet; fill it with: similarity ingest FILE",
    ),
    UnknownGeneration: (
        problems.GENERATION_GONE,
        "the index was replaced while this was answered; ask again",
    ),
}
# Answered in the error's own words.
SEARCH_FAILURES: Mapping[type[Exception], Kind] = {
    EncoderNotLoaded: problems.ENCODER_NOT_LOADED,
    NotCalibrated: problems.NO_CALIBRATION,
    RankingExpired: problems.CURSOR_EXPIRED,
}
REASONS = {"extra_forbidden": "there is no such parameter here; see /docs", "missing": "is missing"}

OFFENCES_TOLD = 20
LONGEST_NAME = 100

_PARAMETER = re.compile(r"\{[^}]*\}")


def answer_failures(app: FastAPI) -> None:
    """Makes `app` answer every expected error with its problem document."""
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    for failure in (InvalidInput, EncoderNotLoaded, RankingExpired):
        app.add_exception_handler(failure, _on_search_failure)
    app.add_exception_handler(HTTPException, _on_http_exception)
    for error in STORE_FAILURES:
        app.add_exception_handler(error, _on_store_failure)


def problem_of(error: Exception) -> Problem:
    """Return the problem that an error of `similarity.search` becomes.

    Raises:
        Exception: the error itself, if it is none of those that a question may lead to.
    """
    if isinstance(error, UnknownCompany):
        suggestions = [reference_of(each) for each in error.suggestions]
        return Problem(problems.UNKNOWN_COMPANY, str(error), suggestions=suggestions)
    if isinstance(error, AmbiguousCompany):
        candidates = [reference_of(each) for each in error.candidates]
        return Problem(problems.CONTESTED_NAME, str(error), candidates=candidates)
    if kind := SEARCH_FAILURES.get(type(error)):
        return Problem(kind, str(error))
    if isinstance(error, InvalidInput):
        return Problem(problems.INVALID_REQUEST, str(error), errors=[])
    raise error


def _on_problem(request: Request, error: Exception) -> Response:
    if not isinstance(error, Problem):
        raise error
    return problem_response(error, path=request.url.path)


def _on_store_failure(request: Request, error: Exception) -> Response:
    kind, detail = next(told for failure, told in STORE_FAILURES.items() if isinstance(error, failure))
    if isinstance(error, IndexUnavailable) and error.reason:
        detail = error.reason
    return problem_response(Problem(kind, detail), path=request.url.path)


def _on_search_failure(request: Request, error: Exception) -> Response:
    return problem_response(problem_of(error), path=request.url.path)


def _on_invalid_request(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    errors = error.errors()
    offences = [_offence(each) for each in errors[:OFFENCES_TOLD]]
    detail = "; ".join(f"{offence.parameter}: {offence.reason}" for offence in offences)
    if len(errors) > len(offences):
        detail += f"; and {len(errors) - len(offences):,} more"
    return problem_response(Problem(problems.INVALID_REQUEST, detail, errors=offences), path=request.url.path)


def _on_http_exception(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    path, method = request.url.path, request.method
    known = {
        404: Problem(problems.UNKNOWN_ADDRESS, f"nothing answers at {path}; /docs lists the addresses"),
        405: Problem(problems.METHOD_NOT_ALLOWED, f"{path} does not take {method}"),
    }
    problem = known.get(error.status_code, Problem(problems.OTHER_REFUSAL, str(error.detail)))
    headers = dict(error.headers or {})
    methods = allowed_methods(request.app.openapi()["paths"], path) if error.status_code == 405 else []
    return problem_response(problem, path=path, headers=headers | ({"Allow": ", ".join(methods)} if methods else {}))


def allowed_methods(paths: Mapping[str, Mapping[str, Any]], path: str) -> list[str]:
    """The methods of the address that says most of `path` literally; none if no address in `paths` does.

    The framework's own `Allow` names those of the first route alone.
    """
    fitting = [template for template in paths if _pattern(template).fullmatch(path)]
    closest = max(fitting, key=lambda template: len(_PARAMETER.sub("", template)), default=None)
    return [] if closest is None else sorted(method.upper() for method in paths[closest])


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(".+".join(map(re.escape, _PARAMETER.split(template))), re.DOTALL)


def _offence(error: Mapping[str, Any]) -> Offence:
    where, *names = error["loc"]
    reason = REASONS.get(error["type"]) or str(error["msg"]).replace("Input should be", "must be", 1)
    # Which of a repeated parameter's values it was does not matter; in a body it does.
    path = _path(names if where == "body" else names[:1])
    return Offence(parameter=path or str(where), where=str(where), reason=reason)


def _path(names: Sequence[str | int]) -> str:
    """The way to a member: `anchors[0].weight`."""
    parts = (f"[{name}]" if isinstance(name, int) else f".{name}" for name in names)
    return "".join(parts).removeprefix(".")[:LONGEST_NAME]
