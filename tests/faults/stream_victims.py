"""Starts processes that run `pipelines.stream`, one at a time, and ends them with SIGKILL."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]


class Victims:
    """One victim after the other (see `stream_victim`); as a context manager, none is left afterwards."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """`environment` is for all victims, beside this process's own."""
        self._environment = {**os.environ, **environment}
        self._victim: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._victim:
            self.kill()

    def start(self, arguments: Sequence[str], *, log: Path, mistake: str = "") -> None:
        """Starts a victim, whose errors are appended to `log`; returns when it has begun."""
        command = [sys.executable, "-m", "tests.faults.stream_victim", mistake, *arguments]
        with log.open("ab") as errors:
            self._victim = subprocess.Popen(
                command, cwd=ROOT, env=self._environment, stdout=subprocess.PIPE, stderr=errors
            )
        assert self._victim.stdout
        if self._victim.stdout.readline() != b"began\n":
            raise RuntimeError(f"the stream did not begin: {log.read_text(errors='replace')[-2000:]}")

    @property
    def running(self) -> bool:
        """Whether the victim has not ended by itself."""
        return self._started.poll() is None

    def kill(self) -> int:
        """Ends the victim with SIGKILL; returns its exit status, which differs if it had ended by itself before."""
        self._started.kill()
        return self.wait()

    def wait(self) -> int:
        """Waits for the end of the victim; returns its exit status."""
        victim = self._started
        victim.communicate()
        self._victim = None
        return victim.returncode

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        if self._victim is None:
            raise RuntimeError("no victim runs: start one")
        return self._victim
