"""When a call is sent again: decided here, without a clock of its own, for both clients.

`talk` is the whole conversation about one call. It yields what to do next and is told what came of it;
the clients only wait and send.
"""

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import islice

from similarity.client.call import Answer, Attempt, Call, Reply
from similarity.client.problems import Problem, Unreachable, problem_of
from similarity.errors import InvalidInput

# Too many requests, or the service or something in front of it cannot answer just now.
WORTH_ANOTHER = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often and how long a call is tried; times in seconds.

    Pauses are an exponential back-off with full jitter (`similarity.backoff`) from `first_pause` to
    `longest_pause`; where the service says `Retry-After`, the pause comes on top of that. Nothing is begun
    that would pass `deadline`, counted from the first sending: if the service asks for more patience, its
    problem is raised at once.

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
            raise InvalidInput("the deadline must be above 0 seconds, and no pause below 0")


def talk(
    call: Call[Answer],
    *,
    retries: Retries,
    timeout: float,
    clock: Callable[[], float],
    pauses: Iterator[float],
) -> Generator[Attempt, Reply | Unreachable, Answer]:
    """The conversation about `call`: yields attempts, takes what came of each, returns the answer.

    `clock` is in seconds and never goes back; `pauses` are those between the attempts.

    Raises:
        SimilarityError: what came of the last attempt.
    """
    end = clock() + retries.deadline
    pause = 0.0
    repetitions = islice(pauses, retries.attempts - 1)
    while True:
        outcome = yield Attempt(after=pause, timeout=min(timeout, end - clock() - pause), until=end)
        if isinstance(outcome, Reply) and 200 <= outcome.status < 300:
            return call.read(outcome)
        error = outcome if isinstance(outcome, Unreachable) else refusal(outcome)
        asked = 0.0
        if isinstance(error, Problem):
            if error.status not in WORTH_ANOTHER:
                raise error
            asked = error.retry_after or 0.0
        wait = next(repetitions, None)
        if wait is None or asked + wait >= end - clock():
            raise error
        pause = asked + wait


def refusal(reply: Reply) -> Problem:
    """The exception for an answer that is no success."""
    try:
        document: object = json.loads(reply.body)
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
    """The seconds that `Retry-After` asks for. A date is counted from the answer's own `Date`."""
    asked = headers.get("retry-after", "").strip()
    if asked.isascii() and asked.isdigit():
        return float(asked)
    try:
        wait = parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, wait.total_seconds())


def _without_document(reply: Reply) -> str:
    if 300 <= reply.status < 400:
        return f"the service is at {reply.headers.get('location', 'another address')}; use that as the URL"
    return f"answered {reply.status} without saying why; something in front of the service may have done so"
