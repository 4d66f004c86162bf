"""Measures swaps of the live generation under load: errors, mixed answers, and how soon every process follows.

    python -m benchmarks.elasticsearch_swaps --index companies.db

Two generations hold the same companies and differ in one mark (the time of embedding), which every
hit carries. Several processes, as replicas of a service would, call live -> get -> similar. First they ask as fast
as they can, to measure the capacity. Then they ask at half of that rate, while `rollback` swaps the
generations repeatedly. A process sends one request at a time; its time counts from when it was due, also if the one
before was slow. A request whose generation has been removed is sent once more, as the service does. The promise:
no errors, no mixed answers, and the new generation answers every request that starts more than a second after
`rollback` returned.
"""

import argparse
import multiprocessing
import queue
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from multiprocessing.context import SpawnContext
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.elasticsearch_corpus import Corpus, read_corpus, synthetic_corpus
from benchmarks.elasticsearch_load import load
from benchmarks.elasticsearch_server import Server, load_average, machine, running_server
from similarity.errors import SimilarityError, UnknownGeneration
from similarity.index.elastic import ElasticIndex, ElasticSettings
from similarity.index.protocol import CompanyIndex, GenerationState

NAME = "benchmark-swaps"
MARKS = {"even": datetime(2024, 1, 1, tzinfo=UTC), "odd": datetime(2025, 1, 1, tzinfo=UTC)}
K = 10
WRITERS = 2
ALLOWED_SECONDS = 1.0


@dataclass(frozen=True)
class Answer:
    """One request: its start (system clock), the seconds from its due time to its answer, and the outcome."""

    begun: float
    seconds: float
    generation: str
    problem: str = ""


Answers: TypeAlias = "multiprocessing.Queue[list[Answer]]"
Swaps: TypeAlias = list[tuple[float, str]]
"""The time at which each rollback returned, and the generation that is live since then."""


def ask(index: CompanyIndex, company_id: str) -> tuple[str, str]:
    """Return the generation that answered, and the fault of the answer (empty if there is none)."""
    try:
        return _ask(index, company_id)
    except UnknownGeneration:
        return _ask(index, company_id)


def _ask(index: CompanyIndex, company_id: str) -> tuple[str, str]:
    live = index.live().name
    anchor = index.get(live, [company_id])[company_id]
    hits = index.similar(live, anchor.vector, k=K, exclude=[company_id]).hits
    foreign = [hit.company.id for hit in hits if hit.embedded_at != MARKS[live]]
    if len(hits) < K or foreign or anchor.embedded_at != MARKS[live]:
        return live, f"{len(hits)} hits, {len(foreign)} of another generation"
    return live, ""


def replica(hosts: tuple[str, ...], ids: Sequence[str], stop: Event, rate: float | None, answers: Answers) -> None:
    """Run one process of a service: ask until `stop`, at `rate` requests a second or (None) as fast as it can."""
    choice = np.random.default_rng()
    found: list[Answer] = []
    with closing(ElasticIndex(ElasticSettings(hosts=hosts, name=NAME))) as index:
        ask(index, ids[0])
        due = time.time()
        while not stop.is_set():
            time.sleep(max(0.0, due - time.time()))
            begun = time.time()
            try:
                generation, problem = ask(index, str(choice.choice(ids)))
            except SimilarityError as error:
                generation, problem = "", f"{type(error).__name__}: {error}"
            ended = time.time()
            found.append(Answer(begun, ended - due, generation, problem))
            due = due + choice.exponential(1 / rate) if rate else ended
    answers.put(found)


def asked(
    context: SpawnContext,
    hosts: tuple[str, ...],
    ids: Sequence[str],
    *,
    replicas: int,
    rate: float | None,
    during: Callable[[], Swaps],
) -> tuple[list[Answer], Swaps]:
    """Ask with all replicas while `during` runs; return all answers, and the swaps that `during` returned."""
    answers: Answers = context.Queue()
    stop = context.Event()
    each = rate / replicas if rate else None
    workers = [context.Process(target=replica, args=(hosts, ids, stop, each, answers)) for _ in range(replicas)]
    for worker in workers:
        worker.start()
    swaps = during()
    stop.set()
    try:
        found = [answer for _ in workers for answer in answers.get(timeout=60)]
    except queue.Empty:
        sys.exit("a replica died; its error is above")
    for worker in workers:
        worker.join()
    return found, swaps


def fill(index: ElasticIndex, corpus: Corpus, *, progress: Path, server: Server, merged: bool) -> None:
    """Load the corpus once as each generation, and make the second one live. A load that was killed is continued."""
    for name, mark in MARKS.items():
        states = {generation.name: generation.state for generation in index.generations()}
        if states.get(name) in {GenerationState.LIVE, GenerationState.PREVIOUS}:
            continue
        marked = replace(corpus, embedded_at=mark)
        load(index, marked, generation=name, progress=progress / f"{name}.json", writers=WRITERS, server=server)
        if merged:
            index.compact(name)
        index.register_candidate(name)
        index.promote(name)
        print(f"{name}: {index.stats(name).companies:,} companies", flush=True)


def wait(seconds: float) -> Swaps:
    """Wait without a swap."""
    time.sleep(seconds)
    return []


def swap(index: ElasticIndex, *, swaps: int, pause: float) -> Swaps:
    """Roll back `swaps` times, `pause` seconds apart; return the swaps."""
    done = []
    for _ in range(swaps):
        time.sleep(pause)
        begun = time.time()
        live = index.rollback().name
        done.append((time.time(), live))
        print(f"  {len(done)} of {swaps}: {live}, after {done[-1][0] - begun:.1f} s", flush=True)
    time.sleep(pause)
    return done


def slowest_to_follow(answers: Sequence[Answer], swaps: Swaps) -> float:
    """Return the most seconds from a rollback to the start of a request that the old generation answered."""
    slowest = 0.0
    for (at, live), (end, _) in zip(swaps, [*swaps[1:], (float("inf"), "")], strict=True):
        # The next swap takes effect a little before it returns.
        late = [answer.begun - at for answer in answers if at < answer.begun < end - 0.2 and answer.generation != live]
        slowest = max([slowest, *late])
    return slowest


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Swaps of the live generation under load.")
    parser.add_argument("--index", type=Path, required=True, help="embedded index with companies and their vectors")
    parser.add_argument("--limit", type=int, help="use only this many of its companies")
    parser.add_argument("--synthetic", type=int, help="use this many companies made from the real ones")
    parser.add_argument("--unmerged", action="store_true", help="do not merge the segments, which takes long")
    parser.add_argument("--work", type=Path, default=Path(".cache/elasticsearch-swaps"), help="for the server's data")
    parser.add_argument("--url", help="use this server instead of starting one")
    parser.add_argument("--heap", default="2g", help="heap of the server that is started")
    parser.add_argument("--replicas", type=int, default=4, help="number of processes that ask")
    parser.add_argument("--swaps", type=int, default=20)
    parser.add_argument("--pause", type=float, default=2.0, help="seconds between swaps")
    parser.add_argument("--capacity-seconds", type=float, default=15.0)
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    corpus = read_corpus(options.index, limit=options.limit)
    if options.synthetic:
        corpus = synthetic_corpus(corpus, options.work, size=options.synthetic)
    context = multiprocessing.get_context("spawn")
    with (
        running_server(options.url, options.work / "server", heap=options.heap) as server,
        closing(ElasticIndex(ElasticSettings(hosts=server.hosts, name=NAME))) as index,
    ):
        print(", ".join(f"{name} {value}" for name, value in machine(server.version).items()), flush=True)
        fill(index, corpus, progress=options.work, server=server, merged=not options.unmerged)
        ids = [corpus.company(row).id for row in range(0, len(corpus), max(1, len(corpus) // 2_000))]
        ask_all = partial(asked, context, server.hosts, ids, replicas=options.replicas)
        closed, _ = ask_all(rate=None, during=lambda: wait(options.capacity_seconds))
        # The second half: by then every process has started and the server is warm.
        last = max(answer.begun for answer in closed)
        counted = sum(answer.begun > last - options.capacity_seconds / 2 for answer in closed)
        capacity = counted / (options.capacity_seconds / 2)
        print(
            f"capacity: {capacity:.0f} requests/s from {options.replicas} processes, load {load_average()}", flush=True
        )
        answers, swaps = ask_all(
            rate=capacity / 2, during=lambda: swap(index, swaps=options.swaps, pause=options.pause)
        )
    show(answers, swaps, capacity=capacity)


def show(answers: Sequence[Answer], swaps: Swaps, *, capacity: float) -> None:
    """Print the figures and whether the promise was kept."""
    problems = [answer.problem for answer in answers if answer.problem]
    milliseconds = 1000 * np.array([answer.seconds for answer in answers])
    near = [1000 * answer.seconds for answer in answers if any(abs(answer.begun - at) < 0.5 for at, _ in swaps)]
    follow = slowest_to_follow([answer for answer in answers if not answer.problem], swaps)
    lasted = max(answer.begun for answer in answers) - min(answer.begun for answer in answers)
    print(f"asked for         {capacity / 2:.0f}/s, open loop; answered {len(answers) / lasted:.0f}/s")
    print(f"swaps             {len(swaps)}")
    print(f"answers           {len(answers):,}, of them {len(problems)} with an error or of two generations")
    print(
        f"p50, p99, worst   {np.percentile(milliseconds, 50):.1f}, {np.percentile(milliseconds, 99):.1f}, "
        f"{milliseconds.max():.0f} ms from when a request was due"
    )
    print(f"around a swap     {np.percentile(near, 50):.1f}, {np.percentile(near, 99):.1f} ms (p50, p99)")
    print(f"slowest to follow {1000 * follow:.0f} ms after rollback returned")
    for problem in problems[:5]:
        print(f"problem: {problem}")
    kept = "kept" if not problems and follow <= ALLOWED_SECONDS else "MISSED"
    print(f"promise (no error, no mixed answer, all follow within {ALLOWED_SECONDS:.0f} s): {kept}")


if __name__ == "__main__":
    main()
