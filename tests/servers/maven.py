"""Fetches one file with Maven, which knows by its own settings where artifacts come from."""

import shutil
import subprocess
from pathlib import Path


class DownloadFailed(Exception):
    """Maven did not bring the file; the message ends with what it said."""


def find_maven() -> str | None:
    """The Maven program, None if there is none."""
    return shutil.which("mvn")


def fetch(coordinates: str, folder: Path) -> None:
    """Copies the artifact `group:name:version:type` into an existing folder, its checksum verified.

    Raises:
        DownloadFailed: Maven is missing, or there is no network or no such artifact.
    """
    maven = find_maven()
    if not maven:
        raise DownloadFailed(f"Maven is needed to download {coordinates}; install it (Debian: apt-get install maven)")
    # Maven looks for a project where it runs, so it runs in the (empty) folder.
    command = [maven, "--batch-mode", "--strict-checksums", "dependency:copy", f"-Dartifact={coordinates}"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={folder}"], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = "\n".join(line for line in done.stdout.splitlines() if line.startswith("[ERROR]"))
        raise DownloadFailed(f"Maven could not download {coordinates}; is there a network?\n{said or done.stderr}")
