"""On what a campaign ran: code, machine, software. For the reports."""

import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def commit() -> str:
    """The commit, marked where the tree differs from it."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return described.stdout.strip() or "unknown"


def fingerprint(patterns: Iterable[str]) -> str:
    """12 hexadecimal digits of what is in the files of these patterns, so that results of other code are told apart."""
    digest = hashlib.sha256()
    for file in sorted({file for pattern in patterns for file in ROOT.glob(pattern)}):
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def memory() -> str:
    """All of the machine's, in GB."""
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB"


def machine() -> str:
    return f"{processor()}, {os.cpu_count()} CPUs, {memory()} of memory, {platform.system()} {platform.release()}"
