"""Kills the stream at random moments, schedule after schedule, and goes on where it was ended itself.

    python -m tests.faults.stream_kill --runs 20 --seed 1 --report
    python -m tests.faults.stream_kill --runs 2 --seed 1 --store elasticsearch
    python -m tests.faults.stream_kill --runs 1 --seed 1 --mistakes     # planted; each should be found

A schedule is ten kills of `pipelines.stream --once` between a real Kafka broker and an index. Every finished
one is a line of `var/faults/stream.jsonl`. A schedule that was fine is not run again on the same code; one
with problems is. `--report` writes docs/reports/stream-kills.md from all lines of the present code. The
exit status is 1 if anything was lost or wrong, or if a planted mistake was not found.
"""

import argparse
import json
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import fields
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from similarity.bundle import ModelBundle
from tests.faults.campaign_facts import ROOT, commit, fingerprint
from tests.faults.elasticsearch_campaign import Clusters, Line, read_lines
from tests.faults.stream_nursery import MISTAKES
from tests.faults.stream_report import report, summary
from tests.faults.stream_scene import Scene
from tests.faults.stream_schedule import KILLS, Finished, Pace, Schedule, topic_name
from tests.faults.stream_victims import Victims
from tests.servers.elasticsearch_installation import DEFAULT_VERSION
from tests.servers.kafka import KafkaBroker
from tests.servers.kafka_installation import unavailable_reason
from tests.tiny_bundle import write_tiny_bundle

RESULTS = ROOT / "var" / "faults" / "stream.jsonl"
REPORT = ROOT / "docs" / "reports" / "stream-kills.md"
# What a result depends on: the code under test, and the parts of the campaign that make and judge it.
CODE = (
    "pipelines/**/*.py",
    "similarity/[!cl]*.py",
    "similarity/company.py",
    "similarity/preparation/language.py",
    "similarity/index/**/*.py",
    "tests/faults/stream_[!kr]*.py",
    "tests/tiny_bundle.py",
)

Store: TypeAlias = Literal["sqlite", "elasticsearch"]
STORES: tuple[Store, ...] = ("sqlite", "elasticsearch")


def missing() -> str:
    """Why the campaign cannot run here; empty if it can."""
    for module, name in (("apache_beam", "Beam"), ("confluent_kafka", "Kafka's client")):
        if find_spec(module) is None:
            return f"the stream needs {name}: make .venv/integration"
    return unavailable_reason() or ""


class Stage:
    """The servers of a campaign: a broker, a nursery of victims, and Elasticsearch if it is wanted.

    They start when the first schedule is played; as a context manager, none is left afterwards.
    """

    def __init__(self, store: Store = "sqlite") -> None:
        self.store = store
        self._opened = ExitStack()
        self._pace = Pace()
        self._kafka: KafkaBroker | None = None

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def play(self, seed: int, *, kills: int, mistake: str, keep: Path) -> Finished:
        """One schedule. What it leaves is removed, or kept in a folder under `keep` if it has problems."""
        kafka = self._kafka or self._open()
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=f"{seed}-") as name:
            folder = Path(name)
            topic, target = topic_name(seed), self._target(folder, seed)
            with Scene(folder, servers=kafka.servers, topic=topic, target=target) as scene:
                schedule = Schedule(scene, self._victims, seed=seed, pace=self._pace, mistake=mistake)
                finished = schedule.play(self._bundle, kills=kills)
            if finished.problems and not mistake:
                shutil.copytree(folder, keep / f"stream-{self.store}-{seed}", dirs_exist_ok=True)
        return finished

    def _open(self) -> KafkaBroker:
        with ExitStack() as opening:
            self._folder = Path(opening.enter_context(tempfile.TemporaryDirectory(prefix="stream-")))
            self._bundle: ModelBundle = write_tiny_bundle(self._folder / "tiny")
            kafka = opening.enter_context(KafkaBroker(self._folder / "kafka"))
            environment = {"SIMILARITY_KAFKA_SERVERS": kafka.servers, "SIMILARITY_BUNDLE": str(self._bundle.folder)}
            self._victims = opening.enter_context(Victims(environment, log=self._folder / "nursery.log"))
            self._clusters = opening.enter_context(Clusters(nodes=1, version=DEFAULT_VERSION))
            self._opened = opening.pop_all()
        self._kafka = kafka
        return kafka

    def _target(self, folder: Path, seed: int) -> str:
        if self.store == "sqlite":
            return str(folder / "index.db")
        return f"{self._clusters.running().url}/killed-{seed}-{secrets.token_hex(3)}"


def run_campaign(
    seeds: Sequence[int], stage: Stage, *, results: Path, kills: int = KILLS, mistake: str = ""
) -> list[Line]:
    """The lines of these schedules; those that are in `results` already are not played again."""
    code = fingerprint(CODE)
    results.parent.mkdir(parents=True, exist_ok=True)
    wanted = (code, stage.store, kills, mistake)
    known = {
        line["seed"]: line
        for line in read_lines(results)
        if (line["code"], line["store"], line["planned"], line["mistake"]) == wanted and not line["problems"]
    }
    for seed in seeds:
        if seed in known:
            continue
        finished = stage.play(seed, kills=kills, mistake=mistake, keep=results.parent / "failed")
        known[seed] = line_of(finished, store=stage.store, kills=kills, mistake=mistake, code=code)
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(known[seed]) + "\n")
        print(summary([known[seed]]), flush=True)
    return [known[seed] for seed in seeds]


def line_of(finished: Finished, *, store: Store, kills: int, mistake: str, code: str) -> Line:
    """A finished schedule as a line of the results."""
    return {
        "store": store,
        "planned": kills,
        "mistake": mistake,
        "code": code,
        "commit": commit(),
        "at": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        **{each.name: getattr(finished, each.name) for each in fields(finished)},
        "seconds": round(finished.seconds, 1),
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Kills of the stream at random moments.")
    parser.add_argument("--runs", type=int, default=20, help=f"schedules of {KILLS} kills each")
    parser.add_argument("--seed", type=int, default=1, help="of the first schedule; the others follow")
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--mistakes", action="store_true", help="with each of the planted mistakes instead")
    parser.add_argument("--report", action="store_true", help="write the report of everything run on this code")
    options = parser.parse_args(arguments)
    if reason := missing():
        sys.exit(f"not run: {reason}")
    # Asked to end, it takes its servers with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    seeds = range(options.seed, options.seed + options.runs)
    with Stage(options.store) as stage:
        planted = sorted(MISTAKES) if options.mistakes else [""]
        of_mistake = [run_campaign(seeds, stage, results=options.results, mistake=mistake) for mistake in planted]
    for lines in of_mistake:
        print(summary(lines))
    if options.report:
        code = fingerprint(CODE)
        every = [line for line in read_lines(options.results) if line["code"] == code]
        REPORT.write_text(report(every), encoding="utf-8")
        print(f"\nwritten: {REPORT}")
    wrong = [any(line["problems"] for line in lines) for lines in of_mistake]
    return int(any(wrong) if not options.mistakes else not all(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
