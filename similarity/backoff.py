"""Exponential back-off with full jitter: the pauses before retries."""

import random
from collections.abc import Callable, Iterator


def backoff(first: float, longest: float, *, chance: Callable[[], float] = random.random) -> Iterator[float]:
    """Yield pauses in seconds, without end: each is random, from 0 to a ceiling.

    The ceiling starts at `first`, doubles with each pause and stops at `longest`. The randomness keeps clients that
    failed at the same moment from coming back at the same moment. `chance` returns a random number in [0, 1).
    """
    ceiling = min(first, longest)
    while True:
        yield ceiling * chance()
        ceiling = min(2 * ceiling, longest)
