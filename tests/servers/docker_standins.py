"""Builds stand-ins for images of others; standins/README.md says what they are and are not.

What stands in has the label `company-similarity.stand-in`, and so has what is built on it. Its value changes with
the recipe.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.servers import docker_debian, elasticsearch_installation, kafka_installation, maven
from tests.servers.cache import cache_folder
from tests.servers.docker_debian import NoStandIn
from tests.servers.kafka_tools import JAR as KAFKA_TOOLS
from tests.servers.prism_installation import find_go

LABEL = "company-similarity.stand-in"
RECIPES = Path(__file__).parent / "standins"
NOT_OF_A_JRE = ("src.zip", "jmods", "demo", "man")


def stands_in_for(image: str) -> bool:
    """Whether there is a recipe for the image."""
    return image.partition(":")[0] in _FILLS


def recipe(image: str) -> str:
    """What the label of this image's stand-in is, 16 hexadecimal digits."""
    digest = hashlib.sha256(image.encode() + Path(__file__).read_bytes())
    for file in sorted(path for path in _folder(image).rglob("*") if path.is_file()):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def build(image: str) -> None:
    """Builds the stand-in under the image's own name.

    Raises:
        NoStandIn: there is no recipe for it, or a part cannot be had here.
        maven.DownloadFailed: Maven is missing, or there is no network.
        subprocess.CalledProcessError: a step failed; its output went to stderr.
    """
    name, _, tag = image.partition(":")
    if name not in _FILLS:
        raise NoStandIn(f"{image} cannot be pulled, and there is no stand-in for it")
    docker_debian.ensure_bookworm()
    with tempfile.TemporaryDirectory(dir=cache_folder(), prefix="unfinished-") as folder:
        context = Path(folder) / "context"
        shutil.copytree(_folder(image), context)
        _FILLS[name](context, tag)
        label = f"--label={LABEL}={recipe(image)}"
        subprocess.run(["docker", "build", "--quiet", "--tag", image, label, str(context)], check=True)


def _folder(image: str) -> Path:
    return RECIPES / image.partition(":")[0].rpartition("/")[2]


def _fill_nothing(context: Path, tag: str) -> None:
    """The recipe's own files are all."""


def _fill_go(context: Path, tag: str) -> None:
    """The tag's version is not that of this machine's Go, most likely; what is built must not depend on it."""
    go = find_go()
    if not go:
        raise NoStandIn("Go is needed for the stand-in of golang: install it (https://go.dev/dl)")
    home = subprocess.check_output([go, "env", "GOROOT"], text=True).strip()
    shutil.copytree(home, context / "go", symlinks=True)


def _fill_elasticsearch(context: Path, tag: str) -> None:
    java = elasticsearch_installation.java_home()
    _need(elasticsearch_installation.unavailable_reason(tag), java)
    _copy_java(java, context)
    shutil.copytree(elasticsearch_installation.install(tag), context / "elasticsearch")


def _fill_kafka(context: Path, tag: str) -> None:
    if tag != kafka_installation.VERSION:
        raise NoStandIn(f"the stand-in for Kafka is {kafka_installation.VERSION}, and {tag} is asked for")
    java = kafka_installation.java_home()
    _need(kafka_installation.unavailable_reason(), java)
    _copy_java(java, context)
    shutil.copytree(kafka_installation.install(), context / "libs")
    maven.fetch(KAFKA_TOOLS, context / "libs")


def _need(reason: str | None, java: Path | None) -> None:
    if reason or not java:
        raise NoStandIn(str(reason))


def _copy_java(java: Path | None, context: Path) -> None:
    assert java
    shutil.copytree(java.resolve(), context / "java", symlinks=True, ignore=shutil.ignore_patterns(*NOT_OF_A_JRE))


_FILLS: dict[str, Callable[[Path, str], None]] = {
    "python": _fill_nothing,
    "golang": _fill_go,
    "docker.elastic.co/elasticsearch/elasticsearch": _fill_elasticsearch,
    "apache/kafka": _fill_kafka,
}
