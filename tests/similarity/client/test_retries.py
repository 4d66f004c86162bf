"""The decision to send again, with a clock and dice that the test holds."""

import pytest

from similarity.backoff import backoff
from similarity.client.problems import InternalFailure, Problem, TimedOut, Unavailable, UnknownCompany, Unreachable
from similarity.client.retries import Attempts, Retries, problem_from_reply
from similarity.errors import InvalidInput
from tests.similarity.client.replies import problem, reply

BUSY = problem_from_reply(reply(503, problem(503, "overloaded")))


class Clock:
    """Seconds that pass only when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def attempts_with(retries: Retries, *, clock: Clock | None = None, chance: float = 0.5) -> Attempts:
    pauses = backoff(retries.first_pause, retries.longest_pause, chance=lambda: chance)
    return Attempts(retries, clock=clock or Clock(), pauses=pauses)


@pytest.mark.parametrize(
    "error",
    [
        Unreachable("refused"),
        TimedOut("slow"),
        *(problem_from_reply(reply(status, None)) for status in (429, 502, 503, 504)),
    ],
)
def test_what_may_pass_is_tried_again(error: Problem | Unreachable) -> None:
    assert attempts_with(Retries()).pause_after(error) == 0.125


@pytest.mark.parametrize(
    ("status", "kind", "meaning"),
    [(404, "unknown-company", UnknownCompany), (500, "internal-error", InternalFailure)],
)
def test_what_will_not_change_is_raised_at_once(status: int, kind: str, meaning: type[Exception]) -> None:
    with pytest.raises(meaning):
        attempts_with(Retries()).pause_after(problem_from_reply(reply(status, problem(status, kind))))


def test_after_the_last_attempt_the_last_failure_is_raised() -> None:
    attempts = attempts_with(Retries(attempts=2))
    attempts.pause_after(Unreachable("first"))
    with pytest.raises(Unavailable):
        attempts.pause_after(BUSY)


def test_one_attempt_never_repeats() -> None:
    with pytest.raises(Unreachable, match="refused"):
        attempts_with(Retries(attempts=1)).pause_after(Unreachable("refused"))


def test_pauses_double_up_to_the_longest_and_are_random() -> None:
    retries = Retries(attempts=6, first_pause=1, longest_pause=4)
    for chance, pauses in ((0.5, [0.5, 1, 2, 2, 2]), (0.0, [0, 0, 0, 0, 0])):
        attempts = attempts_with(retries, chance=chance)
        assert [attempts.pause_after(BUSY) for _ in range(5)] == pauses


def test_retry_after_is_waited_for_in_full_and_a_little_more() -> None:
    attempts = attempts_with(Retries(first_pause=1))
    assert attempts.pause_after(problem_from_reply(reply(429, None, retry_after="7"))) == 7.5


def test_a_wait_that_would_pass_the_deadline_is_not_begun() -> None:
    loading = problem_from_reply(reply(503, problem(503, "encoder-not-loaded"), retry_after="300"))
    with pytest.raises(Unavailable) as raised:
        attempts_with(Retries(deadline=60)).pause_after(loading)
    assert raised.value.retry_after == 300


def test_time_spent_counts_towards_the_deadline() -> None:
    clock = Clock()
    attempts = attempts_with(Retries(deadline=60, first_pause=2), clock=clock)
    assert (attempts.until, attempts.remaining()) == (160, 60)
    clock.now += 50
    assert attempts.remaining() == 10
    with pytest.raises(Problem):
        attempts.pause_after(problem_from_reply(reply(429, None, retry_after="10")))
    clock.now += 11
    assert 0 < attempts.remaining() < 0.01


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"deadline": 0}, {"deadline": float("nan")}, {"first_pause": -1}])
def test_retries_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        Retries(**wrong)  # type: ignore[arg-type]  # attempts is a whole number, the others need not be
