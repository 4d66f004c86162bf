"""Asks every operation of the running service what its OpenAPI document allows, and what it forbids.

    python -m tests.services.api_campaign --cases 5000

Starts the service on the sample companies, with keys, and lets Schemathesis make the requests, positive and
negative ones, with all of its checks. It fails on an answer 5xx, on one that the document does not
describe, on forbidden data that is accepted, on a route that works without a key, and where a request that
is over still holds one of the service's places. What was found is printed
with a curl line each; the seed repeats a run. How many answers each operation gave is printed, and with
`--report FOLDER` kept there: a file per run, and a table of all runs.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.service_process import free_port, running_service, sample_index

CONFIG = Path(__file__).with_name("schemathesis.toml")
HOOKS = "tests.services.schemathesis_hooks"
ROOT = Path(__file__).parents[2]
SECONDS_TO_COME_TO_REST = 40.0


def command(port: int, key: str, *, cases: int, seed: int, phases: str, more: Sequence[str] = ()) -> list[str]:
    """Schemathesis' command line for the service on `port`."""
    return [
        *(str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(CONFIG)),
        *("run", f"http://127.0.0.1:{port}/openapi.json"),
        *("--header", f"Authorization: Bearer {key}"),
        *("--mode", "all", "--phases", phases),
        *("--max-examples", str(cases), "--seed", str(seed), "--workers", "1"),
        *("--request-timeout", "30", "--continue-on-failure", "--no-shrink"),
        *more,
    ]


def new_key(file: Path) -> str:
    """A key that may do everything."""
    scopes = [part for scope in ("read", "write", "feedback", "admin") for part in ("--scope", scope)]
    printed = subprocess.run(
        [sys.executable, "-m", "services.search.keys", "add", "campaign", *scopes, "--file", str(file)],
        check=True,
        capture_output=True,
        text=True,
    )
    return printed.stdout.split()[-1]


def places_held(metrics_port: int) -> float:
    """How many places at the service's gates are taken when nobody asks any more; what was given up may end first."""
    deadline = time.monotonic() + SECONDS_TO_COME_TO_REST
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=30) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        held: float = sum(
            sample.value for family in families if family.name == "search_inside" for sample in family.samples
        )
        if not held or time.monotonic() > deadline:
            return held
        time.sleep(0.5)


def keep_run(folder: Path, counts: Mapping[str, Mapping[str, int]], *, seed: int, failed: bool) -> None:
    """Adds a run to a report, with where and of what it was, and writes the table of all runs anew."""
    folder.mkdir(parents=True, exist_ok=True)
    asked = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, check=False, cwd=ROOT, capture_output=True, text=True)
    now = datetime.now(UTC)
    run = {
        "at": now.isoformat(timespec="seconds"),
        "commit": commit.stdout.strip(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "seed": seed,
        "failed": failed,
        "answers": counts,
    }
    (folder / f"{now:%Y-%m-%dT%H%M%S}.json").write_text(json.dumps(run, indent=1, sort_keys=True) + "\n")
    (folder / "README.md").write_text(report(folder), encoding="utf-8")


def report(folder: Path) -> str:
    """Markdown: for each operation how many answers all kept runs gave, by the first digit of the status."""
    runs = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    totals: dict[str, Counter[str]] = {}
    for run in runs:
        for operation, statuses in run["answers"].items():
            counter = totals.setdefault(operation, Counter())
            for status, number in statuses.items():
                counter[f"{status[0]}xx"] += number
    lines = [
        "# The API asked at random",
        "",
        "Answers that the running service gave to Schemathesis, all checks on, by operation. Made by",
        "`make test-api CASES=5000`; runs can be split by operation, each file here is one. An operation without",
        "parameters has few different requests.",
        "",
        "| operation | answers | 2xx and 3xx | 4xx | 5xx |",
        "| --- | --- | --- | --- | --- |",
    ]
    for operation, counter in sorted(totals.items()):
        good = counter["2xx"] + counter["3xx"]
        lines.append(f"| `{operation}` | {counter.total():,} | {good:,} | {counter['4xx']:,} | {counter['5xx']:,} |")
    lines += ["", "| run | commit | machine | seed | checks |", "| --- | --- | --- | --- | --- |"]
    for run in runs:
        ended = f"failed: {run.get('remark', 'see its log')}" if run["failed"] else "passed"
        lines.append(f"| {run['at']} | {run['commit']} | {run['machine']} | {run['seed']} | {ended} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Reads the options, runs, and ends with status 1 where anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=100, help="per operation (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--phases", default="examples,coverage,fuzzing,stateful")
    parser.add_argument("--report", type=Path, help="folder of a report that this run is added to")
    parser.add_argument("more", nargs="*", help="further options of schemathesis, after --")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        key_file = Path(folder) / "keys.json"
        key = new_key(key_file)
        index = sample_index(Path(folder))
        metrics_port = free_port()
        environment = {
            "SIMILARITY_SERVICE_KEYS": str(key_file),
            "SIMILARITY_SERVICE_METRICS_PORT": str(metrics_port),
            "SIMILARITY_SERVICE_RATE": "0",
            "SIMILARITY_SERVICE_SERVICE_RATE": "0",
        }
        log = Path(folder) / "service.log"
        with running_service(index, environment=environment, log=log) as service:
            options = {"cases": given.cases, "seed": given.seed, "phases": given.phases, "more": given.more}
            counts_file = Path(folder) / "counts.json"
            told = {
                **os.environ,
                "SCHEMATHESIS_HOOKS": HOOKS,
                "PYTHONPATH": str(ROOT),
                "API_CAMPAIGN_COUNTS": str(counts_file),
            }
            finished = subprocess.run(command(service.port, key, **options), check=False, cwd=folder, env=told)
            held = places_held(metrics_port)
        counts = json.loads(counts_file.read_text(encoding="utf-8")) if counts_file.exists() else {}
        for operation, statuses in sorted(counts.items()):
            print(f"{operation}: {sum(statuses.values()):,} answers", dict(sorted(statuses.items())))
        if held:
            print(f"{held:.0f} places are still held although every request is over")
        failed = bool(finished.returncode or held)
        if given.report is not None:
            keep_run(given.report.resolve(), counts, seed=given.seed, failed=failed)
        if failed:
            sys.stdout.write(
                "the end of the service's log:\n" + log.read_text(encoding="utf-8", errors="replace")[-4000:]
            )
    sys.exit(failed)


if __name__ == "__main__":
    main()
