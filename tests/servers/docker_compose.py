"""docker compose 2: the plugin that is there, else one built from the Go module proxy, once, into the cache folder."""

import json
import subprocess
from functools import partial
from pathlib import Path

from tests.servers.cache import cache_folder
from tests.servers.installing import install_once
from tests.servers.prism_installation import BuildFailed, find_go

VERSION = "2.40.3"
MODULE = "github.com/docker/compose/v2"
PLUGINS = Path.home() / ".docker" / "cli-plugins"


def ensure_compose() -> None:
    """Builds the plugin and makes it known to docker, if there is none; building takes minutes.

    Raises:
        BuildFailed: Go is missing or too old, or there is no network.
    """
    if _answers():
        return
    program = install_once(cache_folder() / f"docker-compose-{VERSION}", _build) / "docker-compose"
    PLUGINS.mkdir(parents=True, exist_ok=True)
    plugin = PLUGINS / "docker-compose"
    plugin.unlink(missing_ok=True)
    plugin.symlink_to(program)
    if not _answers():
        raise BuildFailed(f"docker does not take {plugin} for docker compose; is the client older than 20.10?")


def _answers() -> bool:
    return subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0


def _build(folder: Path) -> None:
    go = find_go()
    if not go:
        raise BuildFailed("Go is needed to build docker compose: install it (https://go.dev/dl), or docker compose")
    run = partial(_run, go, folder=folder)
    source = json.loads(run("mod", "download", "-json", f"{MODULE}@v{VERSION}"))["Dir"]
    # `go install` refuses a module that replaces some of its dependencies, so it is built as its own main module.
    version = f"-X {MODULE}/internal.Version=v{VERSION}"
    program = folder / "docker-compose"
    run("build", "-C", source, "-trimpath", "-ldflags", f"-s -w {version}", "-o", str(program), "./cmd")


def _run(go: str, *arguments: str, folder: Path) -> str:
    done = subprocess.run([go, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildFailed(f"Go could not build docker compose {VERSION}; is there a network?\n{done.stderr}")
    return done.stdout
