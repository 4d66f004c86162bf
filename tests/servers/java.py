"""Finds a Java that a server runs on, and installs servers whose jars are in Maven Central."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from tests.servers import maven
from tests.servers.installing import cache_folder, install_once

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


@dataclass(frozen=True, kw_only=True)
class JavaServer:
    """A server that consists of jars: which ones, and which Java runs it.

    `digest` is of the names and contents of all jars, so that a build of one version is the same everywhere.
    """

    name: str
    version: str
    jars: tuple[str, ...]
    digest: str
    java_variable: str
    oldest_java: int
    newest_java: int = 999

    @property
    def folder(self) -> str:
        """The name of its folder in the cache."""
        return f"{self.name.lower()}-{self.version}"

    def unavailable_reason(self) -> str | None:
        """Returns why the server cannot run here, and what to do about it; None if it can."""
        if not self.java_home():
            java = f"Java {self.oldest_java}" + (" or newer" if self.newest_java > self.oldest_java else "")
            return f"{self.name} needs {java}: install it, or name its folder in {self.java_variable}"
        if not ((cache_folder() / self.folder).exists() or maven.find_maven()):
            return f"Maven is needed to download {self.name}: install it (Debian: apt-get install maven)"
        return None

    def java_home(self) -> Path | None:
        """Returns the Java that the variable names, else the newest one of this machine; None if it does not suit."""
        return find_java(variable=self.java_variable, at_least=self.oldest_java, at_most=self.newest_java)

    def install(self) -> Path:
        """Returns the folder of the jars; downloads them if they are not there yet.

        Raises:
            InstallFailed: Maven is missing, or there is no network.
            ValueError: the jars are not the expected ones.
        """
        return install_once(self.folder, self._download)

    def _download(self, folder: Path) -> None:
        maven.fetch_all(self.jars, folder)
        if (found := maven.digest_of(folder)) != self.digest:
            raise ValueError(f"Maven brought other jars of {self.name} than expected (together {found}); try again")
