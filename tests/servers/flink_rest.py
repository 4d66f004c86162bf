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

    def job_state(self, job: str) -> str:
        """Flink's word for the state of a job."""
        return str(self._ask(f"/jobs/{job}")["state"])

    def all_tasks_run(self, job: str) -> bool:
        """Whether the job is running and each of its tasks, too."""
        answer = self._ask(f"/jobs/{job}")
        return answer["state"] == RUNNING and all(vertex["status"] == RUNNING for vertex in answer["vertices"])

    def busy_task_managers(self, job: str) -> set[str]:
        """The names of the TaskManagers that run a task of the job now."""
        names = set()
        for vertex in self._ask(f"/jobs/{job}")["vertices"]:
            for task in self._ask(f"/jobs/{job}/vertices/{vertex['id']}")["subtasks"]:
                if task["status"] == RUNNING:
                    names.add(str(task["taskmanager-id"]))
        return names

    def completed_checkpoints(self, job: str) -> int:
        """How many checkpoints of the job were completed."""
        return int(self._ask(f"/jobs/{job}/checkpoints")["counts"]["completed"])

    def cancel(self, job: str) -> None:
        """Asks for the job's end without a savepoint; returns at once."""
        self._ask(f"/jobs/{job}?mode=cancel", method="PATCH")

    def _ask(self, path: str, *, method: str = "GET", body: dict[str, object] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(self.url + path, method=method)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with self._opener.open(request, timeout=SECONDS_TO_ANSWER) as answer:
                return cast(dict[str, Any], json.loads(answer.read() or b"{}"))
        except urllib.error.HTTPError as error:
            with error:
                raise NoAnswer(f"{method} {path}: {error.code} {error.read().decode(errors='replace')}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoAnswer(f"{method} {path}: {error}") from error
