"""The exceptions of the client, all of them `SimilarityError`s.

A `Problem` is an error response of the service (RFC 9457). The others mean that there was no usable response.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from similarity.client.ranking import CompanyReference
from similarity.errors import SimilarityError

Listed = TypeVar("Listed")


class Unreachable(SimilarityError):
    """The service could not be reached, or the connection broke before the response was complete."""


class TimedOut(Unreachable):
    """The service did not answer in time."""


class UnreadableAnswer(SimilarityError):
    """A response that is not of this API: most likely the URL is that of another service."""

    def __init__(self, reason: str, *, request_id: str = "") -> None:
        super().__init__(f"the answer cannot be read: {reason}{_mark(request_id)}")
        self.request_id = request_id


class Problem(SimilarityError):
    """An error response. `kind` is the type of problem (`unknown-company`), `detail` says what to do.

    `request_id`: finds the request in the service's log. `members`: the members of the problem document.
    `retry_after`: seconds to wait before the next attempt, as the service demands. `otherwise`: the detail if the
    document has none.
    """

    def __init__(
        self,
        members: Mapping[str, Any],
        *,
        status: int,
        request_id: str = "",
        retry_after: float | None = None,
        otherwise: str = "",
    ) -> None:
        self.members = members
        self.status = status
        self.kind = _kind(members)
        self.detail = str(members.get("detail") or members.get("title") or otherwise or f"status {status}")
        self.request_id = request_id
        self.retry_after = retry_after
        super().__init__(f"{self.detail}{_mark(request_id)}")

    def listed(self, member: str, record: type[Listed]) -> tuple[Listed, ...]:
        """Return the records in a member of the document, without unreadable ones; empty if it is absent."""
        adapter = TypeAdapter(record)
        found = []
        values = self.members.get(member)
        for value in values if isinstance(values, list) else ():
            with suppress(ValidationError):
                found.append(adapter.validate_python(value))
        return tuple(found)


class UnknownCompany(Problem):
    """404: no company has that id, domain, name or alias."""

    @property
    def suggestions(self) -> tuple[CompanyReference, ...]:
        """Companies with similar names, best first."""
        return self.listed("suggestions", CompanyReference)


class ContestedName(Problem):
    """409: several companies have that domain, name or alias; use the id of one of them."""

    @property
    def candidates(self) -> tuple[CompanyReference, ...]:
        """The first of these companies."""
        return self.listed("candidates", CompanyReference)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offence:
    """An error in one parameter or JSON member."""

    parameter: str
    reason: str
    where: str = ""


class UnknownList(Problem):
    """404: no saved list has that name."""


class InvalidRequest(Problem):
    """422: the request is invalid; `kind` says why, `errors` lists the wrong parameters."""

    @property
    def errors(self) -> tuple[Offence, ...]:
        """The errors by parameter; empty if the error is not in one parameter."""
        return self.listed("errors", Offence)


class Unauthorized(Problem):
    """401: the service requires an API key, or does not know this one."""


class Forbidden(Problem):
    """403: the API key lacks the right, or the service accepts no writes; `kind` says which."""


class CursorExpired(Problem):
    """410: the generation of the cursor was retired; run the query again without a cursor."""


class RateLimited(Problem):
    """429: too many requests; `retry_after` says how long to wait."""


class Unavailable(Problem):
    """503: the service is temporarily unavailable; `kind` and `detail` say why."""


class InternalFailure(Problem):
    """500 and other errors of the service or of a proxy in front of it."""


BY_KIND: Mapping[str, type[Problem]] = {
    "unknown-company": UnknownCompany,
    "contested-name": ContestedName,
    "unknown-list": UnknownList,
    "cursor-expired": CursorExpired,
}
BY_STATUS: Mapping[int, type[Problem]] = {
    401: Unauthorized,
    403: Forbidden,
    422: InvalidRequest,
    429: RateLimited,
    503: Unavailable,
}


def problem_of(
    document: object, *, status: int, request_id: str = "", retry_after: float | None = None, otherwise: str = ""
) -> Problem:
    """Return the exception for an error response; `document` is its decoded body, which may be no problem document."""
    members = document if isinstance(document, Mapping) else {}
    fallback = InternalFailure if status >= 500 else Problem
    chosen = BY_KIND.get(_kind(members)) or BY_STATUS.get(status, fallback)
    return chosen(members, status=status, request_id=request_id, retry_after=retry_after, otherwise=otherwise)


def _kind(members: Mapping[str, Any]) -> str:
    return str(members.get("type", "")).rpartition("#")[2]


def _mark(request_id: str) -> str:
    return f" [request {request_id}]" if request_id else ""
