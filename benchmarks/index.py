"""Measures the embedded index (SQLite) beside plain NumPy over the same vectors.

    python -m benchmarks.index                     10,000 and 100,000 companies of dimension 384
    python -m benchmarks.index --sizes 1000 --queries 50 --json

Companies and vectors are made up from a seed. Index and NumPy answer the same queries in turns, and recall (the share
of the 10 nearest by float64 brute force that the index returned) is measured on the first 20 queries. Filters keep 1,
10 and 50 % of the companies; "first" includes reading the filter from the file, "again" is the same filter on an
unchanged index. "bytes read once" is the time to read all vectors from memory: no exact search without a filter should
be faster. "of reading" is the processor time of a search divided by the processor time of this reading in the same
turn: median, and 5th to 95th percentile. "processor" is the median processor time in milliseconds; other work on the
machine changes it less than the elapsed time. Searches of one and of two threads at once are counted for a second each,
in turns.
"""

import argparse
import itertools
import json
import os
import platform
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.company import Company, EmbeddedCompany, Vector
from similarity.index.filters import FieldFilter
from similarity.index.protocol import Generation
from similarity.index.sqlite import SqliteIndex

Rows: TypeAlias = NDArray[np.int64]

DIMENSION = 384
K = 10
ROUNDS, SECONDS = 5, 1.0  # of searches in several threads at once
SHARES = (1, 10, 50)  # percent of the companies that a filter keeps
DESCRIPTION_WORDS = 60
VOCABULARY = 5_000
GENERATION = Generation(
    name="bench",
    encoder_id="random",
    bundle_id="random",
    dimension=DIMENSION,
    created_at=datetime(2025, 1, 1, tzinfo=UTC),
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One row of the table. Times are in milliseconds. `numpy`: the median time of NumPy, if it was measured.

    `of_reading`: the processor time of a search divided by the processor time of reading all bytes.

    `processor`: the median processor time. Other work on the machine changes it less than the elapsed time.
    """

    companies: int
    what: str
    median: float | None = None
    p95: float | None = None
    processor: float | None = None
    numpy: float | None = None
    recall: float | None = None
    per_second: float | None = None
    of_reading: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000], help="numbers of companies")
    parser.add_argument("--queries", type=int, default=200, help="queries per measurement")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    lines: list[Line] = []
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            lines += measure(Path(folder) / "index.db", size=size, queries=options.queries, seed=options.seed)
    if options.json:
        print(json.dumps({"machine": machine(), "lines": [asdict(line) for line in lines]}, indent=2))
    else:
        print_table(lines)


def measure(path: Path, *, size: int, queries: int, seed: int) -> Iterator[Line]:
    """Yield all lines of one size, measured on a new file."""
    random = np.random.default_rng(seed)
    vectors = unit_rows(random, size)
    questions = unit_rows(random, queries)
    companies = make_companies(random, size)
    with closing(SqliteIndex(path)) as index:
        index.create_generation(GENERATION)
        yield writing(index, "upsert", documents(companies, vectors, version=2))
        yield writing(index, "rewrite, same words", documents(companies, vectors, version=4))
    started = time.perf_counter()
    with closing(SqliteIndex(path)) as index:
        index.similar(GENERATION.name, questions[0], k=K)
        yield Line(companies=size, what="open and first search", median=1000 * (time.perf_counter() - started))
        yield searching(index, vectors, questions)
        yield reading(index, vectors, questions[:40])
        yield from at_once(index, questions)
        for share in SHARES:
            rows = np.flatnonzero([share_tag(share) in company.tags for company in companies])
            yield from searching_filtered(index, vectors, questions, rows=rows, share=share)


def writing(index: SqliteIndex, what: str, batch: Sequence[EmbeddedCompany]) -> Line:
    """Documents acknowledged per second."""
    started = time.perf_counter()
    index.upsert(GENERATION.name, batch)
    return Line(companies=len(batch), what=what, per_second=len(batch) / (time.perf_counter() - started))


def searching(index: SqliteIndex, vectors: Vector, questions: Vector) -> Line:
    """Search of the whole generation."""
    everything = np.arange(len(vectors))
    return compare(
        "search",
        questions,
        ours=lambda question: ids(index, question, ()),
        peer=lambda question: nearest(vectors @ question, everything),
        exact=lambda question: nearest(vectors.astype(np.float64) @ question, everything),
        companies=len(vectors),
    )


def reading(index: SqliteIndex, vectors: Vector, questions: Vector) -> Line:
    """Return the line of reading all bytes in one thread, in turns with a search."""
    taken, processor, searches = [], [], []
    for question in questions:
        began = time.thread_time()
        ids(index, question, ())
        searches.append(1000 * (time.thread_time() - began))
        started, began = time.perf_counter(), time.thread_time()
        vectors.view(np.uint64).max()
        taken.append(1000 * (time.perf_counter() - started))
        processor.append(1000 * (time.thread_time() - began))
    least, middle, most = np.percentile(np.divide(searches, processor), (5, 50, 95))
    return Line(
        companies=len(vectors),
        what="bytes read once",
        median=float(np.median(taken)),
        p95=float(np.percentile(taken, 95)),
        processor=float(np.median(processor)),
        of_reading=f"{middle:.2f} ({least:.2f} to {most:.2f})",
    )


def at_once(index: SqliteIndex, questions: Vector) -> Iterator[Line]:
    """Yield the searches per second of one and of two threads: medians over rounds in which both take turns."""
    rates_of: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(ROUNDS):
        for threads, rates in rates_of.items():
            started = time.perf_counter()
            with ThreadPoolExecutor(threads) as pool:
                running = [pool.submit(searches_until, index, questions, started + SECONDS) for _ in range(threads)]
                searches = sum(each.result() for each in running)
            rates.append(searches / (time.perf_counter() - started))
    companies = index.stats(GENERATION.name).companies
    for threads, rates in rates_of.items():
        yield Line(companies=companies, what=f"searches of {threads} at once", per_second=float(np.median(rates)))


def searches_until(index: SqliteIndex, questions: Vector, end: float) -> int:
    """The number of searches that one thread makes until `end`."""
    for count, question in enumerate(itertools.cycle(questions)):
        if time.perf_counter() >= end:
            return count
        ids(index, question, ())
    raise AssertionError("there are no questions")


def searching_filtered(
    index: SqliteIndex, vectors: Vector, questions: Vector, *, rows: Rows, share: int
) -> Iterator[Line]:
    """Yield the first search with a filter, then later ones with it. NumPy gets only the rows that pass."""
    filters = (FieldFilter(field="tags", any_of=(share_tag(share),)),)
    started = time.perf_counter()
    ids(index, questions[0], filters)
    first = 1000 * (time.perf_counter() - started)
    yield Line(companies=len(vectors), what=f"search, {share} % pass, first", median=first)
    kept = vectors[rows]
    yield compare(
        f"search, {share} % pass, again",
        questions,
        ours=lambda question: ids(index, question, filters),
        peer=lambda question: nearest(kept @ question, rows),
        exact=lambda question: nearest(kept.astype(np.float64) @ question, rows),
        companies=len(vectors),
    )


def compare(
    what: str,
    questions: Vector,
    *,
    ours: Callable[[Vector], list[str]],
    peer: Callable[[Vector], list[str]],
    exact: Callable[[Vector], list[str]],
    companies: int,
) -> Line:
    """Return the times of both on every question in turns, and the recall of `ours` on the first 20 questions."""
    times: list[float] = []
    processor: list[float] = []
    peer_times: list[float] = []
    for question in questions:
        for answer, taken in ((ours, times), (peer, peer_times)):
            started, began = time.perf_counter(), time.thread_time()
            answer(question)
            taken.append(1000 * (time.perf_counter() - started))
            if answer is ours:
                processor.append(1000 * (time.thread_time() - began))
    checked = questions[:20]
    found = sum(len(set(ours(question)) & set(exact(question))) for question in checked)
    return Line(
        companies=companies,
        what=what,
        median=float(np.median(times)),
        p95=float(np.percentile(times, 95)),
        processor=float(np.median(processor)),
        numpy=float(np.median(peer_times)),
        recall=found / sum(len(exact(question)) for question in checked),
    )


def ids(index: SqliteIndex, question: Vector, filters: Sequence[FieldFilter]) -> list[str]:
    """The ids of the index's answer."""
    return [hit.company.id for hit in index.similar(GENERATION.name, question, k=K, filters=filters).hits]


def nearest(scores: NDArray[np.floating], rows: Rows) -> list[str]:
    """The ids of the K best rows by these scores."""
    k = min(K, len(scores))
    best = np.argpartition(scores, -k)[-k:]
    return [company_id(int(row)) for row in rows[best[np.argsort(-scores[best])]]]


def company_id(row: int) -> str:
    return f"c{row:06}"


def share_tag(share: int) -> str:
    return f"one-of-{100 // share}"


def unit_rows(random: np.random.Generator, count: int) -> Vector:
    """Random directions, float32 `[count, DIMENSION]`."""
    rows = random.standard_normal((count, DIMENSION), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def make_companies(random: np.random.Generator, count: int) -> list[Company]:
    """Companies of made-up words, common ones much more frequent than rare ones, as in real text."""
    words = [f"w{number}" for number in range(VOCABULARY)]
    choices = np.minimum(random.zipf(1.3, size=(count, DESCRIPTION_WORDS)) - 1, VOCABULARY - 1)
    return [
        Company(
            id=company_id(row),
            name=f"{words[row % VOCABULARY]} {words[choices[row, 0]]} {row}",
            description=" ".join(words[choice] for choice in choices[row]),
            aliases=(f"Alias {row}",),
            domain=f"company{row}.example.com",
            country=f"Country {row % 60}",
            industry=f"Industry {row % 70}",
            tags=tuple(share_tag(share) for share in SHARES if row % (100 // share) == 0),
        )
        for row in range(count)
    ]


def documents(companies: Sequence[Company], vectors: Vector, *, version: int) -> list[EmbeddedCompany]:
    return [
        EmbeddedCompany(
            company=company,
            version=version,
            text_hash=f"{row:032x}",
            encoder_id=GENERATION.encoder_id,
            vector=vectors[row],
            embedded_at=GENERATION.created_at,
            language="en",
        )
        for row, company in enumerate(companies)
    ]


def print_table(lines: Sequence[Line]) -> None:
    print(f"{machine()}\n")
    heads = ("median ms", "p95 ms", "processor", "NumPy ms", "recall@10", "per s")
    print(f"{'companies':>9}  {'what':<26} {' '.join(f'{head:>9}' for head in heads)}  of reading")
    for line in lines:
        cells = (line.median, line.p95, line.processor, line.numpy, line.recall)
        shown = [f"{cell:.2f}" if cell is not None else "" for cell in cells]
        shown.append(f"{line.per_second:,.0f}" if line.per_second else "")
        row = " ".join(f"{cell:>9}" for cell in shown)
        print(f"{line.companies:>9,}  {line.what:<26} {row}  {line.of_reading}".rstrip())


def machine() -> str:
    """The machine and the software that the figures belong to."""
    information = Path("/proc/cpuinfo")
    names = [
        line.partition(":")[2].strip()
        for line in (information.read_text().splitlines() if information.exists() else [])
        if line.startswith("model name")
    ]
    return (
        f"{names[0] if names else platform.machine()}, {os.cpu_count()} CPUs; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SQLite {sqlite3.sqlite_version}; {datetime.now(UTC):%Y-%m-%d}"
    )


if __name__ == "__main__":
    main()
