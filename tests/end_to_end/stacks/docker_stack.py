"""The stack in containers, by `docker compose`."""

import os
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from deploy.environment import ROOT, filled
from tests.end_to_end.stacks.stack import StackFailed
from tests.servers.ports import free_ports

VERSION = "story"
"""Of the images, so that those of a stack that runs here stay what they are."""
SECONDS_TO_START = 900


class DockerStack:
    """A project with volumes, secrets and ports of its own; see `Stack`. The images must be there."""

    def __init__(self, folder: Path) -> None:
        """`folder` takes the file of settings; nothing is started."""
        self._project = f"story-{secrets.token_hex(3)}"
        self._env_file = folder / "env"
        self._env_file.write_text(filled((ROOT / ".env.example").read_text(encoding="utf-8")), encoding="utf-8")
        [search] = free_ports(1)
        self._settings = {"SEARCH_PORT": str(search), "VERSION": VERSION}
        self.url = f"http://127.0.0.1:{search}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._compose("--profile", "*", "down", "--volumes", "--timeout", "20")

    def up(self, *services: str, settings: Mapping[str, str] | None = None) -> None:
        """See `Stack`."""
        self._settings |= settings or {}
        self._compose("up", "--detach", "--wait", "--no-build", *services)

    def run(self, service: str, *command: str) -> str:
        """See `Stack`."""
        return self._compose("run", "--rm", "--no-deps", "-T", service, *command)

    def logs(self, service: str) -> str:
        """See `Stack`."""
        return self._compose("logs", "--no-log-prefix", service)

    def _compose(self, *arguments: str) -> str:
        command: Sequence[str] = [
            "docker",
            "compose",
            "--project-name",
            self._project,
            "--env-file",
            str(self._env_file),
        ]
        done = subprocess.run(
            [*command, *arguments],
            check=False,
            cwd=ROOT,
            env={**os.environ, **self._settings},
            capture_output=True,
            text=True,
            timeout=SECONDS_TO_START,
        )
        if done.returncode:
            said = subprocess.run(
                [*command, "logs", "--tail", "30"], check=False, cwd=ROOT, capture_output=True, text=True
            )
            ended = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
            raise StackFailed(f"{' '.join(arguments)}:\n{said.stdout[-4000:]}\n{ended}")
        return done.stdout
