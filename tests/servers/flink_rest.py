"""Asks and tells a Flink cluster by its REST API."""

import http.client
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, cast

SECONDS_TO_ANSWER = 10.0
RUNNING = "RUNNING"


class NoAnswer(Exception):
    """Flink did not answer, or refused what was asked; the message says what it said."""


@dataclass(frozen=True)
class Job:
    """A job that the cluster knows; states are Flink's words (RUNNING, RESTARTING, FINISHED, CANCELED, FAILED)."""

    id: str
    name: str
    state: str


class FlinkRest:
    """The REST API of the JobManager on a port of this machine."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        # A proxy that the environment names leads elsewhere.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def task_managers(self) -> list[str]:
        """The names of the TaskManagers that have registered and not been lost."""
        return sorted(entry["id"] for entry in self._ask("/taskmanagers")["taskmanagers"])

    def jobs(self) -> list[Job]:
        """All jobs, the newest first."""
        entries = sorted(self._ask("/jobs/overview")["jobs"], key=lambda entry: -entry["start-time"])
        return [Job(entry["jid"], entry["name"], entry["state"]) for entry in entries]

    def busy_task_managers(self, job: str) -> set[str]:
        """The names of the TaskManagers that run a task of the job now."""
        names = set()
        for vertex in self._ask(f"/jobs/{job}")["vertices"]:
            for task in self._ask(f"/jobs/{job}/vertices/{vertex['id']}")["subtasks"]:
                if task["status"] == RUNNING:
                    names.add(str(task["taskmanager-id"]))
        return names

    def _ask(self, path: str) -> dict[str, Any]:
        try:
            with self._opener.open(self.url + path, timeout=SECONDS_TO_ANSWER) as answer:
                return cast(dict[str, Any], json.loads(answer.read() or b"{}"))
        except urllib.error.HTTPError as error:
            with error:
                raise NoAnswer(f"{path}: {error.code} {error.read().decode(errors='replace')}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoAnswer(f"{path}: {error}") from error
