"""Installs Elasticsearch into the cache folder, once per version, for all checkouts of one user.

The distribution is the one that Elastic publishes for integration tests of other software: the server
without a Java of its own and without most modules (no ingest, no scripting, no machine learning).
"""

import hashlib
import os
import shutil
import zipfile
from functools import partial
from pathlib import Path

from tests.servers import maven
from tests.servers.certificates import find_openssl
from tests.servers.installing import cache_folder, install_once
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
    if not ((cache_folder() / _folder(version)).exists() or maven.find_maven()):
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
        InstallFailed: Maven is missing, or there is no network.
        ValueError: the version is not in `VERSIONS`, or the zip is not the expected one.
    """
    if version not in VERSIONS:
        raise ValueError(f"Elasticsearch {version} is not known here; add it and the SHA-256 of its zip to VERSIONS")
    return install_once(_folder(version), partial(_download, version))


def _folder(version: str) -> str:
    return f"elasticsearch-{version}"


def _download(version: str, folder: Path) -> None:
    """Fetches the zip beside the folder and unpacks it there: the folder has the name of the one in the zip."""
    maven.fetch(f"org.elasticsearch.distribution.integ-test-zip:elasticsearch:{version}:zip", folder.parent)
    found = folder.parent / f"elasticsearch-{version}.zip"
    if (digest := hashlib.sha256(found.read_bytes()).hexdigest()) != VERSIONS[version]:
        raise ValueError(f"Maven brought another zip of Elasticsearch {version} than expected ({digest}); try again")
    with zipfile.ZipFile(found) as file:
        file.extractall(folder.parent)
    for program in (folder / "bin").iterdir():
        program.chmod(0o755)  # zipfile does not keep modes
