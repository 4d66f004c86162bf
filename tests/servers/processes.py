"""A server process that never outlives the test run."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.servers import guard

SECONDS_TO_STOP = 60.0


class ServerProcess:
    """A running server under a guard (see `guard.py`).

    The server is what writes its process id to `pid_file`: often not the started command itself but a child of it.
    """

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str], pid_file: Path, log: Path) -> None:
        """Starts the command; what it prints is appended to the file `log`."""
        self._pid_file = pid_file
        pid_file.unlink(missing_ok=True)
        with log.open("ab") as output:
            # In a session of its own, so that Ctrl-C interrupts the tests, which then stop the server in order.
            self._guard = subprocess.Popen(
                [sys.executable, "-I", guard.__file__, *command],
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self._guard.poll() is None

    @property
    def pid(self) -> int | None:
        """The process id of the server itself, None until it has written it."""
        try:
            return int(self._pid_file.read_text())
        except (FileNotFoundError, ValueError):
            return None

    def pause(self) -> None:
        """Freezes the server (SIGSTOP): its connections stay open, it answers nothing."""
        if not (self.running and self.pid):
            raise RuntimeError("there is no server to pause: it ended, or it has not got far enough yet")
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a paused server go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Ends the server with SIGKILL and returns when it is gone, its files and ports free."""
        self._end_guard(wait=0)

    def stop(self) -> None:
        """Asks the server to shut down (SIGTERM) and returns when it is gone; kills it if it takes too long."""
        wait = SECONDS_TO_STOP if self.pid else 0  # before it has a pid, nothing but a kill can reach it
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        self._end_guard(wait=wait)

    def _signal(self, number: signal.Signals) -> None:
        # The pid is only trusted while the guard lives: after that it may be another process's.
        if self.running and (pid := self.pid) is not None:
            os.kill(pid, number)

    def _end_guard(self, *, wait: float) -> None:
        """Waits so many seconds for the server's end; then closes the guard's pipe, so that it kills what is left."""
        assert self._guard.stdin
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._guard.wait(wait)
        finally:
            self._guard.stdin.close()
            self._guard.wait()
