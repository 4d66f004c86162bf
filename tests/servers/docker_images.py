"""The images of others that the Dockerfiles and docker-compose.yml name, and our own.

An image of others that is there is used, else pulled, else, where no registry answers, built as a stand-in of the
same name. A stand-in that is older than its recipe is built again.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.servers import docker_standins

ROOT = Path(__file__).parents[2]
DOCKERFILES = ROOT / "deploy" / "images"
COMPOSE_FILE = ROOT / "docker-compose.yml"
OURS = "company-similarity/"
BASE = re.compile(r"^ARG \w+_IMAGE=(\S+)$", re.MULTILINE)
SERVICE = re.compile(r"^\s+image: *[\"']?([\w./-]+:[\w.-]+)", re.MULTILINE)


def images_of_others() -> list[str]:
    """Those that are needed to build ours and to start the compose file without a profile, with their tags.

    What only profiles need has no stand-in; docker compose pulls it when it is asked to.
    """
    dockerfiles = "".join(file.read_text(encoding="utf-8") for file in sorted(DOCKERFILES.glob("*.Dockerfile")))
    services = SERVICE.findall(COMPOSE_FILE.read_text(encoding="utf-8"))
    named = {*BASE.findall(dockerfiles), *(image for image in services if not image.startswith(OURS))}
    return sorted(image for image in named if docker_standins.stands_in_for(image))


def ensure_image(image: str) -> None:
    """Makes an image of others available under its name.

    Raises:
        InstallFailed: it cannot be pulled, and what its stand-in is made of is missing.
    """
    if is_there(image):
        if label_of(image, docker_standins.LABEL) in {"", docker_standins.recipe(image)}:
            return
    elif subprocess.run(["docker", "pull", "--quiet", image], capture_output=True, check=False).returncode == 0:
        return
    sys.stderr.write(f"building a stand-in for {image} ...\n")
    docker_standins.build(image)


def is_there(image: str) -> bool:
    """Whether the engine has it."""
    return subprocess.run(["docker", "image", "inspect", image], capture_output=True, check=False).returncode == 0


def label_of(image: str, name: str) -> str:
    """A label of an image that is there, "" if it has none of this name."""
    query = f'{{{{index .Config.Labels "{name}"}}}}'
    return subprocess.check_output(["docker", "image", "inspect", "--format", query, image], text=True).strip()


def build(name: str, *, tag: str) -> str:
    """Builds one of ours (`search`, `pipelines`, `training`) as docs/images.md says, and returns the image's name.

    Raises:
        subprocess.CalledProcessError: a step failed; its output went to stderr.
    """
    image = f"{OURS}{name}:{tag}"
    command = ["docker", "build", "--file", str(DOCKERFILES / f"{name}.Dockerfile"), "--tag", image, *_revision()]
    subprocess.run([*command, str(ROOT)], check=True, stdout=sys.stderr)
    return image


def _revision() -> Iterator[str]:
    """The commit as a build argument, where this is a checkout."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        yield f"--build-arg=REVISION={done.stdout.strip()}"
