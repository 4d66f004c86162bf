"""Builds stand-ins for images of others; standins/README.md says what they are and are not.

What stands in has the label `company-similarity.stand-in`, and so has what is built on it. Its value changes with
the recipe. The system in them is Debian, whose packages can be installed on this machine too.
"""

import hashlib
import os
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.servers import elasticsearch_installation, kafka_tools, maven
from tests.servers.go import find_go
from tests.servers.installing import InstallFailed, cache_folder, install_once
from tests.servers.kafka import KAFKA

BOOKWORM = "stand-in/bookworm:1"
PACKAGES = ("bash", "ca-certificates", "curl", "python3", "python3-venv")
# How this machine reaches package indexes; builds inside containers go the same way.
INDEXES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT", "GOPROXY", "GONOSUMDB")
AUTHORITIES = Path("etc/ssl/certs/ca-certificates.crt")
NOT_KEPT = ("./var/cache/apt/archives/*.deb", "./var/lib/apt/lists/*")

LABEL = "company-similarity.stand-in"
RECIPES = Path(__file__).parent / "standins"
NOT_OF_A_JRE = ("src.zip", "jmods", "demo", "man")


def can_install() -> bool:
    """Whether packages can be installed here: this is Debian or alike, and we are root."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install_packages(*names: str) -> None:
    """Installs packages of Debian on this machine."""
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *names]):
        subprocess.run(["apt-get", *command], check=True, stdout=subprocess.DEVNULL)


def ensure_bookworm() -> None:
    """The Debian 12 that all stand-ins are FROM, imported from one tar file in the cache.

    Raises:
        InstallFailed: this is not Debian, or not root.
    """
    if subprocess.run(["docker", "image", "inspect", BOOKWORM], capture_output=True, check=False).returncode == 0:
        return
    home = install_once("debian-12-1", _bootstrap)
    changes = [f"--change=ENV {name}={os.environ[name]}" for name in INDEXES if os.environ.get(name)]
    command = ["docker", "import", *changes, "--change=ENV LANG=C.UTF-8", str(home / "root.tar"), BOOKWORM]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _bootstrap(folder: Path) -> None:
    if not can_install():
        raise InstallFailed("a stand-in is a Debian made by debootstrap, which needs Debian and root")
    if not shutil.which("debootstrap"):
        install_packages("debootstrap")
    root = folder / "root"
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", "bookworm", str(root)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    # Whom this machine trusts, its own proxy for one, is trusted inside, too.
    authorities = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    if authorities:
        shutil.copy(authorities, root / AUTHORITIES)
    excludes = [f"--exclude={pattern}" for pattern in NOT_KEPT]
    subprocess.run(["tar", "-C", str(root), *excludes, "-cf", str(folder / "root.tar"), "."], check=True)
    shutil.rmtree(root)


def stands_in_for(image: str) -> bool:
    """Whether there is a recipe for the image."""
    return image.partition(":")[0] in _FILLS


def recipe(image: str) -> str:
    """What the label of this image's stand-in is, 16 hexadecimal digits."""
    digest = hashlib.sha256(image.encode())
    parts = sorted(path for path in _folder(image).rglob("*") if path.is_file())
    for file in (Path(__file__), Path(kafka_tools.__file__), *parts):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def build(image: str) -> None:
    """Builds the stand-in under the image's own name.

    Raises:
        InstallFailed: there is no recipe for it, or a part cannot be had here.
        subprocess.CalledProcessError: a step failed; its output went to stderr.
    """
    name, _, tag = image.partition(":")
    if name not in _FILLS:
        raise InstallFailed(f"{image} cannot be pulled, and there is no stand-in for it")
    ensure_bookworm()
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
        raise InstallFailed("Go is needed for the stand-in of golang: install it (https://go.dev/dl)")
    home = subprocess.check_output([go, "env", "GOROOT"], text=True).strip()
    shutil.copytree(home, context / "go", symlinks=True)


def _fill_elasticsearch(context: Path, tag: str) -> None:
    java = elasticsearch_installation.java_home()
    _need(elasticsearch_installation.unavailable_reason(tag), java)
    _copy_java(java, context)
    shutil.copytree(elasticsearch_installation.install(tag), context / "elasticsearch")


def _fill_kafka(context: Path, tag: str) -> None:
    if tag != KAFKA.version:
        raise InstallFailed(f"the stand-in for Kafka is {KAFKA.version}, and {tag} is asked for")
    java = KAFKA.java_home()
    _need(KAFKA.unavailable_reason(), java)
    _copy_java(java, context)
    shutil.copytree(KAFKA.install(), context / "libs")
    maven.fetch(kafka_tools.JAR, context / "libs")
    kafka_tools.write_scripts(context / "bin", "/opt/kafka/bin/kafka-run-class.sh")


def _need(reason: str | None, java: Path | None) -> None:
    if reason or not java:
        raise InstallFailed(str(reason))


def _copy_java(java: Path | None, context: Path) -> None:
    assert java
    shutil.copytree(java.resolve(), context / "java", symlinks=True, ignore=shutil.ignore_patterns(*NOT_OF_A_JRE))


_FILLS: dict[str, Callable[[Path, str], None]] = {
    "python": _fill_nothing,
    "golang": _fill_go,
    "docker.elastic.co/elasticsearch/elasticsearch": _fill_elasticsearch,
    "apache/kafka": _fill_kafka,
}
