"""Installs servers into a cache folder: outside the checkout, once, shared by all checkouts of one user."""

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path


class InstallFailed(Exception):
    """A server, or what it is installed with, cannot be had here; the message says what is missing."""


def cache_folder() -> Path:
    """Returns `$COMPANY_SIMILARITY_CACHE`, else `company-similarity` in the user's cache folder. It need not exist."""
    if chosen := os.environ.get("COMPANY_SIMILARITY_CACHE"):
        return Path(chosen).expanduser().absolute()
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "company-similarity"


def install_once(name: str, make: Callable[[Path], None]) -> Path:
    """Returns the folder of this name in the cache; if it is missing, it is what `make` puts into an empty folder.

    Whoever sees the folder sees it complete, and any number of processes may install at once. The lock is one that the
    system frees when its holder dies; what an interrupted `make` left is never taken for complete.
    """
    home = cache_folder() / name
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with home.with_name(f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not home.exists():
                _make(home, make)
    return home


def main(what: str, reason: str | None, *installs: Callable[[], object]) -> None:
    """Runs the installations of a server; if `reason` says why it is unavailable, or one fails, exits with status 1."""
    try:
        if reason:
            raise InstallFailed(reason)
        for install in installs:
            install()
    except (InstallFailed, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"not run: the tests on {what}. {error}\n")
        sys.exit(1)


def _make(home: Path, make: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory(dir=home.parent, prefix="unfinished-") as unfinished:
        folder = Path(unfinished) / home.name
        folder.mkdir()
        make(folder)
        folder.rename(home)
