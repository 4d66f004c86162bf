"""Kafka's own command line tools, as the scripts that its distribution has: for tests of what operators type.

install_scripts(folder)    # folder/kafka-consumer-groups.sh and the others; put the folder on the PATH
"""

from functools import partial
from pathlib import Path

from tests.servers import maven
from tests.servers.installing import cache_folder, install_once
from tests.servers.kafka import KAFKA

JAR = f"org.apache.kafka:kafka-tools:{KAFKA.version}:jar"
FOLDER = f"kafka-tools-{KAFKA.version}"
SCRIPTS = {
    "kafka-broker-api-versions.sh": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delete-records.sh": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-get-offsets.sh": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
}
# Quiet, and half of Java's compiler: each starts a Java of its own.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx128m"


def unavailable_reason() -> str | None:
    """Why the tools cannot run here, and what to do about it; None if they can."""
    if reason := KAFKA.unavailable_reason():
        return reason
    if not ((cache_folder() / FOLDER).exists() or maven.find_maven()):
        return "Maven is needed to download Kafka's tools: install it (Debian: apt-get install maven)"
    return None


def install_scripts(folder: Path) -> None:
    """Write the scripts into an existing folder; download the tools (1 MB beside the broker) if need be.

    Raises:
        InstallFailed: Maven is missing, or there is no network.
    """
    tools = install_once(FOLDER, partial(maven.fetch, JAR))
    write_scripts(folder, f"{KAFKA.java_home()}/bin/java {JAVA_OPTIONS} -cp '{tools}/*:{KAFKA.install()}/*'")


def write_scripts(folder: Path, java: str) -> None:
    """Write the scripts into an existing folder; `java` is the command that runs the class after it."""
    for name, program in SCRIPTS.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {java} {program} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
