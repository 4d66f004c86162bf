"""Measures the answers of the search service under three times the load that it can answer.

python -m benchmarks.service_overload [--index FILE]

The server has one processor and the generator another, so that neither slows the other down. In turn:

    capacity   a closed loop: as many answers a second as there can be
    overload   an open loop at three times that rate, which does not wait for answers

Goodput is the number of answers a second with status 200, within a second of the time when the request was
due. The claim: under overload, goodput is at least 85 % of the capacity. The median time of a refusal (429
or 503) is printed too.
"""

import argparse
import asyncio
import os
import random
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from benchmarks.http_load import Answer, Request, closed_loop, get, open_loop, summary
from benchmarks.service_process import running_service, sample_index
from similarity.index.sqlite import SqliteIndex

TIMES = 3.0
CLAIM = 0.85
IN_TIME = 1.0
CONNECTIONS = 8
SERVER_CPU, GENERATOR_CPU = 0, 1


def ids_of(index: Path, *, limit: int = 2000) -> list[str]:
    """Return the ids of the first `limit` companies."""
    with closing(SqliteIndex(index)) as opened:
        first = next(opened.versions(opened.live().name, batch_size=limit))
    return [document.id for document in first]


def questions(ids: list[str], query: str) -> Callable[[], Request]:
    """Return a function that makes a request for the competitors of a random company."""
    chance = random.Random(7)
    return lambda: get(f"/similar/{chance.choice(ids)}?{query}")


def good(answers: list[Answer]) -> int:
    """Return the number of requests that were answered with 200 in time."""
    return sum(answer.status == 200 and answer.seconds <= IN_TIME for answer in answers)


async def measure(port: int, next_request: Callable[[], Request], *, rounds: int, seconds: float) -> list[float]:
    """Return, for each round, the goodput under overload as a share of the capacity; print both."""
    await closed_loop(port, next_request, connections=CONNECTIONS, seconds=3)
    shares = []
    for number in range(1, rounds + 1):
        usual = await closed_loop(port, next_request, connections=CONNECTIONS, seconds=seconds)
        capacity = good(usual) / seconds
        print(f"round {number}: capacity {summary(usual, seconds=seconds)}")
        flood = await open_loop(port, next_request, rate=TIMES * capacity, seconds=seconds)
        print(f"round {number}: overload {summary(flood, seconds=seconds)}")
        refused = [answer.seconds * 1000 for answer in flood if answer.status in {429, 503}]
        shares.append(good(flood) / seconds / capacity)
        print(
            f"round {number}: goodput {shares[-1]:.2f} of the capacity; refusals after "
            f"{median(refused) if refused else 0:.1f} ms at the median",
            flush=True,
        )
        await asyncio.sleep(2)
    return shares


def main() -> None:
    """Reads the options and measures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--index", type=Path, help="index file (default: the sample companies)")
    parser.add_argument("--query", default="k=10&reasons=0", help="parameters of each question (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15.0)
    given = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d}, cpus {os.cpu_count()}, load {os.getloadavg()[0]:.1f}, query {given.query}")
    with tempfile.TemporaryDirectory() as folder:
        index = given.index or sample_index(Path(folder))
        with running_service(index, cpus=[SERVER_CPU]) as service:
            os.sched_setaffinity(0, {GENERATOR_CPU})
            shares = asyncio.run(
                measure(service.port, questions(ids_of(index), given.query), rounds=given.rounds, seconds=given.seconds)
            )
    kept = "kept" if median(shares) >= CLAIM else "MISSED"
    print(
        f"\nclaim (goodput under {TIMES:.0f} x overload >= {CLAIM} of the capacity): median {median(shares):.2f}, "
        f"{min(shares):.2f} to {max(shares):.2f}: {kept}"
    )


if __name__ == "__main__":
    main()
