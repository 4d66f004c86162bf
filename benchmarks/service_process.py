"""Runs the search service as users do: in a process of its own, on chosen processors if needed."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SAMPLE = Path(__file__).parents[1] / "data" / "sample" / "companies.jsonl"
SECONDS_TO_START = 60.0


@dataclass(frozen=True, slots=True)
class RunningService:
    """A service that answers on `port`; `pid` is its process."""

    port: int
    pid: int

    def processor_seconds(self) -> float:
        """Return the processor time that the process has used, without its children."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        """Return the resident memory of the process and its children, in MiB."""
        return sum(_resident_mb(pid) for pid in (self.pid, *_children(self.pid)))


@contextmanager
def running_service(
    index: Path | str,
    *,
    cpus: Sequence[int] | None = None,
    environment: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> Iterator[RunningService]:
    """Run `python -m services.search` on an index, only on `cpus` if given; SIGTERM stops it at the end."""
    port = free_port()
    output = log.open("wb") if log else None
    process = subprocess.Popen(
        [sys.executable, "-m", "services.search", "--index", str(index), "--port", str(port)],
        env={**os.environ, **(environment or {})},
        stdout=output or subprocess.DEVNULL,
        stderr=output or subprocess.DEVNULL,
    )
    try:
        if cpus is not None:
            os.sched_setaffinity(process.pid, cpus)
        _wait_until_ready(process, port)
        yield RunningService(port=port, pid=process.pid)
    finally:
        process.terminate()
        process.wait(timeout=60)
        if output:
            output.close()


def sample_index(folder: Path) -> Path:
    """Write an index of the sample companies into `folder`; return its file."""
    index = folder / "sample.db"
    command = [sys.executable, "-m", "similarity", "ingest", str(SAMPLE), "--index", str(index)]
    facts = ["--attribute", "sector", "--attribute", "size:ordinal=nano,micro,small,mid,large,mega", "--size", "size"]
    subprocess.run([*command, *facts], check=True, stdout=subprocess.DEVNULL)
    return index


def free_port() -> int:
    """Return a port on which no process listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_until_ready(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2):
                return
        except OSError:
            if process.poll() is not None:
                raise RuntimeError(f"the service ended with status {process.returncode}; see its log") from None
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _resident_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), 0.0)


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]
    except FileNotFoundError:
        return []
