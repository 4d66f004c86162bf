"""Runs Go, which builds programs that are published as source only; Go verifies them with its checksum database."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.servers.installing import InstallFailed

USUAL_GO = Path("/usr/local/go/bin/go")
MISSING = "Go is needed to build it: install it (https://go.dev/dl) so that `go` is on the PATH"


def find_go() -> str | None:
    """Returns the go program; None if there is none."""
    return shutil.which("go") or (str(USUAL_GO) if USUAL_GO.exists() else None)


def run_go(*arguments: str, folder: Path, **environment: str) -> str:
    """Returns Go's standard output. It runs outside any workspace, with the toolchain that is installed.

    Raises:
        InstallFailed: Go is missing or too old, or there is no network.
    """
    go = find_go()
    if not go:
        raise InstallFailed(MISSING)
    variables = {**os.environ, "GOFLAGS": "", "GOWORK": "off", **environment}
    done = subprocess.run([go, *arguments], env=variables, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallFailed(f"Go could not do {' '.join(arguments)}; is there a network?\n{done.stderr[-2000:]}")
    return done.stdout
