"""The clock of the contract tests."""

from datetime import UTC, datetime, timedelta


class Clock:
    """Stands still until a test moves it, so that no test has to wait for a lease to expire."""

    def __init__(self) -> None:
        self._now = datetime(2025, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        """Moves the clock; by a negative number, back."""
        self._now += timedelta(seconds=seconds)
