"""Installs Flink and Beam's job server for it into the cache folder, once per version, for all checkouts of one user.

Beam publishes the job server's jars to Maven Central with all that they need, and that is Flink itself.
"""

from functools import partial
from pathlib import Path

from tests.servers import maven
from tests.servers.cache import cache_folder
from tests.servers.installing import install_once
from tests.servers.java import find_java

JAVA_VARIABLE = "FLINK_JAVA_HOME"
JAVA = 17  # the newest that Flink 1.19 supports
VERSION = "1.19-2.62.0"
# Of the names and contents of all jars, so that a test on one version is the same everywhere.
DIGEST = "a85ee1efebc6cecf9cb8b8ee22617d89ac7940e2d9b9b69144504239eb0bb6ae"
JARS = (
    "org.apache.beam:beam-runners-flink-1.19:2.62.0",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3",
    "org.apache.logging.log4j:log4j-core:2.24.3",
    "org.apache.logging.log4j:log4j-api:2.24.3",
)


def unavailable_reason() -> str | None:
    """Why no Flink can run here, and what to do about it; None if it can."""
    if not java_home():
        return f"Flink needs Java {JAVA}: install it, or name its folder in {JAVA_VARIABLE}"
    if not (_home().exists() or maven.find_maven()):
        return "Maven is needed to download Flink: install it (Debian: apt-get install maven)"
    return None


def java_home() -> Path | None:
    """The Java that Flink runs with: `FLINK_JAVA_HOME`, else one of this machine; None if there is none."""
    return find_java(variable=JAVA_VARIABLE, at_least=JAVA, at_most=JAVA)


def install() -> Path:
    """The folder of the jars; downloads them (about 150 MB) if they are not there yet.

    Raises:
        maven.DownloadFailed: Maven is missing, or there is no network.
        ValueError: the jars are not the expected ones.
    """
    return install_once(_home(), partial(maven.fetch_build, JARS, what="Flink", digest=DIGEST))


def _home() -> Path:
    return cache_folder() / f"flink-{VERSION}"
