"""Starts processes that run `pipelines.stream`, one at a time, and ends them with SIGKILL."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]
# Threads that libraries start at import would not live on in a forked process.
SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


class Victims:
    """A nursery of processes (see `stream_nursery`); as a context manager, none is left afterwards."""

    def __init__(self, environment: Mapping[str, str], *, log: Path) -> None:
        """`environment` is for all victims, beside this process's own; `log` is the nursery's."""
        with log.open("ab") as output:
            self._nursery = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.stream_nursery"],
                cwd=ROOT,
                env={**os.environ, **SINGLE_THREADED, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )
        self._log = log
        self._pid = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._nursery.stdin
        assert self._nursery.stdout
        if self._pid:
            self.kill()
        with contextlib.suppress(BrokenPipeError):
            self._nursery.stdin.close()
        self._nursery.wait()
        self._nursery.stdout.close()

    def start(self, arguments: Sequence[str], *, log: Path, mistake: str = "") -> None:
        """Starts one; returns when it has begun."""
        assert self._nursery.stdin
        line = json.dumps({"arguments": list(arguments), "log": str(log), "mistake": mistake})
        self._nursery.stdin.write(line + "\n")
        self._nursery.stdin.flush()
        self._pid = self._answer()

    @property
    def running(self) -> bool:
        """Whether the victim has not ended by itself."""
        stat = Path(f"/proc/{self._pid}/stat")
        with contextlib.suppress(OSError):
            return stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] != "Z"
        return False

    def kill(self) -> int:
        """Ends it with SIGKILL; the exit status, which is another one if it ended by itself before."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        return self.wait()

    def wait(self) -> int:
        """Waits for its end; the exit status."""
        status = self._answer()
        self._pid = 0
        return status

    def _answer(self) -> int:
        assert self._nursery.stdout
        line = self._nursery.stdout.readline()
        if not line.endswith("\n"):
            raise RuntimeError(f"the nursery ended: {self._log.read_text(errors='replace')[-2000:]}")
        return int(line)
