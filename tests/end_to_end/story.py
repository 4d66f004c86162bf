"""The whole life of a company and of a model, told on a running stack: `make test-story`.

    python -m tests.end_to_end.story [--docker] [--transcript docs/reports/story.md]

Put a new company in by HTTP -> it is searchable in seconds -> feedback -> train on it -> new bundle -> scheduled
re-embed -> swap while searches go on -> rollback -> erasure. Everything is real: Elasticsearch, Kafka, Prism, the
service, training. Without --docker the commands of docker-compose.yml run as processes of this machine, with it in
its containers. It fails at the first thing that is not as it should be.
"""

import argparse
import csv
import json
import os
import platform
import re
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Literal

from deploy.environment import ROOT
from similarity.client import Client, Retries, UnknownCompany
from similarity.company import Company
from tests.end_to_end.stacks.docker_stack import VERSION, DockerStack
from tests.end_to_end.stacks.native_stack import NativeStack
from tests.end_to_end.stacks.stack import Stack
from tests.servers import docker_images

SAMPLE = ROOT / "data" / "sample"
STATE = "/var/lib/similarity"
SECONDS_TO_APPEAR = 120.0
SECONDS_TO_SWAP = 600.0
TRAINED_SHARE = 6
"""Of ten groups of the sample, so many are judged by the analysts of the story; the others judge the new model."""
ROUTE = "sent by HTTP, published to Kafka, and stored in Elasticsearch by the stream, which runs on Prism."
NEWBREW = Company(
    id="newbrew",
    name="Newbrew",
    description="Newbrew is a brewery that makes lager, ale and wheat beer and sells it to pubs and shops.",
)


class Transcript:
    """What was done and what came back, for people; printed as it happens."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def chapter(self, title: str) -> None:
        """Begins a part."""
        self._add("", f"## {title}", "")

    def command(self, line: str, output: str = "", *, last: int = 12) -> None:
        """A command as a user types it, and the end of what it printed."""
        shown = [each for each in output.splitlines() if each.strip()][-last:]
        self._add("```", f"$ {line}", *shown, "```")

    def remark(self, text: str) -> None:
        """What was seen."""
        self._add("", text, "")

    def text(self, written_by: str) -> str:
        """As a page of the documentation."""
        asked = ["git", "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(asked, check=False, cwd=ROOT, capture_output=True, text=True).stdout.strip()
        head = [
            "# From a new company to a new model and back",
            "",
            f"Written by {written_by} at commit {commit}, {datetime.now(UTC):%d %B %Y}, on {os.cpu_count()} cores "
            f"({platform.machine()}), with other work beside it. Long outputs are cut.",
        ]
        return re.sub(r"\n{3,}", "\n\n", "\n".join([*head, *self._lines]) + "\n")

    def _add(self, *lines: str) -> None:
        self._lines += lines
        print(*lines, sep="\n", flush=True)


class Searches:
    """Somebody asks all the time; which bundles answered, and what failed."""

    def __init__(self, url: str) -> None:
        self.bundles: list[str] = []
        self.failures: list[str] = []
        self._url = url
        self._stop = Event()

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Until the block ends."""
        thread = Thread(target=self._ask)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _ask(self) -> None:
        with Client(self._url, retries=Retries(attempts=1)) as client:
            while not self._stop.wait(0.1):
                try:
                    self.bundles.append(client.similar("heineken", k=5, reasons=0).model.bundle_id)
                except Exception as error:  # whatever it was, the story fails with it
                    self.failures.append(repr(error))


def tell(stack: Stack, transcript: Transcript) -> None:
    """The story, from an empty machine on."""
    transcript.chapter("Start")
    began = time.monotonic()
    stack.up()
    transcript.command(
        "docker compose up --detach --wait", f"all services are healthy after {time.monotonic() - began:.0f} s"
    )
    transcript.command("docker compose logs load", stack.logs("load"), last=3)
    with Client(stack.url) as client:
        _new_company(stack, client, transcript)
        _second_up(stack, client, transcript)
        _feedback(stack, client, transcript)
        _train(stack, transcript)
        _swap_and_rollback(stack, client, transcript)
        _erasure(client, transcript)


def _new_company(stack: Stack, client: Client, transcript: Transcript) -> None:
    transcript.chapter("A new company is searchable in seconds")
    began = time.monotonic()
    accepted = client.put(NEWBREW)
    body = json.dumps({"name": NEWBREW.name, "description": NEWBREW.description})
    transcript.command(
        f"curl -X PUT localhost:8080/companies/newbrew -H 'Content-Type: application/json' -d '{body}'",
        f'"outcome": "{accepted.outcome}"',
    )
    _eventually(lambda: _found(client, "newbrew"), what="the new company is found", stack=stack)
    transcript.remark(f"Found after {time.monotonic() - began:.1f} seconds: {ROUTE}")
    competitors = _competitors(client, "newbrew")
    assert {"heineken", "carlsberg-group", "ab-inbev", "molson-coors"} & set(competitors), competitors
    transcript.command("similarity similar newbrew -k 5 --url http://localhost:8080", "\n".join(competitors[:5]))


def _second_up(stack: Stack, client: Client, transcript: Transcript) -> None:
    transcript.chapter("A second `up` changes nothing")
    transcript.remark("The company boeing is deleted first; the second `up` must not restore it.")
    client.delete("boeing")
    _eventually(lambda: not _found(client, "boeing"), what="the deleted company is gone", stack=stack)
    before = stack.run("load", "similarity", "generations", "list")
    stack.up()
    assert "nothing was done" in stack.logs("load")
    assert stack.run("load", "similarity", "generations", "list") == before
    assert not _found(client, "boeing"), "what was deleted stays deleted"
    transcript.command("docker compose up --detach --wait && docker compose logs load", stack.logs("load"), last=1)
    transcript.command("docker compose run --rm load similarity generations list", before)


def _feedback(stack: Stack, client: Client, transcript: Transcript) -> None:
    transcript.chapter("Analysts accept and reject")
    judged = _analysts_pairs()
    transcript.remark(f"Instead of analysts, the test sends the labels of {len(judged):,} pairs to `POST /feedback`.")
    for pair in judged:
        verdict: Literal["competitor", "not_competitor"] = (
            "competitor" if pair["label"] == "positive" else "not_competitor"
        )
        client.feedback(pair["company_a"], pair["company_b"], verdict)
    command = (
        "similarity",
        "pairs",
        f"{STATE}/files/feedback.jsonl",
        "--companies",
        f"{STATE}/files/feedback.companies",
    )
    said = stack.run("load", *command, "--url", "http://search:8080")
    assert f"{len(judged):,} pairs" in said, said
    transcript.command(f"docker compose run --rm load {' '.join(command)} --url http://search:8080", said)


def _train(stack: Stack, transcript: Transcript) -> None:
    transcript.chapter("Train on it")
    began = time.monotonic()
    said = stack.run("train-cpu")
    lines = [line for line in said.splitlines() if "ndcg10" in line or "encoder " in line or "labelled;" in line]
    transcript.command("docker compose run --rm train-cpu", "\n".join(lines))
    transcript.remark(
        f"{time.monotonic() - began:.0f} seconds on the CPU; the new bundle lies in the folder of models."
    )


def _swap_and_rollback(stack: Stack, client: Client, transcript: Transcript) -> None:
    transcript.chapter("The schedule finds the new model")
    old = client.similar("heineken", reasons=0).model.bundle_id
    searches = Searches(stack.url)
    with searches.going_on():
        stack.up("reembed", settings={"REEMBED_CRON": "* * * * *"})

        def bundle() -> str:
            return client.similar("heineken", reasons=0).model.bundle_id

        _eventually(lambda: bundle() != old, what="the new model answers", stack=stack, seconds=SECONDS_TO_SWAP)
        new = bundle()
        transcript.command("REEMBED_CRON='* * * * *' docker compose --profile schedule up --detach")
        transcript.command("docker compose logs reembed", stack.logs("reembed"))
        competitors = _competitors(client, "newbrew")
        transcript.command("similarity similar newbrew -k 5 --url http://localhost:8080", "\n".join(competitors[:5]))

        transcript.chapter("Back again")
        said = stack.run("load", "similarity", "generations", "rollback")
        _eventually(lambda: bundle() == old, what="the old model answers", stack=stack)
        transcript.command("docker compose run --rm load similarity generations rollback", said)
        _eventually(
            lambda: "was rolled back" in stack.logs("reembed"), what="the schedule leaves it alone", stack=stack
        )
        transcript.command("docker compose logs reembed", stack.logs("reembed"), last=1)
        assert bundle() == old
    assert searches.failures == []
    assert set(searches.bundles) == {old, new}
    transcript.remark(
        f"Meanwhile {len(searches.bundles):,} searches were answered, all by the old or the new model; none failed."
    )


def _erasure(client: Client, transcript: Transcript) -> None:
    transcript.chapter("Erase it everywhere")
    erased = client.erase("newbrew")
    assert not _found(client, "newbrew")
    transcript.command(
        "curl -X POST localhost:8080/companies/newbrew/erasure", json.dumps(asdict(erased), indent=1), last=20
    )


def _analysts_pairs() -> list[dict[str, str]]:
    """The labelled pairs of the sample within six of ten of its groups, and between them."""
    rows = [json.loads(line) for line in (SAMPLE / "companies.jsonl").read_text(encoding="utf-8").splitlines()]
    judged = {row["id"] for row in rows if zlib.crc32(row["group"].encode()) % 10 < TRAINED_SHARE} - {"boeing"}
    with (SAMPLE / "pairs.csv").open(encoding="utf-8") as file:
        return [pair for pair in csv.DictReader(file) if {pair["company_a"], pair["company_b"]} <= judged]


def _found(client: Client, company: str) -> bool:
    """Whether the service knows the company."""
    try:
        return client.company(company).company.id == company
    except UnknownCompany:
        return False


def _competitors(client: Client, company: str) -> list[str]:
    return [hit.company.id for hit in client.similar(company, k=10, reasons=0).hits]


def _eventually(condition: Callable[[], bool], *, what: str, stack: Stack, seconds: float = SECONDS_TO_APPEAR) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what}\n{stack.logs('stream')[-3000:]}")
        time.sleep(0.2)


def main() -> None:
    """Tells it once."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--docker", action="store_true", help="in containers, by docker compose")
    parser.add_argument("--transcript", type=Path, help="Markdown file to write")
    given = parser.parse_args()
    if given.docker:
        for name in ("search", "pipelines", "training"):
            docker_images.build(name, tag=VERSION)
    transcript = Transcript()
    with tempfile.TemporaryDirectory() as folder:
        stack: DockerStack | NativeStack = (DockerStack if given.docker else NativeStack)(Path(folder))
        with stack:
            tell(stack, transcript)
    if given.transcript:
        written_by = (
            "`make test-docker` (in containers)"
            if given.docker
            else "`make test-story` (the compose file's commands as processes)"
        )
        given.transcript.write_text(transcript.text(written_by), encoding="utf-8")


if __name__ == "__main__":
    main()
