"""When a call is sent again: decided here, without a clock of its own, for both clients.

`talk` is the whole conversation about one call. It yields what to do next and is told what came of it;
the clients only wait and send.
"""

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import count

from similarity.client.call import Answer, Attempt, Call, Reply
from similarity.client.problems import Problem, Unreachable, problem_of
from similarity.errors import InvalidInput

# Too many requests, or the service or something in front of it cannot answer just now.
WORTH_ANOTHER = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often and how long a call is tried; times in seconds.

    The pause before the n-th repetition is random, up to `first_pause` * 2^(n-1) and `longest_pause`, so
    that many clients do not come back at once; where the service says `Retry-After`, it comes on top
    of that. Nothing is begun that would pass `deadline`, counted from the first sending: if the
    service asks for more patience, its problem is raised at once.

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

    def pause(self, *, sent: int, left: float, asked: float | None, chance: float) -> float | None:
        """How long to wait before the next sending; None to give up.

        `sent`: how often the call was sent. `left`: seconds to the deadline. `asked`: what the service
        wants waited. `chance`: a random number in [0, 1).
        """
        if sent >= self.attempts:
            return None
        backoff = chance * min(self.longest_pause, self.first_pause * 2 ** (sent - 1))
        pause = (asked or 0.0) + backoff
        return pause if pause < left else None


def talk(
    call: Call[Answer],
    *,
    retries: Retries,
    timeout: float,
    clock: Callable[[], float],
    chance: Callable[[], float],
) -> Generator[Attempt, Reply | Unreachable, Answer]:
    """The conversation about `call`: yields attempts, takes what came of each, returns the answer.

    `clock` is in seconds and never goes back.

    Raises:
        SimilarityError: what came of the last attempt.
    """
    end = clock() + retries.deadline
    pause = 0.0
    for sent in count(1):
        outcome = yield Attempt(after=pause, timeout=min(timeout, end - clock() - pause), until=end)
        if isinstance(outcome, Reply) and 200 <= outcome.status < 300:
            return call.read(outcome)
        error = outcome if isinstance(outcome, Unreachable) else refusal(outcome)
        wait = None
        if _may_pass(error):
            asked = error.retry_after if isinstance(error, Problem) else None
            wait = retries.pause(sent=sent, left=end - clock(), asked=asked, chance=chance())
        if wait is None:
            raise error
        pause = wait
    raise AssertionError("counting never ends")


def _may_pass(error: Unreachable | Problem) -> bool:
    return isinstance(error, Unreachable) or error.status in WORTH_ANOTHER


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
