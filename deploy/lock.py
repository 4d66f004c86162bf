"""Pins every extra in a lock file with hashes: `make lock`.

    deploy/locks/build.txt   what builds the package itself
    deploy/locks/NAME.txt    the base install and the extra NAME

`dev` is pinned first and constrains the others, so that one environment can hold several extras.
"""

import subprocess
import sys
from pathlib import Path

LOCKS = Path(__file__).parent / "locks"
BUILD = "hatchling\neditables\n"
# name of the lock file -> the extras it holds, beside the base install
EXTRAS = {
    "dev": ("search", "elasticsearch", "dev"),
    "base": (),
    "search": ("search",),
    "openvino": ("openvino",),
    "elasticsearch": ("elasticsearch",),
    "kafka": ("kafka",),
    "pipelines": ("pipelines",),
    "integration": ("search", "elasticsearch", "dev", "integration"),
    "training": ("search", "elasticsearch", "dev", "training", "weights", "openvino"),
}
# Beam holds back some of what the others use in newer versions.
UNCONSTRAINED = ("dev", "pipelines")


def main() -> None:
    """Writes all lock files."""
    _compile("build", ["-"], source=BUILD)
    for name, extras in EXTRAS.items():
        options = ["pyproject.toml", *(f"--extra={extra}" for extra in extras)]
        if name not in UNCONSTRAINED:
            options.append(f"--constraint={LOCKS / 'dev.txt'}")
        _compile(name, options)


def _compile(name: str, options: list[str], *, source: str | None = None) -> None:
    command = [sys.executable, "-m", "uv", "pip", "compile", *options, "--universal", "--python-version=3.11"]
    command += ["--generate-hashes", "--no-emit-index-url", "--no-annotate", "--custom-compile-command=make lock"]
    command += ["--upgrade", "--quiet", f"--output-file={LOCKS / name}.txt"]
    subprocess.run(command, input=source, text=True, check=True)
    sys.stderr.write(f"{name}.txt\n")


if __name__ == "__main__":
    main()
