"""Makes sure that containers can run here: `python -m tests.servers.docker`.

A docker engine that answers is used as it is. Where none does, on Debian and as root, one is installed
and started; it is left running. docker compose is built from the Go module proxy if it is missing.
The images of others are pulled, or replaced by stand-ins where no registry answers
(tests/servers/docker_images.py).
"""

import json
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path

from tests.servers import docker_images, docker_standins
from tests.servers.go import run_go
from tests.servers.installing import InstallFailed, cache_folder, install_once, main

COMPOSE_VERSION = "2.40.3"
MODULE = "github.com/docker/compose/v2"
PLUGINS = Path.home() / ".docker" / "cli-plugins"
SECONDS_TO_START = 60.0
NOT_RUN = (
    "no docker engine answers: start one, or, on Debian and as root, let `python -m tests.servers.docker` install "
    "and start one"
)


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
        InstallFailed: this is not Debian, or not root, or the engine did not start.
    """
    if answers():
        return
    if not docker_standins.can_install():
        raise InstallFailed(NOT_RUN)
    if not (shutil.which("dockerd") and shutil.which("docker")):
        docker_standins.install_packages("docker.io")
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
            raise InstallFailed(f"the docker engine did not start; {log} says why")
        time.sleep(0.5)


def ensure_compose() -> None:
    """Builds the plugin and makes it known to docker, if there is none; building takes minutes.

    Raises:
        InstallFailed: Go is missing or too old, or there is no network.
    """
    if _compose_answers():
        return
    program = install_once(f"docker-compose-{COMPOSE_VERSION}", _build_compose) / "docker-compose"
    PLUGINS.mkdir(parents=True, exist_ok=True)
    plugin = PLUGINS / "docker-compose"
    plugin.unlink(missing_ok=True)
    plugin.symlink_to(program)
    if not _compose_answers():
        raise InstallFailed(f"docker does not take {plugin} for docker compose; is the client older than 20.10?")


def _compose_answers() -> bool:
    return subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0


def _build_compose(folder: Path) -> None:
    run = partial(run_go, folder=folder)
    source = json.loads(run("mod", "download", "-json", f"{MODULE}@v{COMPOSE_VERSION}"))["Dir"]
    # `go install` refuses a module that replaces some of its dependencies, so it is built as its own main module.
    version = f"-X {MODULE}/internal.Version=v{COMPOSE_VERSION}"
    program = folder / "docker-compose"
    run("build", "-C", source, "-trimpath", "-ldflags", f"-s -w {version}", "-o", str(program), "./cmd")


def ensure_images() -> None:
    """Makes the images of others available."""
    for image in docker_images.images_of_others():
        docker_images.ensure_image(image)


if __name__ == "__main__":
    main("containers", None, ensure_engine, ensure_compose, ensure_images)
