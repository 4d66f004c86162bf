"""Builds Prism, Beam's runner for one machine, into the cache folder, once per version, for all checkouts of one user.

Prism is published as source only, as a Go module; Go verifies it with its checksum database.
"""

import os
import shutil
import subprocess
from pathlib import Path

from tests.servers.cache import cache_folder
from tests.servers.installing import install_once

VERSION = "2.77.0"  # that of the apache-beam in the lock files
MODULE = "github.com/apache/beam/sdks/v2/go/cmd/prism"
USUAL_GO = Path("/usr/local/go/bin/go")


class BuildFailed(Exception):
    """Go did not build Prism; the message ends with what it said."""


def unavailable_reason() -> str | None:
    """Why no Prism can run here, and what to do about it; None if it can."""
    if _home().exists() or find_go():
        return None
    return "Go is needed to build Prism: install it (https://go.dev/dl) so that `go` is on the PATH"


def find_go() -> str | None:
    """The go program, None if there is none."""
    return shutil.which("go") or (str(USUAL_GO) if USUAL_GO.exists() else None)


def install() -> Path:
    """The program; builds it if it is not there yet, which takes minutes.

    Raises:
        BuildFailed: Go is missing or too old, or there is no network.
    """
    return install_once(_home(), _build) / "prism"


def _home() -> Path:
    return cache_folder() / f"prism-{VERSION}"


def _build(folder: Path) -> None:
    go = find_go()
    if not go:
        raise BuildFailed(str(unavailable_reason()))
    environment = {**os.environ, "GOBIN": str(folder)}
    command = [go, "install", f"{MODULE}@v{VERSION}"]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildFailed(f"Go could not build Prism {VERSION}; is there a network?\n{done.stderr}")
