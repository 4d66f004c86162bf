"""The wheel holds the service under a name of its own, offers extras only for what it holds, and installs as told."""

import os
import re
import subprocess
import sys
import time
import zipfile
from email import message_from_bytes
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.servers.ports import free_ports

ROOT = Path(__file__).parents[2]
RELEASE = os.environ.get("RELEASE")  # where `make release-check` has built the wheel, and has installed it in venv/
PYTHON = str(ROOT / RELEASE / "venv/bin/python") if RELEASE else sys.executable


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the release, else one that is built now."""
    folder = ROOT / RELEASE if RELEASE else tmp_path_factory.mktemp("wheel")
    if not RELEASE:
        build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
        subprocess.run([*build, "--wheel-dir", folder, ROOT], check=True, timeout=300)
    [built] = folder.glob("company_similarity-*.whl")
    return built


@pytest.fixture(scope="module")
def site(wheel: Path) -> Path:
    """The folder that the wheel is installed in."""
    if RELEASE:
        [packages] = wheel.parent.glob("venv/lib/python*/site-packages")
        return packages
    zipfile.ZipFile(wheel).extractall(wheel.parent / "site")
    return wheel.parent / "site"


def environment(site: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(site)}


def run(site: Path, folder: Path, *arguments: str) -> str:
    finished = subprocess.run(
        [PYTHON, *arguments],
        cwd=folder,
        env=environment(site),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        assert process.poll() is None
        try:
            urlopen(url).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"{url} does not answer")


def test_what_is_in_the_wheel_answers_and_serves(site: Path, tmp_path: Path) -> None:
    sample = str(site / "similarity/sample/companies.jsonl")
    ingested = run(site, tmp_path, "-m", "similarity", "ingest", sample, "--index", "index.db")
    assert "companies in the index" in ingested
    assert "Airbus" in run(site, tmp_path, "-m", "similarity", "similar", "boeing", "--index", "index.db")
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    command = [PYTHON, "-m", "similarity", "serve", "--index", "index.db", "--port", str(port)]
    service = subprocess.Popen(command, cwd=tmp_path, env=environment(site), stderr=subprocess.DEVNULL)
    try:
        wait_for(f"{url}/readyz", service)
        with urlopen(f"{url}/docs") as answer:
            manual = answer.read().decode()
        assert "Airbus" in run(site, tmp_path, "-m", "similarity", "similar", "boeing", "--url", url)
    finally:
        service.terminate()
        service.wait(timeout=60)
    # Not from the checkout, which the environment of the tests holds too.
    assert "python -m similarity.service.keys add" in manual
    assert "usage: python -m similarity.service.keys" in run(site, tmp_path, "-m", "similarity.service.keys", "--help")


def test_the_wheel_offers_no_extra_that_it_cannot_serve(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        extras = message_from_bytes(archive.read(metadata)).get_all("Provides-Extra")
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert set(extras or []) == {"search", "client", "openvino", "elasticsearch", "kafka"}
    [checked] = re.findall(r"\.whl\)\[(\S+)\]", (ROOT / "Makefile").read_text(encoding="utf-8"))  # make release-check
    assert set(checked.split(",")) == set(extras or [])
    assert tops == {"similarity", metadata.split("/")[0]}


@pytest.mark.integration
@pytest.mark.nightly
def test_the_commands_of_the_guide_install_it_in_another_folder(tmp_path: Path) -> None:
    guide = (ROOT / "docs/installing.md").read_text(encoding="utf-8")
    [commands] = re.findall(r"^```shell\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    shell = ["bash", "-e", "-c", commands.replace("/path/to/company-similarity", str(ROOT))]
    wide = {**os.environ, "COLUMNS": "150"}
    done = subprocess.run(shell, cwd=tmp_path, env=wide, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Maisons du Monde" in done.stdout
