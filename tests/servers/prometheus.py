"""Runs a real Prometheus for tests, as a process of this machine.

    with Prometheus(tmp_path, configuration) as prometheus:
        prometheus.query("up")               # [Sample(labels={"job": ...}, value=1.0)]

The programs are those that PROMETHEUS_HOME (a folder) holds, else those on the PATH.
`python -m tests.servers.prometheus` makes sure that they are there: on Debian and as root it installs
them; elsewhere it says how to, and fails, because a test that did not run has not passed.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

from tests.servers.ports import free_ports
from tests.servers.program import Program
from tests.servers.server import Server

PROGRAMS = ("prometheus", "promtool")
SECONDS_TO_START = 60.0
SECONDS_TO_ANSWER = 30.0
MISSING = (
    "Prometheus with promtool is needed: install it (Debian: apt-get install prometheus), or name the folder that "
    "holds both programs in PROMETHEUS_HOME"
)


class QueryRefused(Exception):
    """Prometheus could not evaluate an expression; the message is its own."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One element of an answer."""

    labels: Mapping[str, str]
    value: float


def find_program(name: str) -> str | None:
    """Where `prometheus` or `promtool` is; None if it is not there."""
    home = os.environ.get("PROMETHEUS_HOME")
    return shutil.which(name, path=home) if home else shutil.which(name)


def unavailable_reason() -> str | None:
    """Why no Prometheus can run here, and what to do about it; None if it can."""
    return None if all(map(find_program, PROGRAMS)) else MISSING


def promtool(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs Prometheus' tool for checking and testing what it reads; its output has both streams."""
    program = find_program("promtool") or "promtool"
    command = [program, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


class Prometheus(Server):
    """A Prometheus on a free port of this machine, with its data and log under one folder."""

    def __init__(self, folder: Path, configuration: Path) -> None:
        """Starts nothing."""
        folder.mkdir(parents=True, exist_ok=True)
        (self._port,) = free_ports(1)
        fixed = f"--web.listen-address=127.0.0.1:{self._port} --storage.tsdb.path={folder}/data --log.level=warn"
        command = [find_program("prometheus") or "prometheus", f"--config.file={configuration}", *fixed.split()]
        self._program = Program("prometheus", folder, command)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Starts it and waits until it answers questions."""
        self._program.start()
        self._program.wait_until(self._ready, timeout=SECONDS_TO_START)

    def kill(self) -> None:
        """Ends it with SIGKILL."""
        self._program.kill()

    def query(self, expression: str) -> list[Sample]:
        """What an expression gives now.

        Raises:
            QueryRefused: it is wrong.
        """
        found = self._asked("query", query=expression)
        if found["resultType"] == "scalar":
            return [Sample({}, float(found["result"][1]))]
        return [Sample(each["metric"], float(each["value"][1])) for each in found["result"]]

    def rules(self) -> list[dict[str, Any]]:
        """Every rule as Prometheus sees it: name, query, health, lastError, ..."""
        return [rule for group in self._asked("rules")["groups"] for rule in group["rules"]]

    def targets(self) -> list[dict[str, Any]]:
        """What it scrapes: labels, health, lastError, ..."""
        return list(self._asked("targets")["activeTargets"])

    def _ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/-/ready", timeout=2):
                return True
        except OSError:
            return False

    def _asked(self, what: str, **parameters: str) -> Any:
        url = f"{self.url}/api/v1/{what}?{urlencode(parameters)}"
        try:
            with urlopen(url, timeout=SECONDS_TO_ANSWER) as answer:
                return json.load(answer)["data"]
        except HTTPError as error:
            with error:
                raise QueryRefused(json.load(error)["error"]) from None


def main() -> None:
    """Installs Prometheus where it is missing and can be installed."""
    if unavailable_reason() and shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-qq"], check=True, stdout=subprocess.DEVNULL)
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "prometheus"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        if shutil.which("systemctl"):
            # Only the programs are wanted, not a service of this machine; where systemd does not run, nor does that.
            stop = ["systemctl", "disable", "--now", "prometheus"]
            subprocess.run(stop, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if reason := unavailable_reason():
        sys.stderr.write(f"not run: the tests on Prometheus. {reason}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
