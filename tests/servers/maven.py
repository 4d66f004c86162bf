"""Fetches files with Maven, which knows by its own settings where artifacts come from."""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.servers.installing import InstallFailed

PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId>
  <artifactId>servers</artifactId>
  <version>1</version>
  <dependencies>{}</dependencies>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


def find_maven() -> str | None:
    """The Maven program, None if there is none."""
    return shutil.which("mvn")


def fetch(coordinates: str, folder: Path) -> None:
    """Copies the artifact `group:name:version:type` into an existing folder. The caller verifies what came.

    Raises:
        InstallFailed: Maven is missing, or there is no network or no such artifact.
    """
    _run("dependency:copy", f"-Dartifact={coordinates}", f"-DoutputDirectory={folder}", what=coordinates, cwd=folder)


def fetch_all(artifacts: Sequence[str], folder: Path) -> None:
    """Copies the jars `group:name:version` and all that they need at run time into an existing folder.

    Raises:
        InstallFailed: Maven is missing, or there is no network or no such artifact.
    """
    dependencies = "".join(DEPENDENCY.format(*artifact.split(":")) for artifact in artifacts)
    with tempfile.TemporaryDirectory() as project:
        (Path(project) / "pom.xml").write_text(PROJECT.format(dependencies), encoding="utf-8")
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        _run("dependency:copy-dependencies", *options, what=artifacts[0], cwd=Path(project))


def digest_of(folder: Path) -> str:
    """SHA-256 of the names and contents of all jars in a folder."""
    digest = hashlib.sha256()
    for jar in sorted(folder.glob("*.jar")):
        digest.update(jar.name.encode() + hashlib.sha256(jar.read_bytes()).digest())
    return digest.hexdigest()


def _run(goal: str, *options: str, what: str, cwd: Path) -> None:
    """Runs Maven in a folder of its own, because it looks for a project where it runs."""
    maven = find_maven()
    if not maven:
        raise InstallFailed(f"Maven is needed to download {what}; install it (Debian: apt-get install maven)")
    # Some mirrors hold no checksum files. Every caller compares with a SHA-256 of its own, which is the stronger test.
    command = [maven, "--batch-mode", "--lax-checksums", goal, *options]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        said = "\n".join(line for line in done.stdout.splitlines() if line.startswith("[ERROR]"))
        raise InstallFailed(f"Maven could not download {what}; is there a network?\n{said or done.stderr}")
