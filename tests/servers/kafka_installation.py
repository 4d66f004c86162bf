"""Installs a Kafka broker into the cache folder, once per version, for all checkouts of one user.

Apache publishes the broker's jars to Maven Central; a broker needs nothing else of its distribution.
"""

from functools import partial
from pathlib import Path

from tests.servers import maven
from tests.servers.cache import cache_folder
from tests.servers.installing import install_once
from tests.servers.java import find_java

JAVA_VARIABLE = "KAFKA_JAVA_HOME"
OLDEST_JAVA = 17
VERSION = "4.1.1"
# Of the names and contents of all jars, so that a build of one version is the same everywhere.
DIGEST = "b25fd09bbfc0f616307b3a11e00e2d988d29013c60acb9550fa2108c77cc6b16"
JARS = (
    f"org.apache.kafka:kafka_2.13:{VERSION}",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3",
    "org.apache.logging.log4j:log4j-core:2.24.3",
)


def unavailable_reason() -> str | None:
    """Why no Kafka can run here, and what to do about it; None if it can."""
    if not java_home():
        return f"Kafka needs Java {OLDEST_JAVA} or newer: install one, or name its folder in {JAVA_VARIABLE}"
    if not (_home().exists() or maven.find_maven()):
        return "Maven is needed to download Kafka: install it (Debian: apt-get install maven)"
    return None


def java_home() -> Path | None:
    """The Java that Kafka runs with: `KAFKA_JAVA_HOME`, else the newest on this machine; None if too old."""
    return find_java(variable=JAVA_VARIABLE, at_least=OLDEST_JAVA)


def install() -> Path:
    """The folder of the broker's jars; downloads them (about 43 MB) if they are not there yet.

    Raises:
        maven.DownloadFailed: Maven is missing, or there is no network.
        ValueError: the jars are not the expected ones.
    """
    return install_once(_home(), partial(maven.fetch_build, JARS, what=f"Kafka {VERSION}", digest=DIGEST))


def _home() -> Path:
    return cache_folder() / f"kafka-{VERSION}"
