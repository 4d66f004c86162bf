"""The problems that routes declare in the OpenAPI document."""

from functools import reduce
from operator import or_
from typing import Any

from . import problems
from .problem_documents import DOCUMENTS, ProblemDocument
from .problems import Kind

Responses = dict[int | str, dict[str, Any]]

STORE_PROBLEMS = (
    problems.INVALID_REQUEST,
    problems.INTERNAL_ERROR,
    problems.INDEX_UNAVAILABLE,
    problems.NO_LIVE_GENERATION,
    problems.GENERATION_GONE,
)
NAME_PROBLEMS = (problems.UNKNOWN_COMPANY, problems.UNKNOWN_ADDRESS, problems.CONTESTED_NAME, *STORE_PROBLEMS)
BODY_PROBLEMS = (
    problems.OTHER_REFUSAL,
    problems.SLOW_BODY,
    problems.BODY_TOO_LARGE,
    problems.COMPRESSED_BODY,
    problems.WRONG_MEDIA_TYPE,
)
"""Problems of every route with a body."""
GUARD_PROBLEMS = (
    problems.OTHER_REFUSAL,
    problems.KEY_NEEDED,
    problems.SCOPE_MISSING,
    problems.METHOD_NOT_ALLOWED,
    problems.UNKNOWN_HOST,
    problems.HEAD_TOO_LARGE,
    problems.RATE_LIMITED,
    problems.OVERLOADED,
    problems.TOOK_TOO_LONG,
    problems.STOPPING,
)
"""Problems of every route: the answers of the guards in front of it."""


def declared(*kinds: Kind) -> Responses:
    """Return the OpenAPI entries of `kinds` and of GUARD_PROBLEMS, by status."""
    by_status: dict[int, list[Kind]] = {}
    for kind in dict.fromkeys((*kinds, *GUARD_PROBLEMS)):
        by_status.setdefault(kind.status, []).append(kind)
    return {status: _entry(of_status) for status, of_status in sorted(by_status.items())}


def _entry(kinds: list[Kind]) -> dict[str, Any]:
    documents = dict.fromkeys(DOCUMENTS.get(kind, ProblemDocument) for kind in kinds)
    return {"model": reduce(or_, documents), "description": " / ".join(kind.title for kind in kinds)}
