"""Installs Elasticsearch into the cache folder, once per version, for all checkouts of one user.

The distribution is the one that Elastic publishes for integration tests of other software: the server
without a Java of its own and without most modules (no ingest, no scripting, no machine learning).
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import maven
from tests.servers.cache import cache_folder
from tests.servers.certificates import find_openssl
from tests.servers.java import find_java

JAVA_VARIABLE = "ES_JAVA_HOME"
OLDEST_JAVA = 21
# The versions that tests run on, the first of them by default, with the SHA-256 of each zip.
VERSIONS = {
    "9.5.0": "db0e275fd790f723eca7bcde96069fd6fed304ad23afdb70c8c09553dd9e8b1b",
    "9.2.8": "db508f13489de1f46f1af9b487e1589071f34f5eb03a996b851a8bd67880f09b",
}
DEFAULT_VERSION = next(iter(VERSIONS))


def unavailable_reason(version: str = DEFAULT_VERSION) -> str | None:
    """Why no Elasticsearch of this version can run here, and what to do about it; None if it can."""
    if not java_home():
        return (
            f"Elasticsearch needs Java {OLDEST_JAVA} or newer (25 is best): install one, or name its folder "
            f"in {JAVA_VARIABLE}"
        )
    if not (_home(version).exists() or _zip(version).exists() or maven.find_maven()):
        return "Maven is needed to download Elasticsearch: install it (Debian: apt-get install maven)"
    if not find_openssl():
        return "openssl is needed to make certificates for Elasticsearch: install it"
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        return "Elasticsearch refuses to run as root: install setpriv (Debian: util-linux), or be another user"
    return None


def java_home() -> Path | None:
    """The Java that Elasticsearch runs with: `ES_JAVA_HOME`, else the newest on this machine; None if too old."""
    return find_java(variable=JAVA_VARIABLE, at_least=OLDEST_JAVA)


def install(version: str = DEFAULT_VERSION) -> Path:
    """The folder of this version's distribution; downloads and unpacks it if it is not there yet.

    Whoever sees the folder sees it complete, and any number of processes may install at once.

    Raises:
        maven.DownloadFailed: Maven is missing, or there is no network.
        ValueError: the version is not in `VERSIONS`, or the zip is not the expected one.
    """
    if version not in VERSIONS:
        raise ValueError(f"Elasticsearch {version} is not known here; add it and the SHA-256 of its zip to VERSIONS")
    home = _home(version)
    if not home.exists():
        with _locked(home.with_name(f"{home.name}.lock")):
            if not home.exists():
                _download(version)
                _unpack(version)
    return home


def _home(version: str) -> Path:
    return cache_folder() / f"elasticsearch-{version}"


def _zip(version: str) -> Path:
    return cache_folder() / "dl" / f"elasticsearch-{version}.zip"


@contextmanager
def _locked(lock: Path) -> Iterator[None]:
    """Holds the lock, which the system frees when its holder dies."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _unfinished(folder: Path) -> Iterator[Path]:
    """A new folder beside the final place: what is complete in it is renamed to its place, the rest goes."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="unfinished-") as unfinished:
        yield Path(unfinished)


def _download(version: str) -> None:
    target = _zip(version)
    if not target.exists():
        with _unfinished(target.parent) as folder:
            maven.fetch(f"org.elasticsearch.distribution.integ-test-zip:elasticsearch:{version}:zip", folder)
            (folder / target.name).rename(target)
    with target.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != VERSIONS[version]:
        raise ValueError(
            f"{target} is not the zip that was expected (its SHA-256 is {digest}); remove it and try again"
        )


def _unpack(version: str) -> None:
    home = _home(version)
    with _unfinished(home.parent) as folder:
        with zipfile.ZipFile(_zip(version)) as file:
            file.extractall(folder)
        for program in (folder / home.name / "bin").iterdir():
            program.chmod(0o755)  # zipfile does not keep modes
        (folder / home.name).rename(home)
