"""Commands of the manifests, run here as they stand, with folders of the test in place of the volumes."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.deploy.kubernetes_objects import Object, arguments, pod, rendered

ROOT = Path(__file__).parents[2]
# Of the images and volumes, at the start of a path.
FOLDERS = re.compile(r"(?<![\w/.])(/var/lib/similarity|/tmp|/app)(?=/)")
OF_USAGE = 2  # what argparse and typer exit with


def run_here(overlay: str, owner: str, name: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Runs the command of a container, with the embedded index."""
    objects = rendered(overlay)
    found: Object
    [found] = [each for each in pod(objects, owner).containers if each["name"] == name]
    program, *rest = arguments(found, objects)
    start = {"python": [sys.executable], "similarity": [sys.executable, "-m", "similarity"]}[program]
    moved = [FOLDERS.sub(str(folder), part) for part in rest]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SIMILARITY_")}
    own = {"SIMILARITY_INDEX": str(folder / "similarity.db"), "SIMILARITY_BUNDLES": str(folder / "bundles")}
    return subprocess.run(
        [*start, *moved],
        env={**environ, **own, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("overlay", "file"), [("small", "data/sample/companies.jsonl"), ("production", "files/companies.jsonl")]
)
def test_a_first_load_loads_and_a_second_does_nothing(tmp_path: Path, overlay: str, file: str) -> None:
    """A row that was refused is told of and does not fail the Job."""
    (tmp_path / file).parent.mkdir(parents=True)
    lines = (ROOT / "data" / "sample" / "companies.jsonl").read_text(encoding="utf-8").splitlines()
    (tmp_path / file).write_text("\n".join([*lines[:5], "not a company"]), encoding="utf-8")
    first = run_here(overlay, "CronJob/first-load", "first-load", tmp_path)
    assert "1 row was rejected" in first.stderr
    assert first.returncode == 0, first.stderr
    rejects = list(tmp_path.rglob("*rejects.jsonl"))
    assert len(rejects) == 1, first.stderr
    rejects[0].unlink()
    again = run_here(overlay, "CronJob/first-load", "first-load", tmp_path)
    assert again.returncode == 0, again.stderr
    assert not rejects[0].exists()


@pytest.mark.parametrize(
    ("owner", "name", "needs", "says"),
    [
        ("CronJob/reembed", "reembed", "apache_beam", "there is no bundle"),
        ("CronJob/training", "train", "torch", "feedback.jsonl"),
        ("CronJob/training", "export", "torch", "feedback.companies"),
    ],
)
def test_a_program_knows_its_options(tmp_path: Path, owner: str, name: str, needs: str, says: str) -> None:
    """It gets as far as what it has to read, which is not there."""
    if not find_spec(needs):
        pytest.skip(f"{needs} is not installed here: make test-integration, make test-training")
    done = run_here("production", owner, name, tmp_path)
    assert done.returncode not in {0, OF_USAGE}, done.stderr
    assert says in done.stderr
