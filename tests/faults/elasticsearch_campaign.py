"""Runs fault schedules on a real Elasticsearch, one after the other, and goes on where it was killed.

    python -m tests.faults.elasticsearch_campaign --runs 100 --nodes 1 --seed 1
    python -m tests.faults.elasticsearch_campaign --runs 30 --nodes 3 --seed 1 --report

Every finished schedule is a line of `var/faults/elasticsearch.jsonl`. A schedule that was fine is not run
again on the same code; one with problems is. `--report` writes docs/reports/elasticsearch-faults.md from
all lines of the present code. The exit status is 1 if anything was lost or wrong.
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from tests.faults.campaign_facts import ROOT, commit, fingerprint
from tests.faults.elasticsearch_faults import draw
from tests.faults.elasticsearch_report import report, summary
from tests.faults.elasticsearch_schedule import Finished, run
from tests.servers.elasticsearch import QUICK_START, ElasticsearchCluster
from tests.servers.elasticsearch_installation import DEFAULT_VERSION

RESULTS = ROOT / "var" / "faults" / "elasticsearch.jsonl"
REPORT = ROOT / "docs" / "reports" / "elasticsearch-faults.md"
# What a result depends on: the code under test, and the parts of the campaign that make and judge it.
CODE = (
    "similarity/company.py",
    "similarity/index/**/*.py",
    "tests/faults/elasticsearch_[!cr]*.py",
    "tests/faults/elasticsearch_check.py",
    "tests/faults/fault_proxy.py",
)
HEAP = "512m"
# One bulk request is being written and one may wait: a third is refused, so that 429 is an everyday answer.
SMALL_QUEUE = {"thread_pool.write.size": 1, "thread_pool.write.queue_size": 1}
MEMORY_DISK = Path("/dev/shm")
BYTES_PER_NODE = 2_000_000_000

Line: TypeAlias = dict[str, Any]


def run_campaign(seeds: Sequence[int], *, nodes: int, results: Path, version: str = DEFAULT_VERSION) -> list[Line]:
    """The lines of these schedules; those that are in `results` already are not run again."""
    code = fingerprint(CODE)
    results.parent.mkdir(parents=True, exist_ok=True)
    known = {
        line["seed"]: line
        for line in read_lines(results)
        if (line["code"], line["nodes"], line["version"]) == (code, nodes, version) and not line["problems"]
    }
    with Clusters(nodes=nodes, version=version) as clusters:
        for seed in seeds:
            if seed in known:
                continue
            with tempfile.TemporaryDirectory() as folder:
                finished = run(draw(seed, nodes=nodes), clusters.running(), Path(folder) / "journals")
                if finished.problems:
                    kept = results.parent / "failed" / finished.schedule.name
                    shutil.copytree(Path(folder) / "journals", kept, dirs_exist_ok=True)
            if finished.broken:
                clusters.discard()
            known[seed] = line_of(finished, code=code, version=version, disk=clusters.disk)
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(known[seed]) + "\n")
            print(summary([known[seed]]), flush=True)
    return [known[seed] for seed in seeds]


class Clusters:
    """One cluster at a time: made when it is first needed, and made anew when it was discarded."""

    def __init__(self, *, nodes: int, version: str) -> None:
        self._nodes, self._version = nodes, version
        self._opened = ExitStack()
        self._cluster: ElasticsearchCluster | None = None
        in_memory = MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free > nodes * BYTES_PER_NODE
        self._parent = MEMORY_DISK if in_memory else None
        self.disk = "memory" if in_memory else "disk"

    def __enter__(self) -> "Clusters":
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def running(self) -> ElasticsearchCluster:
        """The cluster, started."""
        if self._cluster is None:
            folder = Path(self._opened.enter_context(tempfile.TemporaryDirectory(dir=self._parent)))
            cluster = ElasticsearchCluster(
                folder / "cluster",
                version=self._version,
                nodes=self._nodes,
                heap=HEAP,
                settings=SMALL_QUEUE,
                java_options=QUICK_START,
            )
            self._cluster = self._opened.enter_context(cluster)
        return self._cluster

    def discard(self) -> None:
        """Ends it, with all its files."""
        self._cluster = None
        self._opened.close()


def line_of(finished: Finished, *, code: str, version: str, disk: str) -> Line:
    """A finished schedule as a line of the results."""
    schedule = finished.schedule
    names = [each.name for each in fields(finished) if each.name not in {"schedule", "broken"}]
    return {
        "nodes": schedule.nodes,
        "seed": schedule.seed,
        "version": version,
        "code": code,
        "commit": commit(),
        "at": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        "disk": disk,
        **{name: getattr(finished, name) for name in names},
        "seconds": round(finished.seconds, 1),
    }


def read_lines(results: Path) -> list[Line]:
    """The lines of a results file; one that was cut off by a kill is left out."""
    lines: list[Line] = []
    for text in results.read_text(encoding="utf-8").splitlines() if results.exists() else []:
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue
    return lines


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Fault schedules on a real Elasticsearch.")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1, help="of the first schedule; the others follow")
    parser.add_argument("--version", default=DEFAULT_VERSION)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="write the report of everything run on this code")
    options = parser.parse_args(arguments)
    # Asked to end, it takes its cluster with it and leaves nothing in memory.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    seeds = range(options.seed, options.seed + options.runs)
    lines = run_campaign(seeds, nodes=options.nodes, results=options.results, version=options.version)
    print(summary(lines))
    if options.report:
        code = fingerprint(CODE)
        every = [line for line in read_lines(options.results) if line["code"] == code]
        REPORT.write_text(report(every), encoding="utf-8")
        print(f"\nwritten: {REPORT}")
    return 1 if any(line["problems"] for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
