"""Service, stream and schedule at work, and a Prometheus that watches them as deploy/observe says."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.observe_files import OBSERVE, ROOT, read_yaml, write_yaml
from tests.end_to_end.streaming import Story, eventually
from tests.servers.kafka import KafkaBroker
from tests.servers.ports import free_ports, someone_listens
from tests.servers.prism import Prism
from tests.servers.prometheus import Prometheus
from tests.services.search.serving import Service, running
from tests.tiny_bundle import WORDS, write_tiny_bundle

KINDS = WORDS[-3:]
COMPANIES = 60
SECONDS_TO_SEE = 120.0
JOBS = ("search", "stream", "reembed")


class Scene:
    """What runs, and where. `prometheus` has scraped all of it when the scene is given away."""

    def __init__(self, story: Story, service: Service, prometheus: Prometheus, ports: dict[str, int]) -> None:
        self.story = story
        self.service = service
        self.prometheus = prometheus
        self.ports = ports

    def ask(self, path: str, question: dict[str, Any] | None = None) -> int:
        """The status of an answer of the service."""
        data = None if question is None else json.dumps(question).encode()
        return self.service.ask(path, headers={"Content-Type": "application/json"}, data=data)[0]

    def converse(self) -> None:
        """Asks for whatever a panel shows: hits with reasons, free words twice, what is not there, what is refused."""
        anchors = {"anchors": [{"company": "c1"}]}
        assert self.ask("/similar/c1") == 200
        for _ in range(2):
            assert self.ask("/similar", {"anchors": [{"text": "boats boats boats"}]}) == 200
        assert self.ask("/similar/batch", {"questions": [anchors]}) == 200
        assert self.ask("/similar/nobody") == 404
        assert self.service.ask("/similar/c1", headers={"Host": "elsewhere.example"})[0] == 421

    def sees(self, expression: str, *, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Waits until an expression gives something; does the other thing again and again."""
        deadline = time.monotonic() + SECONDS_TO_SEE
        while not self.prometheus.query(expression):
            assert time.monotonic() < deadline, f"Prometheus never saw {expression}"
            meanwhile()
            time.sleep(0.5)


def company(number: int) -> dict[str, Any]:
    """One of the companies, of three kinds."""
    kind = KINDS[number % 3]
    return {"id": f"c{number}", "name": f"Firm {number}", "description": f"{kind} {kind} {kind}"}


def configuration(folder: Path, ports: dict[str, int]) -> Path:
    """The configuration, with each second and the addresses of this machine instead of the compose file's."""
    content = read_yaml(OBSERVE / "prometheus.yml")
    content["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    content["rule_files"] = [str(OBSERVE / name) for name in content["rule_files"]]
    for scraped in content["scrape_configs"]:
        if scraped.pop("dns_sd_configs", None):
            scraped["static_configs"] = [{"targets": [f"127.0.0.1:{ports[scraped['job_name']]}"]}]
    content["scrape_configs"] = [each for each in content["scrape_configs"] if each["job_name"] in ports]
    return write_yaml(folder / "prometheus.yml", content)


@contextmanager
def scheduled(folder: Path, target: str, port: int) -> Iterator[None]:
    """`pipelines.reembed` each minute, with the newest of the folder's models."""
    where = f"--index {target} --bundles {folder}/bundles --models {folder}/models --metrics-port {port}"
    command = [sys.executable, "-m", "pipelines.reembed", *where.split(), "--without-gate", "--threads=1"]
    with (folder / "reembed.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--cron", "* * * * *"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def scene(folder: Path, broker: KafkaBroker, prism: Prism) -> Iterator[Scene]:
    """All of it, after some traffic."""
    ports = dict(zip(JOBS, free_ports(len(JOBS)), strict=True))
    target = str(folder / "index.db")
    bundle = write_tiny_bundle(folder / "bundle").folder
    story = Story(folder, kafka=broker, target=target, runner=prism.beam_options(streaming=True), bundle=bundle)
    (folder / "models").mkdir()
    with ExitStack() as stack:
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        environment.setenv("SIMILARITY_BUNDLES", str(folder / "bundles"))
        stack.enter_context(story.streaming("--metrics-port", str(ports["stream"])))
        # Also where there is nothing to read yet, or a new stack would look as if its stream were down.
        eventually(lambda: someone_listens(ports["stream"]), story)
        story.send(*map(company, range(1, COMPANIES)))
        eventually(story.all_committed, story)
        service = stack.enter_context(running(Path(target), folder, metrics_port=ports["search"]))
        write_tiny_bundle(folder / "models" / "new", max_tokens=7)
        stack.enter_context(scheduled(folder, target, ports["reembed"]))
        prometheus = stack.enter_context(Prometheus(folder / "prometheus", configuration(folder, ports)))
        here = Scene(story, service, prometheus, ports)
        for job in JOBS:
            here.sees(f'up{{job="{job}"}} == 1')
        here.sees('similarity_messages_total{end="dead"} == 0')
        # A writer notices the candidate with its next batch, an idle one not before its lease ends.
        numbers = count(COMPANIES)
        here.sees('similarity_reembed_last{end="done"} == 1', meanwhile=lambda: story.send(company(next(numbers))))
        yield here
