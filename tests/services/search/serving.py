"""The real service in a process of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

ROOT = Path(__file__).parents[3]
SECONDS_TO_START = 60


@dataclass
class Service:
    """A running service; its log is in `log_file`."""

    process: subprocess.Popen[bytes]
    port: int
    log_file: Path

    def ask(self, path: str, headers: Mapping[str, str] | None = None, data: bytes | None = None) -> tuple[int, bytes]:
        """Status and body. Raises OSError where there is no answer."""
        request = Request(f"http://127.0.0.1:{self.port}{path}", headers=dict(headers or {}), data=data)
        try:
            with urlopen(request, timeout=20) as response:
                return response.status, response.read()
        except HTTPError as error:
            with error:
                return error.code, error.read()

    def stop(self) -> int:
        """Sends SIGTERM and returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    @property
    def log(self) -> str:
        """What it wrote so far."""
        return self.log_file.read_text(encoding="utf-8")

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Its log, line by line."""
        return [json.loads(line) for line in self.log.splitlines()]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextmanager
def running(index: Path | str, folder: Path, **settings: object) -> Iterator[Service]:
    """The service on the file `index`, once it is ready; `settings` are SIMILARITY_SERVICE_ variables."""
    settings = {"logs": "json", **settings}
    variables = {f"SIMILARITY_SERVICE_{name.upper()}": str(value) for name, value in settings.items()}
    port, log_file = free_port(), folder / "service.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "services.search", "--index", str(index), "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, **variables},
            stderr=log,
        )
    service = Service(process, port, log_file)
    try:
        deadline = time.monotonic() + SECONDS_TO_START
        while not _ready(service):
            assert process.poll() is None, service.log
            assert time.monotonic() < deadline, service.log
            time.sleep(0.05)
        yield service
    finally:
        process.kill()
        process.wait()


def _ready(service: Service) -> bool:
    try:
        return service.ask("/readyz")[0] == 200
    except OSError:
        return False
