"""A new model reaches a real Elasticsearch on schedule, while it is searched; a worse one does not."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread

import pytest
from elasticsearch import Elasticsearch
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.bundle import MANIFEST_FILE, ModelBundle, seed_folder, write_manifest
from similarity.index.opening import open_index
from tests.servers.connection import Connection

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "data" / "sample"
JUDGED = SAMPLE / "judged.tsv"
SECONDS_OF_A_RUN = 300.0
ANCHORS = ("boeing", "heineken", "spacex", "cheil")


@dataclass
class Load:
    """Searches one after the other, while the index changes under them."""

    target: str
    generations: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _stop: Event = field(default_factory=Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = Thread(target=self._search)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _search(self) -> None:
        with (
            closing(open_index(self.target, {})) as index,
            TestClient(create_app(index=index, encoder=None), raise_server_exceptions=False) as client,
        ):
            while not self._stop.wait(0.02):
                for anchor in ANCHORS:
                    answer = client.get(f"/similar/{anchor}")
                    if answer.status_code != 200 or len(answer.json()["hits"]) != 10:
                        self.failures.append(answer.text[:300])
                    else:
                        self.generations.append(answer.json()["generation"])


class Place:
    """An index on Elasticsearch with the sample in it, and commands that work on it."""

    def __init__(self, folder: Path, target: str) -> None:
        self.folder = folder
        self.target = target
        self.run("similarity", "ingest", str(SAMPLE / "companies.jsonl"))

    def start(self, module: str, *arguments: str) -> "subprocess.Popen[str]":
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SIMILARITY_INDEX": self.target,
            "SIMILARITY_BUNDLES": str(self.folder / "bundles"),
        }
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.Popen(command, cwd=self.folder, env=environment, stderr=subprocess.PIPE, text=True)

    def run(self, module: str, *arguments: str, fails: bool = False) -> str:
        """What the command said."""
        process = self.start(module, *arguments)
        _, said = process.communicate(timeout=SECONDS_OF_A_RUN)
        assert (process.returncode != 0) == fails, said
        return said

    def live_encoder(self) -> str:
        with closing(open_index(self.target, {})) as index:
            return index.live().encoder_id


@pytest.fixture(scope="module")
def place(elasticsearch_connection: Connection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    name = f"reembed-{secrets.token_hex(4)}"
    urls = ",".join(elasticsearch_connection.urls).replace(",http://", ",")
    yield Place(tmp_path_factory.mktemp("reembed"), f"{urls}/{name}")
    with closing(Elasticsearch(**elasticsearch_connection.client_arguments())) as client:
        client.indices.delete(index=list(client.indices.get(index=f"{name}-*", filter_path="*.aliases")))


def another_bundle(folder: Path, *, max_tokens: int) -> ModelBundle:
    """The shipped bundle, but that it reads less of each text: another encoder to every index."""
    shutil.copytree(seed_folder(), folder)
    manifest = ModelBundle.load(seed_folder()).manifest
    (folder / MANIFEST_FILE).unlink()
    return write_manifest(folder, replace(manifest, max_tokens=max_tokens, ranker=None))


def test_a_scheduled_re_embed_swaps_under_load(place: Place, tmp_path: Path) -> None:
    new = another_bundle(tmp_path / "models" / "new", max_tokens=96)
    before, load = place.live_encoder(), Load(place.target)
    schedule = f"--models {tmp_path}/models --judged {JUDGED} --range-documents 200 --threads 1".split()
    with load.running():
        scheduled = place.start("pipelines.reembed", *schedule, "--cron", "* * * * *")
        deadline = time.monotonic() + SECONDS_OF_A_RUN
        while place.live_encoder() != new.encoder_id:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        time.sleep(1)
        scheduled.send_signal(signal.SIGTERM)
        _, said = scheduled.communicate(timeout=60)
        place.run("similarity", "generations", "rollback")
        time.sleep(1)
    assert load.failures == []
    assert place.live_encoder() == before
    # From the old generation to the new one and back, and no other way.
    seen = [name for name, then in zip(load.generations, ["", *load.generations], strict=False) if name != then]
    assert (len(seen), seen[0]) == (3, seen[2]), seen
    assert "backfill   1,279 documents: 1,279 written, 1,279 encoded" in said
    print(f"{len(load.generations)} searches, none failed\n{said}")
