"""What can go wrong between a program and the service: one class per meaning, all `SimilarityError`s.

A `Problem` was answered by the service (RFC 9457); the other classes say that no usable answer came.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from similarity.client.decoding import Undecodable, decode
from similarity.client.ranking import CompanyReference
from similarity.errors import SimilarityError

Listed = TypeVar("Listed")


class Unreachable(SimilarityError):
    """The service could not be asked, or the connection broke before its answer was complete."""


class TimedOut(Unreachable):
    """The service did not answer in time."""


class UnreadableAnswer(SimilarityError):
    """An answer came, but not one of this API: most likely the address is that of something else."""

    def __init__(self, reason: str, *, request_id: str = "") -> None:
        super().__init__(f"the answer cannot be read: {reason}{_mark(request_id)}")
        self.request_id = request_id


class Problem(SimilarityError):
    """The service said no. `kind` names the problem (`unknown-company`), `detail` says what to do.

    `request_id` finds the request in the service's log. `members` are the further members of the
    problem document. `retry_after` is when the service wants to be asked again, in seconds.
    """

    def __init__(
        self,
        *,
        status: int,
        kind: str = "",
        title: str = "",
        detail: str = "",
        request_id: str = "",
        retry_after: float | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{detail or title or f'the service answered {status}'}{_mark(request_id)}")
        self.status = status
        self.kind = kind
        self.title = title
        self.detail = detail
        self.request_id = request_id
        self.retry_after = retry_after
        self.members = members or {}

    def listed(self, member: str, record: type[Listed]) -> tuple[Listed, ...]:
        """The readable ones of a member's records; none where the document lacks it."""
        found = []
        values = self.members.get(member)
        for value in values if isinstance(values, list) else ():
            try:
                found.append(decode(record, value))
            except Undecodable:
                continue
        return tuple(found)


class UnknownCompany(Problem):
    """404: no company goes by that name."""

    @property
    def suggestions(self) -> tuple[CompanyReference, ...]:
        """Companies that look alike, best first."""
        return self.listed("suggestions", CompanyReference)


class ContestedName(Problem):
    """409: several companies go by that name; ask again with the id of one."""

    @property
    def candidates(self) -> tuple[CompanyReference, ...]:
        """The first of those that do."""
        return self.listed("candidates", CompanyReference)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offence:
    """What is wrong with one parameter or member."""

    parameter: str
    reason: str
    where: str = ""


class UnknownList(Problem):
    """404: no saved list has that name."""


class InvalidRequest(Problem):
    """422: the request is understood and cannot be done; `kind` says why, `errors` which parameters are wrong."""

    @property
    def errors(self) -> tuple[Offence, ...]:
        """Each offence with its reason; none where no parameter is to blame."""
        return self.listed("errors", Offence)


class Unauthorized(Problem):
    """401: the service wants an API key, or does not know this one."""


class Forbidden(Problem):
    """403: this may not be done: the API key lacks the right, or the service takes no writes (`kind`)."""


class CursorExpired(Problem):
    """410: the generation that a cursor belongs to is gone; ask the question again from the start."""


class RateLimited(Problem):
    """429: asked too often; `retry_after` says when to go on."""


class Unavailable(Problem):
    """503: the service cannot answer just now; `kind` and `detail` say why."""


class InternalFailure(Problem):
    """500 and other faults of the service or of what stands in front of it."""


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
    """The exception for a problem document; `otherwise` is its detail where `document` is none."""
    members = dict(document) if isinstance(document, Mapping) else {}
    kind = str(members.get("type", "")).rpartition("#")[2]
    fallback = InternalFailure if status >= 500 else Problem
    chosen = BY_KIND.get(kind) or BY_STATUS.get(status, fallback)
    return chosen(
        status=status,
        kind=kind,
        title=str(members.get("title", "")),
        detail=str(members.get("detail", "")) or otherwise,
        request_id=request_id,
        retry_after=retry_after,
        members={name: value for name, value in members.items() if name not in {"type", "title", "status", "detail"}},
    )


def _mark(request_id: str) -> str:
    return f" [request {request_id}]" if request_id else ""
