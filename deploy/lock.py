"""Pins every extra and dependency group in a lock file with hashes: `make lock`.

    deploy/locks/build.txt   what builds the package itself
    deploy/locks/NAME.txt    the base install and NAME

`integration` is pinned first and constrains the others, so that one environment can hold several:
Beam holds back some of what the others would use in newer versions: 2.77 takes pyarrow below 26 (26.0.1 passes the
tests of files, exports and imports), and an older protobuf.
"""

import subprocess
import sys
from pathlib import Path

LOCKS = Path(__file__).parent / "locks"
BUILD = "hatchling\neditables\n"
# name of the lock file -> the extras and the dependency groups it holds, beside the base install
LOCKED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "integration": (("search", "client", "elasticsearch", "kafka"), ("pipelines", "dev", "integration")),
    "dev": (("search", "client", "elasticsearch"), ("dev",)),
    "docs": ((), ("docs",)),
    "base": ((), ()),
    "search": (("search",), ()),
    "client": (("client",), ()),
    "openvino": (("openvino",), ()),
    "elasticsearch": (("elasticsearch",), ()),
    "kafka": (("kafka",), ()),
    "pipelines": (("elasticsearch", "kafka"), ("pipelines",)),
    "training": (("search", "client", "elasticsearch", "openvino"), ("dev", "training", "weights")),
}
FIRST = "integration"


def main() -> None:
    """Writes all lock files."""
    _compile("build", ["-"], source=BUILD)
    for name, (extras, groups) in LOCKED.items():
        options = ["pyproject.toml", *(f"--extra={each}" for each in extras), *(f"--group={each}" for each in groups)]
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
