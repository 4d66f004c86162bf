"""A server program that a test starts, kills and starts again, and that never outlives the test run."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.servers import guard

LINES_OF_LOG = 25
SECONDS_TO_STOP = 60.0


class NotReady(Exception):
    """The program ended or did not become ready in time; the message ends with its log."""


class Program:
    """One program of this machine, under a guard (see `guard.py`).

    Its log is appended to at every start and survives `kill` and `stop`. Its process id is the one in its pid file:
    often not that of the started command but of a child of it.
    """

    def __init__(
        self, name: str, folder: Path, command: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> None:
        """Starts nothing. `environment` overrides variables of this process; `folder` exists."""
        self.name = name
        self.log = folder / f"{name}.log"
        self._pid_file = folder / f"{name}.pid"
        self._command = command
        self._environment = dict(environment or {})
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether its process exists; a paused one and one that still starts are running."""
        return self._guard is not None and self._guard.poll() is None

    @property
    def pid(self) -> int | None:
        """The process id; None if it does not run, or has not written its id yet."""
        # The file is only trusted while the guard lives: after that the id may be another process's.
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int(self._pid_file.read_text()) if self.running else None
        return None

    def start(self) -> None:
        """Starts the process and returns at once; `wait_until` waits for it."""
        if self.running:
            raise RuntimeError(f"{self.name} runs already; kill or stop it first")
        self._pid_file.unlink(missing_ok=True)
        with self.log.open("ab") as output:
            # In a session of its own, so that Ctrl-C interrupts the tests, which then stop the server in order.
            self._guard = subprocess.Popen(
                [sys.executable, "-I", guard.__file__, *self.command_line()],
                env=self.environment(),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def command_line(self) -> list[str]:
        """Returns the command that writes the process id to its file and becomes the program."""
        return ["sh", "-c", f"echo $$ > {shlex.quote(str(self._pid_file))} && exec {shlex.join(self._command)}"]

    def environment(self) -> dict[str, str]:
        """Returns the variables of the program."""
        return {**os.environ, **self._environment}

    def kill(self) -> None:
        """Ends it and what it started with SIGKILL; its ports and files are free afterwards."""
        self._end(wait=0)

    def stop(self) -> None:
        """Shuts it down in order (SIGTERM); kills it if it takes too long."""
        wait = SECONDS_TO_STOP if self.pid else 0  # before it has a pid, nothing but a kill can reach it
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        self._end(wait=wait)

    def pause(self) -> None:
        """Freezes it (SIGSTOP): its connections stay open and it answers nothing."""
        if not self.pid:
            raise RuntimeError(f"{self.name} cannot be paused: it ended, or was not started, or still starts")
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a paused program continue (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def wait_until(self, ready: Callable[[], bool], *, timeout: float) -> None:
        """Calls `ready` until it returns true.

        Raises:
            NotReady: the program ended, or `timeout` seconds went by.
        """
        deadline = time.monotonic() + timeout
        while not ready():
            if not self.running:
                raise NotReady(f"{self.name} ended. The end of its log:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise NotReady(f"{self.name} was not ready after {timeout:.0f} s. The end of its log:\n{self.tail()}")
            time.sleep(0.1)

    def tail(self) -> str:
        """Returns the last lines of the log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-LINES_OF_LOG:])

    def _signal(self, number: signal.Signals) -> None:
        if (pid := self.pid) is not None:
            os.kill(pid, number)

    def _end(self, *, wait: float) -> None:
        """Waits `wait` seconds for the server's end; then closes the guard's pipe, so that it kills what is left."""
        if self._guard is None:
            return
        assert self._guard.stdin
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._guard.wait(wait)
        finally:
            self._guard.stdin.close()
            self._guard.wait()
