"""The wheel holds the service under a name of its own, and offers extras only for what it holds."""

import os
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The content of the wheel, as it would be installed."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    subprocess.run([*build, "--wheel-dir", folder, ROOT], check=True, timeout=300)
    [wheel] = folder.glob("company_similarity-*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def environment(site: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(site)}


def run(site: Path, *arguments: str) -> str:
    finished = subprocess.run(
        [sys.executable, *arguments],
        cwd=site.parent,
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


def test_what_is_in_the_wheel_answers_and_serves(site: Path) -> None:
    index = str(site.parent / "index.db")
    ingested = run(
        site, "-m", "similarity", "ingest", str(site / "similarity/sample/companies.jsonl"), "--index", index
    )
    assert "companies in the index" in ingested
    assert "Airbus" in run(site, "-m", "similarity", "similar", "boeing", "--index", index)
    [port] = free_ports(1)
    command = [sys.executable, "-m", "similarity", "serve", "--index", index, "--port", str(port)]
    service = subprocess.Popen(command, cwd=site.parent, env=environment(site), stderr=subprocess.DEVNULL)
    try:
        wait_for(f"http://127.0.0.1:{port}/readyz", service)
        with urlopen(f"http://127.0.0.1:{port}/docs") as answer:
            manual = answer.read().decode()
    finally:
        service.terminate()
        service.wait(timeout=60)
    # Not from the checkout, which the environment of the tests holds too.
    assert "python -m similarity.service.keys add" in manual
    assert "usage: python -m similarity.service.keys" in run(site, "-m", "similarity.service.keys", "--help")


def test_the_wheel_offers_no_extra_that_it_cannot_serve(site: Path) -> None:
    [metadata] = site.glob("*.dist-info/METADATA")
    extras = message_from_bytes(metadata.read_bytes()).get_all("Provides-Extra")
    assert set(extras or []) == {"search", "client", "openvino", "elasticsearch", "kafka"}
    assert {path.name for path in site.iterdir() if path.suffix != ".dist-info"} == {"similarity"}
