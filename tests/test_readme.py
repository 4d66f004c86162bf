"""The README is short, and its commands and those of two guides run as written, in their order, in one shell."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path

import pytest

from tests.servers.ports import free_ports

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "docs/command-line.md", "docs/notebook.md")
COPIED = ("Makefile", "data/sample", "models", "services", "similarity")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = {"make train-demo\n": "installs torch (5 GB) and trains for minutes; see tests/training/test_demo.py"}
MOST_WORDS = 900
SECONDS = 300
# An HTTP error makes curl fail. Servers run in the background, and the next command waits until they are ready.
FUNCTIONS = """
set -e -o pipefail
curl() { command curl --silent --show-error --fail-with-body "$@"; }
ready() { until curl "http://127.0.0.1:$2/readyz" > readyz.txt 2>&1; do kill -0 "$1"; sleep 0.1; done; }
make() { command make "$@" & ready $! DEMO_PORT; }
similarity() {
    if [ "$1" = serve ]; then command similarity "$@" & ready $! SERVE_PORT
    else command similarity "$@"; fi
}
"""


@dataclass(frozen=True)
class Block:
    document: str
    language: str
    text: str


def blocks() -> list[Block]:
    """The fenced blocks of the documents, without those that are left out."""
    found = [Block(name, *each) for name in DOCUMENTS for each in BLOCK.findall((ROOT / name).read_text("utf-8"))]
    assert {each.language for each in found} <= {"shell", "python", "text"}
    assert LEFT_OUT.keys() <= {each.text for each in found}
    return [each for each in found if each.text not in LEFT_OUT]


def test_a_stranger_reads_the_readme_to_the_end() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= MOST_WORDS


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the files that the commands need, as `make .venv/search` leaves it: nothing is left to install."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "activate").write_text('PATH="$PWD/.venv/bin:$PATH"\n')
    for name, command in (("python", ""), ("similarity", "-m similarity")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n')
        (programs / name).chmod(0o755)
    for needed in ("deploy/locks/search.txt", "pyproject.toml", ".venv/python", ".venv/search"):
        (tmp_path / needed).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / needed).touch()
    return tmp_path


def program(shown: list[Block], ports: list[int]) -> Iterator[str]:
    """The blocks as one program of the shell. The output of block N goes to the file N.out."""
    demo, serve = map(str, ports)
    yield FUNCTIONS.replace("DEMO_PORT", demo).replace("SERVE_PORT", serve)
    for place, block in enumerate(shown):
        text = block.text.replace("8080", demo).replace("8081", serve)
        if block.language == "shell":
            yield f"{{\n{text}}} > {place}.out\n"
        elif block.language == "python":
            yield f"python - > {place}.out <<'END OF PYTHON'\n{text}END OF PYTHON\n"


def number(word: str) -> float | None:
    """The value of a word that is a number or a percentage."""
    found = re.fullmatch(r"([+-]?\d+(?:\.\d+)?)(%?)", word)
    return float(found[1]) / (100 if found[2] else 1) if found else None


def differences(shown: str, printed: str) -> list[str]:
    """The shown words that were not printed in their order; a number may differ by .02."""
    left, right = shown.split(), printed.split()
    one_side, other_side = (["#" if number(word) is not None else word for word in side] for side in (left, right))
    wrong = set(range(len(left)))
    for start, other, size in SequenceMatcher(None, one_side, other_side, autojunk=False).get_matching_blocks():
        for place in range(size):
            one, two = number(left[start + place]), number(right[other + place])
            if one is None or two is None or abs(one - two) <= 0.02:
                wrong.discard(start + place)
    return [left[place] for place in sorted(wrong)]


@pytest.mark.integration
def test_every_command_runs_as_written_and_prints_what_is_shown(checkout: Path) -> None:
    shown, ports = blocks(), free_ports(2)
    (checkout / "commands.sh").write_text("".join(program(shown, ports)), encoding="utf-8")
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment |= {"PYTHONPATH": str(checkout), "PORT": str(ports[0]), "COLUMNS": "150", "LC_ALL": "C.UTF-8"}
    log = checkout / "errors.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            ["bash", "commands.sh"], cwd=checkout, env=environment, stderr=errors, start_new_session=True
        ) as shell,
    ):
        try:
            status = shell.wait(timeout=SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)
    begun = [block for place, block in enumerate(shown) if (checkout / f"{place}.out").exists()]
    assert status == 0, f"{begun[-1:]}\n{log.read_text()[-2000:]}"
    for place, (command, answer) in enumerate(pairwise(shown)):
        if answer.language == "text":
            printed = (checkout / f"{place}.out").read_text(encoding="utf-8")
            assert differences(answer.text, printed) == [], f"{command}\n{printed}"
