"""The write measurements of `benchmarks.elasticsearch`: a resumable load; bulk sizes; vectors packed or as digits."""

import json
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.elasticsearch_corpus import Corpus
from benchmarks.elasticsearch_server import Server, load_average, open_cluster
from similarity.company import EmbeddedCompany
from similarity.errors import SimilarityError
from similarity.index.elastic import ElasticIndex, ElasticSettings
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.documents import source_of
from similarity.index.elastic.mapping import building_settings, generation_mapping
from similarity.index.elastic.writing import MAX_BYTES, MAX_DOCUMENTS, BulkWriter, Target
from similarity.index.protocol import WriteOutcome, WriteResult

CALL_DOCUMENTS = 2_000  # in one call of upsert
COMPARED_DOCUMENTS = 4_000
ROUNDS = 5
# Maximum documents and bytes of one bulk request. The first pair is the default of the index.
BULKS = (
    (MAX_DOCUMENTS, MAX_BYTES),
    (100, MAX_BYTES),
    (250, MAX_BYTES),
    (1_000, 16_000_000),
    (2_000, 16_000_000),
)

Write = Callable[[Target, Sequence[EmbeddedCompany]], None]


def load(
    index: ElasticIndex, corpus: Corpus, *, generation: str, progress: Path, writers: int, server: Server
) -> dict[str, float]:
    """Fill a generation through `upsert`, continuing a killed run; return its figures."""
    if generation not in {each.name for each in index.generations()}:
        index.create_generation(corpus.generation(generation))
        progress.unlink(missing_ok=True)  # the file is of another server
    rows_written, seconds = json.loads(progress.read_text(encoding="utf-8")) if progress.exists() else (0, 0.0)

    def write(first: int) -> None:
        rows = range(first, min(first + CALL_DOCUMENTS, len(corpus)))
        check(index.upsert(generation, corpus.documents(rows)))

    at_once = 5 * writers * CALL_DOCUMENTS
    with ThreadPoolExecutor(writers) as pool:
        for start in range(rows_written, len(corpus), at_once):
            end = min(start + at_once, len(corpus))
            started = perf_counter()
            list(pool.map(write, range(start, end, CALL_DOCUMENTS)))
            seconds += perf_counter() - started
            progress.write_text(json.dumps([end, seconds]), encoding="utf-8")
            print(
                f"  {end:,} of {len(corpus):,} written, {end / seconds:,.0f} docs/s, load {load_average()}", flush=True
            )
    figures = {"documents": len(corpus), "docs_per_second": len(corpus) / seconds, "writers": writers}
    return figures | {"load": load_average()} | server.memory()


def check(results: Sequence[WriteResult]) -> None:
    """Raise SimilarityError unless every document is in the index."""
    for result in results:
        if result.outcome not in {WriteOutcome.APPLIED, WriteOutcome.UNCHANGED}:
            raise SimilarityError(f"{result.id} was {result.outcome}: {result.reason}")


def compare_writing(settings: ElasticSettings, corpus: Corpus) -> list[dict[str, Any]]:
    """Return documents per second into a new index: medians over rounds in which all ways of writing take turns."""
    batch = corpus.documents(range(min(COMPARED_DOCUMENTS, len(corpus))))
    with open_cluster(settings) as cluster:
        ways: dict[str, Write] = {
            f"packed, {most:,} documents, {size / 1e6:.0f} MB at most": partial(_packed, cluster, most, size)
            for most, size in BULKS
        }
        usual = next(iter(ways))
        ways |= {
            f"{usual}, 2 writers": partial(_in_two, ways[usual]),
            f"digits, {MAX_DOCUMENTS:,} documents": partial(_digits, cluster),
        }
        rounds: dict[str, list[dict[str, float]]] = {what: [] for what in ways}
        shuffle = random.Random(0)
        # The first round is not counted: Java compiles the code in it.
        for _ in range(1 + ROUNDS):
            for what in shuffle.sample(list(ways), len(ways)):
                rounds[what].append(_timed(cluster, corpus, ways[what], batch))
    return [
        {"what": what, **{name: median(each[name] for each in timings[1:]) for name in timings[0]}}
        for what, timings in rounds.items()
    ]


def _timed(cluster: Cluster, corpus: Corpus, write: Write, batch: Sequence[EmbeddedCompany]) -> dict[str, float]:
    with _new_target(cluster, corpus) as target:
        started = perf_counter()
        write(target, batch)
        written = perf_counter() - started
        cluster.refresh(target.index)
        searchable = perf_counter() - started
    return {
        "docs_per_second": len(batch) / written,
        "searchable_per_second": len(batch) / searchable,
        "load": load_average(),
    }


@contextmanager
def _new_target(cluster: Cluster, corpus: Corpus) -> Iterator[Target]:
    """Yield an index with the settings of a generation that is being built; delete it afterwards."""
    name = f"{cluster.settings.name}-writing-{secrets.token_hex(4)}"
    record = corpus.generation("writing")
    mapping = generation_mapping(record, vectors=cluster.settings.vectors)
    alias = f"{name}-write"
    indices = cluster.client.indices
    indices.create(index=name, aliases={alias: {}}, mappings=mapping, settings=building_settings(cluster.settings))
    try:
        yield Target(index=name, alias=alias, dimension=record.dimension)
    finally:
        indices.delete(index=name)


def _packed(cluster: Cluster, most: int, size: int, target: Target, batch: Sequence[EmbeddedCompany]) -> None:
    check(BulkWriter(cluster, max_documents=most, max_bytes=size).write(target, batch))


def _in_two(write: Write, target: Target, batch: Sequence[EmbeddedCompany]) -> None:
    middle = len(batch) // 2
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(write, target), (batch[:middle], batch[middle:])))


def _digits(cluster: Cluster, target: Target, batch: Sequence[EmbeddedCompany]) -> None:
    """Write the documents with their vectors as JSON numbers, as most clients send them."""
    for start in range(0, len(batch), MAX_DOCUMENTS):
        lines: list[Any] = [_lines_with_digits(document) for document in batch[start : start + MAX_DOCUMENTS]]
        answer = cluster.client.bulk(index=target.alias, operations=lines, filter_path=["errors"])
        if answer["errors"]:
            raise SimilarityError("some documents with digits were not written; look into the server's log")


def _lines_with_digits(document: EmbeddedCompany) -> bytes:
    action = {"index": {"_id": document.id, "version": document.version, "version_type": "external"}}
    source = source_of(document, packs_vectors=False)
    return f"{_json(action)}\n{_json(source)}".encode()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
