"""Measures the time from sending a message to Kafka until a search returns its company, and texts a second on Flink.

    python -m benchmarks.pipelines_latency
    python -m benchmarks.pipelines_latency --count 0 --rate 5000 --companies companies.jsonl.gz

Starts real servers as the tests do, and runs `pipelines.stream` as a user does; for the times, with bundles of at most
`--bundle-seconds`. Elasticsearch refreshes every `--refresh-seconds`, so a message waits half of that time on
average, however fast the pipeline is; the embedded index needs no refresh. Messages are sent one at a time at
random moments, so that they are not in step with bundles or refreshes.

For the rate, `--rate` companies are sent at once to two partitions, with one and with two workers of Flink (a
TaskManager each, and one thread of the encoder each). The rate is measured from when a tenth of the companies are in
Elasticsearch until all are. Take thousands, because a refresh of Elasticsearch shows a second's companies at once. The
bare encoder, with as many threads as workers, is measured beside it.
"""

import argparse
import json
import os
import platform
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import apache_beam as beam
import numpy as np

from benchmarks.pipelines import by_encoder, companies_file
from similarity.errors import SimilarityError
from similarity.index.opening import open_index
from similarity.index.protocol import CompanyIndex
from tests.end_to_end.streaming import Story, eventually, index_on
from tests.servers.elasticsearch import ElasticsearchCluster
from tests.servers.flink import FlinkCluster
from tests.servers.kafka import KafkaBroker
from tests.servers.prism import Prism

SAMPLE = Path(__file__).parents[1] / "data/sample/companies.jsonl"
LONGEST_SECONDS = 60.0
WARM_UP = 5


@contextmanager
def runner_options(name: str, folder: Path, *, workers: int = 1) -> Iterator[Sequence[str]]:
    """Yield the options with which a job runs on Prism, or on Flink with `workers` TaskManagers."""
    if name == "Prism":
        with Prism(folder / "prism") as prism:
            yield prism.beam_options(streaming=True)
        return
    with FlinkCluster(folder / "flink", taskmanagers=workers) as flink:
        yield [*flink.beam_options(parallelism=workers, checkpoint_ms=1000), "--streaming"]


def delays(story: Story, *, count: int) -> list[float]:
    """Return the delays of `count` companies in seconds, sent one after the other."""
    found = []
    choice = random.Random(1)
    with closing(open_index(story.target, {})) as index:
        for number in range(WARM_UP + count):
            time.sleep(choice.uniform(0.1, 1.1))
            found.append(delay_of(story, index, f"late-{number}"))
    return found[WARM_UP:]


def delay_of(story: Story, index: CompanyIndex, company_id: str) -> float:
    """Return the seconds from sending one company until it is found by its name."""
    name = f"Quick {company_id}"
    began = time.perf_counter()
    story.send({"id": company_id, "name": name, "description": f"Makes parts number {company_id} for machines."})
    while not any(company.id == company_id for company in index.find(index.live().name, name, limit=1)):
        if time.perf_counter() - began > LONGEST_SECONDS:
            raise SystemExit(f"{company_id} was not found within {LONGEST_SECONDS:.0f} s:\n{story.said()[-2000:]}")
        time.sleep(0.01)
    return time.perf_counter() - began


def is_live(target: str) -> bool:
    """Return whether the index has a live generation."""
    try:
        with closing(open_index(target, {})) as index:
            return bool(index.live())
    except SimilarityError:
        return False


def measure(name: str, target: str, folder: Path, kafka: KafkaBroker, *, count: int, more: Sequence[str]) -> None:
    """Measure one runner with one index, and print a line of the table."""
    where = "Elasticsearch" if target.startswith("http") else "embedded"
    with runner_options(name, folder) as options:
        story = Story(folder, kafka=kafka, target=target, runner=options)
        with story.streaming(*more):
            story.send({"id": "first", "name": "First", "description": "Is there before the clock runs."})
            eventually(lambda: is_live(target), story)
            seconds = np.array(delays(story, count=count))
    p50, p95 = np.quantile(seconds, [0.5, 0.95])
    print(f"| {name} | {where} | {p50:.2f} | {p95:.2f} | {seconds.max():.2f} | {os.getloadavg()[0]:.1f} |", flush=True)


def measure_rate(target: str, folder: Path, kafka: KafkaBroker, source: Path, *, count: int, workers: int) -> None:
    """Measure the texts a second of Flink with `workers`, and print a line of the table."""
    companies = companies_file(source, folder, count=count)
    records = list(map(json.loads, companies.read_text(encoding="utf-8").splitlines()))
    bare = count / by_encoder(companies, workers)
    with runner_options("Flink", folder, workers=workers) as options:
        story = Story(folder, kafka=kafka, target=target, runner=options)
        with story.streaming():
            story.send({"id": "first", "name": "First", "description": "Is there before the clock runs."})
            eventually(lambda: is_live(target), story)
            with closing(open_index(target, {})) as index:
                story.send(*records)
                begun, at_begin = reached(index, count // 10, story)
                ended, at_end = reached(index, 1 + count, story)
    rate = (at_end - at_begin) / (ended - begun)
    print(f"| {workers} | {rate:.0f} | {bare:.0f} | {rate / bare:.2f} | {os.getloadavg()[0]:.1f} |", flush=True)


def reached(index: CompanyIndex, count: int, story: Story) -> tuple[float, int]:
    """Wait until the index has `count` companies; return the time and how many it has."""
    while (found := index.stats(index.live().name).companies) < count:
        if story.dead_letters():
            raise SystemExit(f"a company was refused:\n{story.said()[-2000:]}")
        time.sleep(0.05)
    return time.perf_counter(), found


def main() -> None:
    """Read the options and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=60, help="number of messages for each runner")
    parser.add_argument("--rate", type=int, default=0, help="number of companies for the rate")
    parser.add_argument("--companies", type=Path, default=SAMPLE, help="file of them")
    parser.add_argument("--bundle-seconds", type=float, default=0.5)
    parser.add_argument("--refresh-seconds", type=float, default=1.0)
    given = parser.parse_args()
    os.environ["SIMILARITY_ELASTICSEARCH_REFRESH_SECONDS"] = str(given.refresh_seconds)
    more = [f"--bundle-seconds={given.bundle_seconds}"]
    print(
        f"cpus {os.cpu_count()}, beam {beam.__version__}, python {platform.python_version()}, date "
        f"{datetime.now(UTC):%Y-%m-%d}; bundles of {given.bundle_seconds} s, refresh every {given.refresh_seconds} s"
    )
    if given.count:
        print(
            f"\n{given.count} messages each\n\n| runner | index | p50, s | p95, s | worst, s | load |\n"
            + "| --- " * 6
            + "|"
        )
    with (
        tempfile.TemporaryDirectory() as place,
        KafkaBroker(Path(place) / "kafka") as kafka,
        ElasticsearchCluster(Path(place) / "elasticsearch", nodes=1, heap="1g") as cluster,
    ):
        folder = Path(place)
        for name, embedded in (("Prism", True), ("Prism", False), ("Flink", False)) if given.count else ():
            work = folder / f"{name}-{embedded}"
            work.mkdir()
            if embedded:
                measure(name, str(work / "index.db"), work, kafka, count=given.count, more=more)
            else:
                with index_on(cluster.connection) as target:
                    measure(name, target, work, kafka, count=given.count, more=more)
        if given.rate:
            print("\n| workers of Flink | texts a second | bare encoder | share | load |\n" + "| --- " * 5 + "|")
        for workers in (1, 2) if given.rate else ():
            work = folder / f"rate-{workers}"
            work.mkdir()
            with index_on(cluster.connection) as target:
                measure_rate(target, work, kafka, given.companies, count=given.rate, workers=workers)


if __name__ == "__main__":
    main()
