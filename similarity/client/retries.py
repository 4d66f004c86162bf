"""The retries of both clients. The clock is an argument; the clients only wait and send."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import islice
from uuid import uuid4

from pydantic_core import from_json

from similarity.client.call import Reply
from similarity.client.problems import Problem, Unreachable, problem_of
from similarity.errors import InvalidInput

# Too many requests, or the service or a proxy in front of it is temporarily unavailable.
RETRIED_STATUSES = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """The limits of the retries of a call; times in seconds.

    Pauses are random, up to a limit that doubles from `first_pause` to `longest_pause` (`similarity.backoff`). A
    `Retry-After` of the service is added to them. All attempts end within `deadline`; if the next pause would pass it,
    the last error is raised at once.

    Raises:
        InvalidInput: there is less than one attempt, the deadline is not above 0, or a pause is below 0.
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


class Attempts:
    """The attempts at one call, which share a `request_id`; all end when the `clock` shows `until`."""

    def __init__(self, retries: Retries, *, clock: Callable[[], float], pauses: Iterator[float]) -> None:
        self.request_id = uuid4().hex
        self.until = clock() + retries.deadline
        self._clock = clock
        self._pauses = islice(pauses, retries.attempts - 1)

    def remaining(self) -> float:
        """Return the seconds until the deadline; a little above 0 after it, because 0 is no time-out."""
        return max(self.until - self._clock(), 0.001)

    def pause_after(self, error: Problem | Unreachable) -> float:
        """Return the seconds to wait before the next attempt. Raises `error` if there is none."""
        demanded = 0.0
        if isinstance(error, Problem):
            if error.status not in RETRIED_STATUSES:
                raise error
            demanded = error.retry_after or 0.0
        pause = next(self._pauses, None)
        if pause is None or demanded + pause >= self.remaining():
            raise error
        return demanded + pause


def problem_from_reply(reply: Reply) -> Problem:
    """Return the exception for an unsuccessful reply."""
    try:
        document: object = from_json(reply.body)
    except ValueError:
        document = None
    otherwise = f"status {reply.status} without a reason; it may come from a proxy in front of the service"
    if 300 <= reply.status < 400:
        otherwise = f"the service is at {reply.headers.get('location', 'another address')}; use that as the URL"
    return problem_of(
        document,
        status=reply.status,
        request_id=reply.request_id,
        retry_after=retry_after(reply.headers),
        otherwise=otherwise,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in `Retry-After`, None without valid ones; a date counts from the `Date` of the same reply."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        wait = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, wait.total_seconds())
