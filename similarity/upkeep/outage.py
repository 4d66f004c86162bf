"""Logs the outage of a store or broker: one line per minute while it lasts, and one line at its end.

    index = watched(open_index(target, os.environ), Outage("the index"))

The line has the reason and no traceback, because an outage is not an error of this program.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from similarity.errors import IndexUnavailable, SimilarityError

SECONDS_BETWEEN_LINES = 60.0

Part = TypeVar("Part")

log = logging.getLogger(__name__)


class Outage:
    """Logs the outages of one store or broker, called `name`. Thread-safe."""

    def __init__(self, name: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._lock = threading.Lock()
        self._since: float | None = None
        self._logged: float | None = None
        self._is_told = False
        self._left_out = 0

    def away(self, reason: str) -> None:
        """Record a failure; log it unless the last line is younger than a minute."""
        with self._lock:
            now = self._clock()
            if self._since is None:
                self._since, self._is_told = now, False
            if self._logged is not None and now - self._logged < SECONDS_BETWEEN_LINES:
                self._left_out += 1
                return
            self._logged, self._is_told = now, True
            log.warning("%s is away: %s%s", self._name, reason, self._more())

    def over(self) -> None:
        """Record a success; log the end of the outage if its beginning was logged."""
        if self._since is None:
            return
        with self._lock:
            if self._since is not None and self._is_told:
                seconds = self._clock() - self._since
                log.warning("%s is back after %.0f s%s", self._name, seconds, self._more())
            self._since = None

    def _more(self) -> str:
        count, self._left_out = self._left_out, 0
        return f" (and {count:,} more failures since the last line)" if count else ""


def watched(part: Part, outage: Outage) -> Part:
    """Return a proxy of `part` (an index, a workspace) that reports failures and successes of its calls to `outage`.

    A proxy is returned unchanged.
    """
    return part if isinstance(part, _Watched) else cast("Part", _Watched(part, outage))


class _Watched:
    def __init__(self, part: object, outage: Outage) -> None:
        self._part = part
        self._outage = outage

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        # Closing does not contact the store.
        if not callable(found) or name == "close":
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            try:
                result = found(*arguments, **named)
            except IndexUnavailable as error:
                self._outage.away(str(error))
                raise
            except SimilarityError:
                self._outage.over()
                raise
            # A generator has not contacted the store yet.
            if not isinstance(result, Iterator):
                self._outage.over()
            return result

        return call
