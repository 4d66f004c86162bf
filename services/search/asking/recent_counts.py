"""The number of companies in a generation, counted again at most once a second."""

import time
from collections.abc import Callable
from threading import Lock

from similarity.index.protocol import CompanyIndex

RECENT_SECONDS = 1.0


class RecentCounts:
    """The number of companies in a generation, counted again after `RECENT_SECONDS`, or for another generation.

    `/readyz` needs no key, and counting reads a whole generation: without this, requests in a loop would keep the index
    busy. Thread-safe; while one caller counts again, others get the previous count, which is older.
    """

    def __init__(self, index: CompanyIndex, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._index = index
        self._clock = clock
        self._counting = Lock()
        self._last: tuple[str, float, int] | None = None

    def of(self, generation: str) -> int:
        """Return the number of companies in `generation`. Raises what the index raises."""
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
