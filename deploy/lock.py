"""Pins every extra in a lock file with hashes: `make lock`.

    deploy/locks/build.txt   what builds the package itself
    deploy/locks/NAME.txt    the base install and the extra NAME

`integration` is pinned first and constrains the others, so that one environment can hold several extras:
Beam holds back some of what the others would use in newer versions (pyarrow, protobuf).
"""

import subprocess
import sys
from pathlib import Path

LOCKS = Path(__file__).parent / "locks"
BUILD = "hatchling\neditables\n"
# name of the lock file -> the extras it holds, beside the base install
EXTRAS = {
    "integration": ("search", "client", "elasticsearch", "kafka", "pipelines", "dev", "integration"),
    "dev": ("search", "client", "elasticsearch", "dev"),
    "base": (),
    "search": ("search",),
    "client": ("client",),
    "openvino": ("openvino",),
    "elasticsearch": ("elasticsearch",),
    "kafka": ("kafka",),
    "pipelines": ("elasticsearch", "kafka", "pipelines"),
    "training": ("search", "client", "elasticsearch", "dev", "training", "weights", "openvino"),
}
FIRST = "integration"


def main() -> None:
    """Writes all lock files."""
    _compile("build", ["-"], source=BUILD)
    for name, extras in EXTRAS.items():
        options = ["pyproject.toml", *(f"--extra={extra}" for extra in extras)]
        if name != FIRST:
            options.append(f"--constraint={LOCKS / FIRST}.txt")
        _compile(name, options)


def _compile(name: str, options: list[str], *, source: str | None = None) -> None:
    command = [sys.executable, "-m", "uv", "pip", "compile", *options, "--universal", "--python-version=3.11"]
    command += ["--generate-hashes", "--no-emit-index-url", "--no-annotate", "--custom-compile-command=make lock"]
    command += ["--upgrade", "--quiet", f"--output-file={LOCKS / name}.txt"]
    subprocess.run(command, input=source, text=True, check=True)
    sys.stderr.write(f"{name}.txt\n")


if __name__ == "__main__":
    main()
