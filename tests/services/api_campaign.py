"""Asks every operation of the running service what its OpenAPI document allows, and what it forbids.

    python -m tests.services.api_campaign --cases 5000

Starts the service on the sample companies, with keys, and lets Schemathesis make the requests, positive and
negative ones, with all of its checks. It fails on an answer 5xx, on one that the document does not
describe, on forbidden data that is accepted, on a route that works without a key. What was found is printed
with a curl line each; the seed repeats a run.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.service_process import running_service, sample_index

CONFIG = Path(__file__).with_name("schemathesis.toml")
HOOKS = "tests.services.schemathesis_hooks"
ROOT = Path(__file__).parents[2]


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


def main() -> None:
    """Reads the options, runs, and ends with Schemathesis' own exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=100, help="per operation (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--phases", default="examples,coverage,fuzzing,stateful")
    parser.add_argument("more", nargs="*", help="further options of schemathesis, after --")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        key_file = Path(folder) / "keys.json"
        key = new_key(key_file)
        index = sample_index(Path(folder))
        environment = {
            "SIMILARITY_SERVICE_KEYS": str(key_file),
            "SIMILARITY_SERVICE_RATE": "0",
            "SIMILARITY_SERVICE_SERVICE_RATE": "0",
        }
        log = Path(folder) / "service.log"
        with running_service(index, environment=environment, log=log) as service:
            options = {"cases": given.cases, "seed": given.seed, "phases": given.phases, "more": given.more}
            told = {**os.environ, "SCHEMATHESIS_HOOKS": HOOKS, "PYTHONPATH": str(ROOT)}
            finished = subprocess.run(command(service.port, key, **options), check=False, cwd=folder, env=told)
        if finished.returncode:
            sys.stdout.write(
                "the end of the service's log:\n" + log.read_text(encoding="utf-8", errors="replace")[-4000:]
            )
    sys.exit(finished.returncode)


if __name__ == "__main__":
    main()
