"""Finds a Java that a server runs on."""

import os
import re
from pathlib import Path

USUAL_FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)


def find_java(*, variable: str, at_least: int, at_most: int = 999) -> Path | None:
    """The home of the Java that the environment variable names, else of the newest one that is not too new.

    None if that is too old, or too new.
    """
    chosen = os.environ.get(variable)
    homes = [Path(chosen)] if chosen else [home for pattern in USUAL_FOLDERS for home in _matching(pattern)]
    homes = [home for home in homes if at_least <= java_version(home) <= at_most]
    return max(homes, key=java_version, default=None)


def java_version(home: Path) -> int:
    """The major version of the Java in this folder, 0 if there is none."""
    release = home / "release"
    if not (home / "bin" / "java").exists() or not release.exists():
        return 0
    found = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(encoding="utf-8"), re.MULTILINE)
    return int(found[1]) if found else 0


def _matching(pattern: str) -> list[Path]:
    path = Path(pattern).expanduser()
    return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
