"""The search service's own time per request, and its requests a second beside those of a bare FastAPI application.

python -m benchmarks.service

Own time is everything but the index, which answers a constant. The claims: at most 1 ms at the median for
`GET /similar/{id}?k=10&rank=cosine&reasons=0`, and 2 ms for 250 hits. Four ways to the same answer, in interleaved
rounds of one run:

    service     SearchService alone: records to answer models, then to JSON
    shipped     the ASGI application as it is: its route hands back finished JSON
    validated   the same with FastAPI turning the route's model into JSON
    http        the shipped one over HTTP with keep-alive, from another process on this machine

The first three are processor time, the last one is elapsed time.

Then requests a second over 8 connections, each server in a process of its own, in turn: a bare FastAPI application that
says hello; the shipped application on the constant index; `python -m services.search` on an index of the sample
companies, in one process and in two. Each request is for another company. The processor time of a request is printed
beside each rate: compare by it if other programs run.
"""

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from statistics import median, quantiles
from typing import Annotated, Any, cast

import numpy as np
import uvicorn
from fastapi import FastAPI, Query

from benchmarks.http_load import Answer, closed_loop, get
from benchmarks.index import machine
from benchmarks.service_process import (
    SAMPLE,
    RunningService,
    free_port,
    running_service,
    sample_index,
)
from services.search.app import create_app
from services.search.asking.question_schemas import SimilarQuery
from services.search.asking.ranking_schemas import SimilarToCompany
from services.search.asking.service import SearchService
from similarity.company import Company, EmbeddedCompany, SimilarCompany
from similarity.index.attributes import AttributeSchema
from similarity.index.filters import FieldFilter
from similarity.index.protocol import CompanyIndex, Generation, SimilarCompanies
from similarity.model.calibration import Calibration
from similarity.search.searcher import Searcher

SIZES = (10, 100, 250)
TARGETS_MS = {10: 1.0, 250: 2.0}
QUESTION = "k={k}&reasons=0&rank={rank}"
DESCRIPTION = "Designs and sells shoes for hikers, runners and people who stand all day at work. " * 6
NOW = datetime(2025, 3, 1, tzinfo=UTC)


class ConstantIndex:
    """An index that has every company that is asked for, and the same neighbours for all of them."""

    def __init__(self) -> None:
        self._live = Generation(
            name="constant",
            encoder_id="7f9a54bb4fd1bba2",
            bundle_id="04c1e0f3a2b8d955",
            dimension=384,
            created_at=NOW,
            calibration=Calibration(slope=10.0, intercept=-5.0),
        )
        self._anchor = EmbeddedCompany(
            company=company("anchor"),
            version=2,
            text_hash="0" * 32,
            encoder_id=self._live.encoder_id,
            vector=np.full(384, 384**-0.5, dtype=np.float32),
            embedded_at=NOW,
            language="en",
        )
        self._hits = hits(2 * max(SIZES))

    def live(self) -> Generation:
        """The one generation."""
        return self._live

    attributes = staticmethod(AttributeSchema)  # none is declared

    def generations(self) -> list[Generation]:
        """The one generation, alone."""
        return [self._live]

    def field_values(self, generation: str, field: str, among: Collection[str] = ()) -> list[str]:
        """All values that a filter asks for."""
        return list(among)

    def find(self, generation: str, query: str, *, limit: int = 10) -> list[Company]:
        """Nothing: no other company has the name of the anchor."""
        return []

    def get(self, generation: str, ids: Collection[str]) -> dict[str, EmbeddedCompany]:
        """The anchor, under every id."""
        return dict.fromkeys(ids, self._anchor)

    def similar(
        self,
        generation: str,
        vector: Any,
        *,
        k: int,
        filters: Sequence[FieldFilter] = (),
        exclude: Collection[str] = (),
    ) -> SimilarCompanies:
        """The first `k` neighbours, always the same."""
        return SimilarCompanies(hits=self._hits[:k], approximate=False)


def company(company_id: str) -> Company:
    return Company(
        id=company_id,
        name=f"Company {company_id}",
        description=f"{company_id}: {DESCRIPTION}",
        aliases=("One", "Another"),
        domain=f"{company_id}.com",
        country="Germany",
        industry="Footwear",
    )


def hits(k: int) -> tuple[SimilarCompany, ...]:
    return tuple(
        SimilarCompany(
            company=company(f"hit-{rank}"), score=0.9 - rank / 1000, version=2, embedded_at=NOW, language="en"
        )
        for rank in range(k)
    )


def constant_index() -> CompanyIndex:
    # The service calls no other method of the protocol here.
    return cast("CompanyIndex", ConstantIndex())


def validating_app() -> FastAPI:
    """Return an application that gives the same answer, serialised by FastAPI."""
    service = SearchService(Searcher(constant_index()))
    app = create_app(index=constant_index())
    app.router.routes.clear()

    @app.get("/similar/{company_id:path}")
    def similar(company_id: str, query: Annotated[SimilarQuery, Query()]) -> SimilarToCompany:
        return service.similar_to_company(company_id, query)

    return app


def time_service(k: int, requests: int) -> list[float]:
    service = SearchService(Searcher(constant_index()))
    query = SimilarQuery(k=k, reasons=0, rank="cosine")
    return [timed(lambda: service.similar_to_company("nike", query).model_dump_json()) for _ in range(requests)]


def time_asgi(app: FastAPI, k: int, requests: int) -> list[float]:
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/similar/nike",
        "raw_path": b"/similar/nike",
        "root_path": "",
        "query_string": QUESTION.format(k=k, rank="cosine").encode(),
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8080),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] != 200:
            raise RuntimeError(f"the service answered {message['status']}")

    async def measure() -> list[float]:
        times = []
        for _ in range(requests):
            started = time.process_time()
            await app(dict(scope), receive, send)
            times.append((time.process_time() - started) * 1000)
        return times

    return asyncio.run(measure())


def time_http(port: int, k: int, requests: int) -> list[float]:
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def request() -> None:
        connection.request("GET", f"/similar/nike?{QUESTION.format(k=k, rank='cosine')}")
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"the service answered {answer.status}")

    times = [timed(request, time.perf_counter) for _ in range(requests)]
    connection.close()
    return times


def timed(action: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Return the milliseconds of an action: by default processor time, which other programs change little."""
    started = clock()
    action()
    return (clock() - started) * 1000


def hello_app() -> FastAPI:
    """Return the smallest FastAPI application."""
    app = FastAPI()

    @app.get("/hello")
    def hello() -> dict[str, str]:
        return {"say": "hello"}

    return app


def serve(name: str, port: int) -> None:
    app = hello_app() if name == "hello" else create_app(index=constant_index())
    uvicorn.run(app, port=port, log_level="warning", access_log=False)


def started_server(name: str) -> tuple[multiprocessing.Process, RunningService]:
    port = free_port()
    process = multiprocessing.Process(target=serve, args=(name, port), daemon=True)
    process.start()
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return process, RunningService(port=port, pid=process.pid or 0)
        except OSError:
            if not process.is_alive():
                raise
            time.sleep(0.05)


def asked(servers: Sequence[RunningService], paths: Sequence[str], *, seconds: float) -> tuple[float, float]:
    """Return requests a second over 8 connections, each for the next path, and processor milliseconds per request."""
    following, before = cycle(paths), sum(each.processor_seconds() for each in servers)

    async def ask() -> list[list[Answer]]:
        count = 8 // len(servers)
        return await asyncio.gather(
            *(closed_loop(s.port, lambda: get(next(following)), connections=count, seconds=seconds) for s in servers)
        )

    answers = [answer for of_server in asyncio.run(ask()) for answer in of_server]
    if any(answer.status != 200 for answer in answers):
        raise RuntimeError(f"a request like {paths[0]} was not answered with status 200")
    used = sum(each.processor_seconds() for each in servers) - before
    return len(answers) / seconds, 1000 * used / len(answers)


def print_times(port: int, *, rounds: int, requests: int) -> dict[int, float]:
    """Measure every way in turn and print the table; return the median of "shipped" by number of hits."""
    shipped, validating = create_app(index=constant_index()), validating_app()
    ways: dict[str, Callable[[int, int], list[float]]] = {
        "service": time_service,
        "shipped": lambda k, requests: time_asgi(shipped, k, requests),
        "validated": lambda k, requests: time_asgi(validating, k, requests),
        "http": lambda k, requests: time_http(port, k, requests),
    }
    times: dict[tuple[int, str], list[float]] = {(k, way): [] for k in SIZES for way in ways}
    for _ in range(rounds):
        for k, way in times:
            times[k, way] += ways[way](k, requests)
    print(f"milliseconds per request (http: elapsed, others: processor time), {rounds} rounds of {requests}\n")
    print(f"{'hits':>5}  {'way':<10}{'p50':>8}{'p99':>8}")
    for (k, way), measured in times.items():
        print(f"{k:>5}  {way:<10}{median(measured):>8.3f}{quantiles(measured, n=100)[-1]:>8.3f}")
    return {k: median(times[k, "shipped"]) for k in SIZES}


def print_rates(hello: RunningService, constant: RunningService, *, rounds: int, seconds: float) -> None:
    """Print requests a second and processor time per request: bare application, constant index and sample."""
    with SAMPLE.open(encoding="utf-8") as lines:
        ids = [json.loads(line)["id"] for line in islice(lines, 400)]
    with (
        tempfile.TemporaryDirectory() as folder,
        running_service(index := sample_index(Path(folder))) as one,
        running_service(index) as other,
    ):
        ways = {"a bare FastAPI hello": ([hello], ["/hello"])}
        for rank in ("cosine", "business"):
            question = QUESTION.format(k=10, rank=rank)
            paths = [f"/similar/{each}?{question}" for each in ids]
            ways[f"constant index, {rank}"] = [constant], paths
            ways[f"sample, {rank}"] = [one], paths
            ways[f"sample, {rank}, 2 processes"] = [one, other], paths
        found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, (servers, paths) in ways.items():
                found[way].append(asked(servers, paths, seconds=seconds))
    print(
        f"\n10 hits over 8 connections, {rounds} rounds, {seconds:g} s for each line; share: the speed relative to the "
        "bare application in the same round\n"
    )
    print(f"{'':<30}{'a second':>9}  {'share':<20}{'processor ms':>13}  share")
    bare = found["a bare FastAPI hello"]
    for way, measured in found.items():
        shares = [rate / of_bare for (rate, _), (of_bare, _) in zip(measured, bare, strict=True)]
        by_time = [of_bare / used for (_, used), (_, of_bare) in zip(measured, bare, strict=True)]
        rate, used = (median(column) for column in zip(*measured, strict=True))
        rate_shares, time_shares = (
            f"{median(each):.2f} ({min(each):.2f} to {max(each):.2f})" for each in (shares, by_time)
        )
        print(f"{way:<30}{rate:>9.0f}  {rate_shares:<20}{used:>13.2f}  {time_shares}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=200, help="of each way in a round (%(default)s)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement of requests a second")
    given = parser.parse_args()
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}")
    (process, constant), (hello_process, hello) = started_server("service"), started_server("hello")
    own = print_times(constant.port, rounds=given.rounds, requests=given.requests)
    print_rates(hello, constant, rounds=given.rounds, seconds=given.seconds)
    process.terminate()
    hello_process.terminate()
    print()
    for k, target in TARGETS_MS.items():
        verdict = "kept" if own[k] <= target else "MISSED"
        print(f"claim: at most {target} ms at the median for {k} hits: {own[k]:.3f} ms, {verdict}")


if __name__ == "__main__":
    main()
