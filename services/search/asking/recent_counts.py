"""How many companies a generation holds, counted at most once a second however often it is asked."""

import time
from collections.abc import Callable
from threading import Lock

from similarity.index.protocol import CompanyIndex

RECENT_SECONDS = 1.0


class RecentCounts:
    """The count of the generation that was last asked for, at most `RECENT_SECONDS` old.

    `/readyz` needs no key, and to count reads a whole generation: whoever asks in a loop would keep the
    index busy for nothing. Thread-safe; while one caller counts, others take the count before it.
    """

    def __init__(self, index: CompanyIndex, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._index = index
        self._clock = clock
        self._counting = Lock()
        self._last: tuple[str, float, int] | None = None

    def of(self, generation: str) -> int:
        """How many companies `generation` holds. Raises what the index raises."""
        last = self._last
        if last is None or last[0] != generation:
            return self._count(generation)
        _, counted_at, companies = last
        if self._clock() - counted_at < RECENT_SECONDS or not self._counting.acquire(blocking=False):
            return companies
        try:
            return self._count(generation)
        finally:
            self._counting.release()

    def _count(self, generation: str) -> int:
        asked_at = self._clock()
        companies = self._index.stats(generation).companies
        self._last = generation, asked_at, companies
        return companies
