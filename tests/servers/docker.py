"""Makes sure that containers can run here: `python -m tests.servers.docker`.

A docker engine that answers is used as it is. Where none does, on Debian and as root, one is installed
and started; it is left running. docker compose is built if it is missing (tests/servers/docker_compose.py).
The images of others are pulled, or replaced by stand-ins where no registry answers
(tests/servers/docker_images.py).
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.servers import docker_compose, docker_debian, docker_images
from tests.servers.cache import cache_folder
from tests.servers.docker_debian import NoStandIn
from tests.servers.maven import DownloadFailed
from tests.servers.prism_installation import BuildFailed

SECONDS_TO_START = 60.0
NOT_RUN = (
    "no docker engine answers: start one, or, on Debian and as root, let `python -m tests.servers.docker` install "
    "and start one"
)


class EngineNotReady(Exception):
    """There is no engine, and none could be started; the message says why."""


def unavailable_reason() -> str | None:
    """Why no containers can run here, and what to do about it; None if they can."""
    return None if answers() else NOT_RUN


def answers() -> bool:
    """Whether there is a client, and an engine that answers it."""
    if not shutil.which("docker"):
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


def ensure_engine() -> None:
    """Installs and starts an engine if none answers.

    Raises:
        EngineNotReady: this is not Debian, or not root, or the engine did not start.
    """
    if answers():
        return
    if not docker_debian.can_install():
        raise EngineNotReady(NOT_RUN)
    if not (shutil.which("dockerd") and shutil.which("docker")):
        docker_debian.install_packages("docker.io")
    if not answers():
        _start()


def _start() -> None:
    """Starts the engine outside of this process's session, so that it goes on when the tests are over."""
    log = cache_folder() / "dockerd.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        engine = subprocess.Popen(
            ["dockerd"], stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=Path("/"), start_new_session=True
        )
    deadline = time.monotonic() + SECONDS_TO_START
    while not answers():
        if engine.poll() is not None or time.monotonic() > deadline:
            engine.kill()
            raise EngineNotReady(f"the docker engine did not start; {log} says why")
        time.sleep(0.5)


def main() -> None:
    """Engine, docker compose, and the images of others."""
    try:
        ensure_engine()
        docker_compose.ensure_compose()
        for image in docker_images.images_of_others():
            docker_images.ensure_image(image)
    except (EngineNotReady, NoStandIn, BuildFailed, DownloadFailed, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"not run: the tests in containers. {error}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
