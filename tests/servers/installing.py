"""Puts what was downloaded or built into the cache folder, once, whoever else does the same at this time."""

import fcntl
import tempfile
from collections.abc import Callable
from pathlib import Path


def install_once(home: Path, make: Callable[[Path], None]) -> Path:
    """The folder `home`; if it is missing, what `make` puts into an empty folder becomes it.

    Whoever sees `home` sees it complete, and any number of processes may install at once. The lock is one
    that the system frees when its holder dies; what an interrupted `make` left is never taken for complete.
    """
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with home.with_name(f"{home.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not home.exists():
                _make(home, make)
    return home


def _make(home: Path, make: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory(dir=home.parent, prefix="unfinished-") as unfinished:
        folder = Path(unfinished) / home.name
        folder.mkdir()
        make(folder)
        folder.rename(home)
