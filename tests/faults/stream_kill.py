"""Kills the stream at random moments, between a real Kafka broker and an index.

A schedule is ten kills of `pipelines.stream --once`.
"""

import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

from similarity.bundle import ModelBundle
from tests.faults.elasticsearch_campaign import Clusters
from tests.faults.stream_scene import Scene
from tests.faults.stream_schedule import KILLS, Finished, Pace, Schedule, topic_name
from tests.faults.stream_victims import Victims
from tests.servers.elasticsearch_installation import DEFAULT_VERSION
from tests.servers.kafka import KAFKA, KafkaBroker
from tests.tiny_bundle import write_tiny_bundle


def missing() -> str:
    """Why the campaign cannot run here; empty if it can."""
    for module, name in (("apache_beam", "Beam"), ("confluent_kafka", "Kafka's client")):
        if find_spec(module) is None:
            return f"the stream needs {name}: make .venv/integration"
    return KAFKA.unavailable_reason() or ""


class Stage:
    """The servers of a campaign: a broker, the victims, and Elasticsearch where the index is not embedded.

    As a context manager it stops them.
    """

    def __init__(self, *, elasticsearch: bool) -> None:
        self._elasticsearch = elasticsearch
        self._opened = ExitStack()
        self._pace = Pace()

    def __enter__(self) -> "Stage":
        with ExitStack() as opening:
            folder = Path(opening.enter_context(tempfile.TemporaryDirectory(prefix="stream-")))
            self._bundle: ModelBundle = write_tiny_bundle(folder / "tiny")
            self._kafka = opening.enter_context(KafkaBroker(folder / "kafka"))
            environment = {
                "SIMILARITY_KAFKA_SERVERS": self._kafka.servers,
                "SIMILARITY_BUNDLE": str(self._bundle.folder),
            }
            self._victims = opening.enter_context(Victims(environment))
            self._clusters = opening.enter_context(Clusters(nodes=1, version=DEFAULT_VERSION))
            self._opened = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def play(self, seed: int, *, folder: Path, kills: int = KILLS, mistake: str = "") -> Finished:
        """Plays one schedule; index, dead letters and log are kept in `folder`."""
        folder.mkdir()
        target = f"{self._clusters.running().url}/killed-{seed}" if self._elasticsearch else str(folder / "index.db")
        with Scene(folder, servers=self._kafka.servers, topic=topic_name(seed), target=target) as scene:
            schedule = Schedule(scene, self._victims, seed=seed, pace=self._pace, mistake=mistake)
            return schedule.play(self._bundle, kills=kills)
