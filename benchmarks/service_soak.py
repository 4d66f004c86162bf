"""Measures the growth of the search service's memory under steady use.

python -m benchmarks.service_soak [--index FILE] [--minutes 30] [--rate 20]

A mix of questions as a page and a program ask them, at a steady rate: by id with and without reasons, in
free text, with filters, look-ups, unknown names, bad requests. Memory is read once a second. The claim:
after the first five minutes, memory grows by less than 1 MB a minute (the slope of a straight line).
"""

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import numpy as np

from benchmarks.http_load import Request, get, open_loop, summary
from benchmarks.service_overload import ids_of
from benchmarks.service_process import RunningService, running_service, sample_index

CLAIM = 1.0
WARM_UP_MINUTES = 5.0
TEXTS = ("rents out electric scooters by the minute", "brews craft beer", "sells insurance to small firms online")
WORDS = ("steel", "bank", "software for hospitals", "air", "ni", "coffee")


def mixed(ids: list[str]) -> Callable[[], Request]:
    """Return a function that makes the next request of a steady mix."""
    chance = random.Random(11)

    def question() -> Request:
        company = quote(chance.choice(ids))
        paths = (
            f"/similar/{company}?k=10&reasons=0",
            f"/similar/{company}?k=25&reasons=0&country=United%20States",
            f"/similar/{company}?k=10",
            f"/similar?text={quote(chance.choice(TEXTS))}%20{chance.randrange(10_000)}&reasons=0",
            f"/companies?q={quote(chance.choice(WORDS))}",
            f"/companies/{company}",
            f"/similar/nobody-{chance.randrange(10_000)}",
            "/similar/x?k=0",
        )
        return get(chance.choices(paths, weights=(8, 4, 1, 1, 4, 4, 1, 1))[0])

    return question


def slope_mb_per_minute(readings: list[tuple[float, float]], *, warm_up: float) -> float:
    """Return the slope of the straight line through the readings after the warm-up."""
    times, sizes = np.array(readings).T
    warm = times >= warm_up
    return float(np.polyfit(times[warm], sizes[warm], 1)[0])


async def watch(service: RunningService, minutes: float, readings: list[tuple[float, float]]) -> None:
    """Append the memory to `readings` once a second; print it once a minute."""
    began = time.monotonic()
    while (passed := (time.monotonic() - began) / 60) < minutes:
        readings.append((passed, service.memory_mb()))
        if len(readings) % 60 == 0:
            print(f"{passed:5.1f} min  {readings[-1][1]:7.1f} MB", flush=True)
        await asyncio.sleep(1)


async def soak(service: RunningService, ids: list[str], *, minutes: float, rate: float) -> list[tuple[float, float]]:
    """Send the requests and read the memory; return the readings as (minutes, MB)."""
    readings: list[tuple[float, float]] = []
    watching = asyncio.create_task(watch(service, minutes, readings))
    answers = await open_loop(service.port, mixed(ids), rate=rate, seconds=minutes * 60)
    await watching
    print(summary(answers, seconds=minutes * 60))
    failed = [answer for answer in answers if answer.status == 0 or answer.status >= 500]
    print(f"{len(answers):,} requests, {len(failed)} failed")
    return readings


def main() -> None:
    """Reads the options and measures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--index", type=Path, help="index file (default: the sample companies)")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--warm-up", type=float, default=WARM_UP_MINUTES, help="minutes left out (%(default)s)")
    parser.add_argument("--rate", type=float, default=20.0, help="questions a second (%(default)s)")
    given = parser.parse_args()
    if given.minutes <= given.warm_up:
        parser.error(f"--minutes must be above {given.warm_up:g}: those are the warm-up")
    print(f"{datetime.now(UTC):%Y-%m-%d}, cpus {os.cpu_count()}, {given.rate:.0f} questions/s, {given.minutes:.0f} min")
    with tempfile.TemporaryDirectory() as folder:
        index = given.index or sample_index(Path(folder))
        with running_service(index) as service:
            readings = asyncio.run(soak(service, ids_of(index), minutes=given.minutes, rate=given.rate))
    slope = slope_mb_per_minute(readings, warm_up=given.warm_up)
    print(
        f"\nclaim (after {given.warm_up:g} min less than {CLAIM:.0f} MB/min): {slope:+.3f} MB/min, "
        f"{readings[-1][1]:.0f} MB at the end: {'kept' if slope < CLAIM else 'MISSED'}"
    )


if __name__ == "__main__":
    main()
