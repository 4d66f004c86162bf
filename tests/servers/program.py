"""A program that a test starts, kills and starts again: its command, its log and its process."""

import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.servers.processes import ServerProcess

LINES_OF_LOG = 25


class NotReady(Exception):
    """The program ended or did not become ready in time; the message ends with its log."""


class Program:
    """One program of this machine. Its log is appended to at every start and survives `kill` and `stop`."""

    def __init__(
        self, name: str, folder: Path, command: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> None:
        """Starts nothing. `environment` goes before this process's own; `folder` exists."""
        self.name = name
        self.log = folder / f"{name}.log"
        self._pid_file = folder / f"{name}.pid"
        self._command = command
        self._environment = dict(environment or {})
        self._process: ServerProcess | None = None

    @property
    def running(self) -> bool:
        """Whether its process is there; a paused one and one that still starts are running."""
        return bool(self._process and self._process.running)

    @property
    def pid(self) -> int | None:
        """Its process id, None while it does not run."""
        return self._process.pid if self._process and self._process.running else None

    def start(self) -> None:
        """Starts the process and returns at once; `wait_until` waits for it."""
        if self.running:
            raise RuntimeError(f"{self.name} runs already; kill or stop it first")
        self._process = ServerProcess(
            self.command_line(), environment=self.environment(), pid_file=self._pid_file, log=self.log
        )

    def command_line(self) -> list[str]:
        """The command that writes the process id to its file and becomes the program."""
        # Few programs write a file with their process id; the shell does and then becomes the program.
        return ["sh", "-c", f"echo $$ > {shlex.quote(str(self._pid_file))} && exec {shlex.join(self._command)}"]

    def environment(self) -> dict[str, str]:
        """The variables of the program."""
        return {**os.environ, **self._environment}

    def kill(self) -> None:
        """Ends it and what it started with SIGKILL, as a crash does; its ports and files are free afterwards."""
        if self._process:
            self._process.kill()

    def stop(self) -> None:
        """Shuts it down in order (SIGTERM)."""
        if self._process:
            self._process.stop()

    def pause(self) -> None:
        """Freezes it (SIGSTOP): its connections stay open and it answers nothing."""
        if not self._process:
            raise RuntimeError(f"{self.name} was never started")
        self._process.pause()

    def resume(self) -> None:
        """Lets a paused program go on (SIGCONT)."""
        if self._process:
            self._process.resume()

    def wait_until(self, ready: Callable[[], bool], *, timeout: float) -> None:
        """Asks `ready` until it says yes.

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
        """The last lines of the log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-LINES_OF_LOG:])
