"""Answers each expected error with a problem."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from similarity.errors import IndexUnavailable, InvalidInput, NoLiveGeneration, UnknownGeneration
from similarity.feedback.protocol import ErasedMeanwhile, EventConflict, ListExists, UnknownList
from similarity.feedback.shortlists import WrongKindOfList
from similarity.search.errors import (
    AmbiguousCompany,
    EncoderNotLoaded,
    NotCalibrated,
    RankingExpired,
    TooFewWords,
    UnknownCompany,
)

from . import problems
from .problem_documents import Offence, Problem, invalid_request, problem_response, reference_of
from .problems import Kind

# Sent instead of the error's own message, which may name files of the server and goes to the log
# (`similarity.upkeep.outage`). `reason` of an IndexUnavailable is sent if it has one.
STORE_FAILURES: Mapping[type[Exception], tuple[Kind, str]] = {
    IndexUnavailable: (
        problems.INDEX_UNAVAILABLE,
        "the index cannot be read at the moment; try again, and if it fails again read the service's log",
    ),
    NoLiveGeneration: (
        problems.NO_LIVE_GENERATION,
        "the index holds no companies yet; fill it with: similarity ingest FILE",
    ),
    UnknownGeneration: (problems.GENERATION_GONE, "the index was replaced while this was answered; ask again"),
}
# Answered with the error's own message.
LIBRARY_FAILURES: Mapping[type[Exception], Kind] = {
    EncoderNotLoaded: problems.ENCODER_NOT_LOADED,
    NotCalibrated: problems.NO_CALIBRATION,
    RankingExpired: problems.CURSOR_EXPIRED,
    TooFewWords: problems.TOO_FEW_WORDS,
    ErasedMeanwhile: problems.ERASED_MEANWHILE,
    EventConflict: problems.EVENT_CONFLICT,
    ListExists: problems.LIST_EXISTS,
    UnknownList: problems.UNKNOWN_LIST,
    WrongKindOfList: problems.WRONG_KIND_OF_LIST,
}

# Members of a body that have another name as parameters of an address.
IN_ADDRESS = {"filters": "filter", "negatives": "unlike"}

_WITH_SLASH = re.compile(r"/(?:companies|lists)/[^/]+/")
_PARAMETER = re.compile(r"\{[^}]*\}")


def answer_failures(app: FastAPI) -> None:
    """Make `app` answer every expected error with its problem document."""

    @app.exception_handler(Problem)
    def on_problem(request: Request, problem: Problem) -> Response:
        return problem_response(problem, path=request.url.path)

    @app.exception_handler(RequestValidationError)
    def on_invalid_request(request: Request, error: RequestValidationError) -> Response:
        return on_problem(request, invalid_request(error.errors()))

    def on_failure(request: Request, error: Exception) -> Response:
        return on_problem(request, problem_of(error, where="query" if request.method == "GET" else "body"))

    expected: list[type[Exception]] = [InvalidInput, *STORE_FAILURES, *LIBRARY_FAILURES]
    for failure in expected:
        app.add_exception_handler(failure, on_failure)

    @app.exception_handler(HTTPException)
    def on_http_exception(request: Request, error: HTTPException) -> Response:
        path, headers = request.url.path, dict(error.headers or {})
        problem = Problem(problems.OTHER_REFUSAL, str(error.detail))
        if error.status_code == 404:
            problem = Problem(
                problems.UNKNOWN_ADDRESS, f"there is nothing at {path}{_slash_hint(path)}; /docs lists the addresses"
            )
        elif error.status_code == 405:
            refusal = f"{path} does not accept {request.method}"
            methods = ", ".join(allowed_methods(app.openapi()["paths"], path))
            if request.method in methods.split(", "):  # but not with a slash in the id
                methods = ""
            if methods := methods or headers.get("Allow", ""):
                headers["Allow"] = methods
                refusal += f", but {methods}"
            problem = Problem(problems.METHOD_NOT_ALLOWED, f"{refusal}{_slash_hint(path)}; /docs lists the addresses")
        return problem_response(problem, path=path, headers=headers)


def problem_of(error: Exception, *, where: str = "body") -> Problem:
    """Return the problem that an error of the library becomes. `where`: the part of the request with the query.

    Raises:
        Exception: the error itself, if no problem is known for it.
    """
    for failure, (kind, detail) in STORE_FAILURES.items():
        if isinstance(error, failure):
            return Problem(kind, (isinstance(error, IndexUnavailable) and error.reason) or detail)
    if isinstance(error, UnknownCompany):
        return Problem(problems.UNKNOWN_COMPANY, str(error), suggestions=[*map(reference_of, error.suggestions)])
    if isinstance(error, AmbiguousCompany):
        return Problem(problems.CONTESTED_NAME, str(error), candidates=[*map(reference_of, error.candidates)])
    if expected := LIBRARY_FAILURES.get(type(error)):
        return Problem(expected, str(error))
    if isinstance(error, InvalidInput):
        parameter = IN_ADDRESS.get(error.about, error.about) if where == "query" else error.about
        offence = Offence(parameter=parameter or where, where=where, reason=str(error))
        return Problem(problems.INVALID_REQUEST, str(error), errors=[offence])
    raise error


async def each_parameter_once(request: Request) -> None:
    """Refuse a query parameter that is given twice, unless it is a list. A dependency of all routes.

    Raises:
        Problem: a parameter is given twice; FastAPI would take the last value.
    """
    given = Counter(name for name, _ in request.query_params.multi_items())
    repeated = {name for name, count in given.items() if count > 1}
    if not repeated:
        return
    operations = request.app.openapi()["paths"].get(request.scope["route"].path_format, {})
    parameters = operations.get(request.method.lower(), {}).get("parameters", [])
    single = {each["name"] for each in parameters if each["in"] == "query" and each["schema"].get("type") != "array"}
    if offences := [
        {"loc": ["query", name], "msg": "is given more than once; give it once"} for name in sorted(repeated & single)
    ]:
        raise invalid_request(offences)


def allowed_methods(paths: Mapping[str, Mapping[str, Any]], path: str) -> list[str]:
    """Return the methods of the most literal address in `paths` that matches `path`; none if no address does.

    The framework's own `Allow` names only the methods of the first matching route.
    """
    fitting = [template for template in paths if _pattern(template).fullmatch(path)]
    closest = max(fitting, key=lambda template: len(_PARAMETER.sub("", template)), default=None)
    return [] if closest is None else sorted(method.upper() for method in paths[closest])


def _slash_hint(path: str) -> str:
    return ", and no id or name of a list has a slash" if _WITH_SLASH.match(path) else ""


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(".+".join(map(re.escape, _PARAMETER.split(template))), re.DOTALL)
