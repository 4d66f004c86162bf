"""Debian's packages for tests in containers: installed on this machine, and as the system of stand-ins."""

import os
import shutil
import ssl
import subprocess
from pathlib import Path

from tests.servers.cache import cache_folder
from tests.servers.installing import install_once

BOOKWORM = "stand-in/bookworm:1"
PACKAGES = ("bash", "ca-certificates", "curl", "python3", "python3-venv")
# How this machine reaches package indexes; builds inside containers go the same way.
INDEXES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT", "GOPROXY", "GONOSUMDB")
AUTHORITIES = Path("etc/ssl/certs/ca-certificates.crt")
NOT_KEPT = ("./var/cache/apt/archives/*.deb", "./var/lib/apt/lists/*")


class NoStandIn(Exception):
    """An image can neither be pulled nor replaced here; the message says what is missing."""


def can_install() -> bool:
    """Whether packages can be installed here: this is Debian or alike, and we are root."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install_packages(*names: str) -> None:
    """Installs packages of Debian on this machine."""
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *names]):
        subprocess.run(["apt-get", *command], check=True, stdout=subprocess.DEVNULL)


def ensure_bookworm() -> None:
    """The Debian 12 that all stand-ins are FROM, imported from one tar file in the cache.

    Raises:
        NoStandIn: this is not Debian, or not root.
    """
    if subprocess.run(["docker", "image", "inspect", BOOKWORM], capture_output=True, check=False).returncode == 0:
        return
    home = install_once(cache_folder() / "debian-12-1", _bootstrap)
    changes = [f"--change=ENV {name}={os.environ[name]}" for name in INDEXES if os.environ.get(name)]
    command = ["docker", "import", *changes, "--change=ENV LANG=C.UTF-8", str(home / "root.tar"), BOOKWORM]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _bootstrap(folder: Path) -> None:
    if not can_install():
        raise NoStandIn("a stand-in is a Debian made by debootstrap, which needs Debian and root")
    if not shutil.which("debootstrap"):
        install_packages("debootstrap")
    root = folder / "root"
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", "bookworm", str(root)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    # Whom this machine trusts, its own proxy for one, is trusted inside, too.
    authorities = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    if authorities:
        shutil.copy(authorities, root / AUTHORITIES)
    excludes = [f"--exclude={pattern}" for pattern in NOT_KEPT]
    subprocess.run(["tar", "-C", str(root), *excludes, "-cf", str(folder / "root.tar"), "."], check=True)
    shutil.rmtree(root)
