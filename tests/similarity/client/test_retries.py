"""The decision to send again, with a clock and dice that the test holds."""

from collections.abc import Generator, Iterator

import pytest

from similarity.backoff import backoff
from similarity.client.call import Attempt, Reply
from similarity.client.problems import (
    InternalFailure,
    RateLimited,
    TimedOut,
    Unavailable,
    UnknownCompany,
    Unreachable,
    UnreadableAnswer,
)
from similarity.client.queries import similar
from similarity.client.ranking import Ranking
from similarity.client.retries import Retries, attempts_at
from similarity.errors import InvalidInput
from tests.similarity.client.replies import problem, ranking, reply

FINE = reply(200, ranking("adidas"))
BUSY = problem(503, "overloaded")


class Clock:
    """Seconds that pass only when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def conversation(
    retries: Retries, *, clock: Clock | None = None, chance: float = 0.5, timeout: float = 30
) -> Generator[Attempt, Reply | Unreachable, Ranking]:
    pauses = backoff(retries.first_pause, retries.longest_pause, chance=lambda: chance)
    return attempts_at(similar("nike"), retries=retries, timeout=timeout, clock=clock or Clock(), pauses=pauses)


def pauses(retries: Retries, outcomes: Iterator[Reply | Unreachable], *, chance: float) -> list[float]:
    """The pauses before the second and later attempts, until the conversation ends."""
    attempts = conversation(retries, chance=chance)
    next(attempts)
    found = []
    for outcome in outcomes:
        try:
            found.append(attempts.send(outcome).after)
        except (StopIteration, Unavailable):
            break
    return found


def answer(attempts: Generator[Attempt, Reply | Unreachable, Ranking], outcome: Reply | Unreachable) -> Ranking:
    with pytest.raises(StopIteration) as end:
        attempts.send(outcome)
    found: Ranking = end.value.value
    return found


def test_the_first_attempt_waits_for_nothing_and_a_good_answer_ends_it() -> None:
    attempts = conversation(Retries())
    assert next(attempts).after == 0
    assert [hit.company.id for hit in answer(attempts, FINE).hits] == ["adidas"]


@pytest.mark.parametrize(
    "outcome",
    [
        Unreachable("refused"),
        TimedOut("slow"),
        reply(429, problem(429, "rate-limited")),
        reply(503, BUSY),
        reply(502, None),
        reply(504, None),
    ],
)
def test_what_may_pass_is_tried_again(outcome: Reply | Unreachable) -> None:
    attempts = conversation(Retries())
    next(attempts)
    assert attempts.send(outcome).after > 0
    assert answer(attempts, FINE).generation == "first"


@pytest.mark.parametrize(
    ("outcome", "meaning"),
    [
        (reply(404, problem(404, "unknown-company")), UnknownCompany),
        (reply(500, problem(500, "internal-error")), InternalFailure),
        (reply(200, {"hits": "none"}), UnreadableAnswer),
    ],
)
def test_what_will_not_change_is_raised_at_once(outcome: Reply, meaning: type[Exception]) -> None:
    attempts = conversation(Retries())
    next(attempts)
    with pytest.raises(meaning):
        attempts.send(outcome)


def test_after_the_last_attempt_the_last_failure_is_raised() -> None:
    attempts = conversation(Retries(attempts=2))
    next(attempts)
    attempts.send(Unreachable("first"))
    with pytest.raises(Unavailable):
        attempts.send(reply(503, BUSY))


def test_one_attempt_never_repeats() -> None:
    attempts = conversation(Retries(attempts=1))
    next(attempts)
    with pytest.raises(Unreachable, match="refused"):
        attempts.send(Unreachable("refused"))


def test_pauses_double_up_to_the_longest_and_are_random() -> None:
    retries = Retries(attempts=6, first_pause=1, longest_pause=4)
    busy = [reply(503, BUSY)] * 6
    assert pauses(retries, iter(busy), chance=0.5) == [0.5, 1, 2, 2, 2]
    assert pauses(retries, iter(busy), chance=0.0) == [0, 0, 0, 0, 0]


def test_retry_after_is_waited_for_in_full_and_a_little_more() -> None:
    retries = Retries(first_pause=1)
    assert pauses(retries, iter([reply(429, None, retry_after="7"), FINE]), chance=0.5) == [7.5]


def test_a_wait_that_would_pass_the_deadline_is_not_begun() -> None:
    attempts = conversation(Retries(deadline=60))
    next(attempts)
    with pytest.raises(Unavailable) as raised:
        attempts.send(reply(503, problem(503, "encoder-not-loaded"), retry_after="300"))
    assert raised.value.retry_after == 300


def test_time_spent_counts_towards_the_deadline() -> None:
    clock = Clock()
    attempts = conversation(Retries(deadline=60), clock=clock)
    next(attempts)
    clock.now += 50
    with pytest.raises(RateLimited):
        attempts.send(reply(429, None, retry_after="11"))


def test_an_attempt_has_no_more_time_than_the_deadline_leaves() -> None:
    clock = Clock()
    attempts = conversation(Retries(deadline=60, first_pause=2), clock=clock, timeout=30)
    first = next(attempts)
    assert (first.timeout, first.until) == (30, 160)
    clock.now += 50
    second = attempts.send(TimedOut("slow"))
    assert (second.after, second.timeout, second.until) == (1, 9, 160)


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"deadline": 0}, {"deadline": float("nan")}, {"first_pause": -1}])
def test_retries_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        Retries(**wrong)  # type: ignore[arg-type]  # attempts is a whole number, the others need not be
