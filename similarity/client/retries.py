"""The retries of both clients. The clock is an argument; the clients only wait and send.

`attempts_at` yields the attempts at one call and receives the reply or the error of each.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import islice

from pydantic_core import from_json

from similarity.client.call import Answer, Attempt, Call, Reply
from similarity.client.problems import Problem, Unreachable, problem_of
from similarity.errors import InvalidInput

# Too many requests, or the service or a proxy in front of it is temporarily unavailable.
RETRIED_STATUSES = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often and how long a call is tried; times in seconds.

    Pauses are an exponential back-off with full jitter (`similarity.backoff`) from `first_pause` to
    `longest_pause`, in addition to a `Retry-After` of the service. No attempt starts after `deadline`, counted from
    the first attempt: if the pause would pass it, the last problem is raised at once.

    Raises:
        InvalidInput: there is less than one attempt, or a time is not above 0.
    """

    attempts: int = 4
    deadline: float = 60.0
    first_pause: float = 0.25
    longest_pause: float = 8.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InvalidInput(f"attempts is {self.attempts}; it must be 1 or more (1 never repeats)")
        if not (self.deadline > 0 and self.first_pause >= 0 and self.longest_pause >= 0):
            raise InvalidInput("the deadline must be above 0 seconds, and pauses must not be negative")


def attempts_at(
    call: Call[Answer],
    *,
    retries: Retries,
    timeout: float,
    clock: Callable[[], float],
    pauses: Iterator[float],
) -> Generator[Attempt, Reply | Unreachable, Answer]:
    """Yield the attempts at `call`; send the reply or the error of each into the generator, which returns the answer.

    `clock`: monotonic, in seconds. `pauses`: between the attempts.

    Raises:
        SimilarityError: the error of the last attempt.
    """
    end = clock() + retries.deadline
    pause = 0.0
    repetitions = islice(pauses, retries.attempts - 1)
    while True:
        outcome = yield Attempt(after=pause, timeout=min(timeout, end - clock() - pause), until=end)
        if isinstance(outcome, Reply) and 200 <= outcome.status < 300:
            return call.read(outcome)
        error = outcome if isinstance(outcome, Unreachable) else problem_from_reply(outcome)
        demanded = 0.0
        if isinstance(error, Problem):
            if error.status not in RETRIED_STATUSES:
                raise error
            demanded = error.retry_after or 0.0
        wait = next(repetitions, None)
        if wait is None or demanded + wait >= end - clock():
            raise error
        pause = demanded + wait


def problem_from_reply(reply: Reply) -> Problem:
    """Return the exception for an unsuccessful reply."""
    try:
        document: object = from_json(reply.body)
    except ValueError:
        document = None
    return problem_of(
        document,
        status=reply.status,
        request_id=reply.request_id,
        retry_after=retry_after(reply.headers),
        otherwise=_without_document(reply),
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in `Retry-After`. A date there is relative to the `Date` of the same reply."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        wait = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, wait.total_seconds())


def _without_document(reply: Reply) -> str:
    if 300 <= reply.status < 400:
        return f"the service is at {reply.headers.get('location', 'another address')}; use that as the URL"
    return f"status {reply.status} without a reason; it may come from a proxy in front of the service"
