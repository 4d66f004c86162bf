"""What all servers of tests have in common: they run inside a `with` block, and nothing of them is left after it."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Server(ABC):
    """Started by `with`, killed at its end: what a test wrote is of no use after it, so nothing is waited for."""

    @abstractmethod
    def start(self) -> None:
        """Starts it, and returns when it can be used."""

    @abstractmethod
    def kill(self) -> None:
        """Ends all its processes with SIGKILL; those that do not run are no matter."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
