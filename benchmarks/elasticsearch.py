"""Measures writing, searching, disk and memory of the Elasticsearch index, on real and on synthetic companies.

    similarity ingest companies.jsonl.gz --index companies.db
    python -m benchmarks.elasticsearch --index companies.db
    python -m benchmarks.elasticsearch --index companies.db --synthetic 1000000 --heap 4g
    python -m benchmarks.elasticsearch --index companies.db --synthetic 1000000 --heap 4g --reuse

The first command creates an embedded index; any existing one can be used. Without `--url` a server of version 9.5 is
installed and started (it needs Java 21 and Maven), and its data stay in the `--work` folder.
Each stage stores its figures there: a run that was killed continues at the stage it had reached. `--reuse` keeps the
stored figures of loading, merging, searches before merging and neighbourhoods, and measures the rest again. Client and
server share the machine's processors, which limits the figures of several clients. The `load` beside a figure is the
machine's load average of the minute before, the benchmark included.

Recall is the share of the ten nearest companies by exact cosine (NumPy) that the search found. Filtered searches keep
every 100th, every 10th or every 2nd company. `benchmarks.elasticsearch_corpus` makes the synthetic companies.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, get_args

from benchmarks import elasticsearch_pgvector as pgvector
from benchmarks import elasticsearch_search as searching
from benchmarks import elasticsearch_tables as tables
from benchmarks.elasticsearch_corpus import (
    Corpus,
    Questions,
    company_questions,
    extrapolated_neighbourhood,
    held_out_questions,
    neighbourhood,
    read_corpus,
    synthetic_corpus,
)
from benchmarks.elasticsearch_load import compare_writing, load
from benchmarks.elasticsearch_plan import Measured, formula_bytes, measured_bytes, plan
from benchmarks.elasticsearch_search import Search
from benchmarks.elasticsearch_server import Server, index_of, machine, open_cluster, running_server, storage
from similarity.index.elastic import ElasticIndex, ElasticSettings
from similarity.index.elastic.settings import VectorType
from similarity.index.protocol import GenerationState

GENERATION = "benchmark"
PLANNED = 8_000_000
# Measured with the encoder on one machine, see results/.
TEXTS_PER_SECOND = 338.0
# Promises: minimum recall@10, and maximum median milliseconds of one client.
REAL_PROMISE = (0.98, 5.0)
SYNTHETIC_PROMISE = (0.95, 10.0)


@dataclass(frozen=True, kw_only=True)
class Notes:
    """The figures of finished stages, one file each."""

    folder: Path
    reuse: bool

    def stage(self, name: str, measure: Callable[[], Any], *, repeatable: bool = False) -> Any:
        """Return the figures of a stage: stored ones, unless the stage is `repeatable` and `--reuse` repeats it."""
        file = self.folder / f"{name}.json"
        if not file.exists() or (repeatable and self.reuse):
            print(f"{name} ...", flush=True)
            figures = measure()
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        return json.loads(file.read_text(encoding="utf-8"))


@dataclass(frozen=True, kw_only=True)
class Run:
    """The server, the stored figures and the options that all stages need."""

    server: Server
    notes: Notes
    writers: int
    warm_up: int
    client_seconds: float

    def search(self, corpus: Corpus, kind: VectorType, questions: Questions) -> Search:
        """Return the search of one corpus with one kind of vectors and these questions."""
        return Search(
            settings=self.settings(corpus, kind),
            generation=GENERATION,
            questions=questions,
            warm_up=self.warm_up,
            client_seconds=self.client_seconds,
        )

    def settings(self, corpus: Corpus, kind: VectorType) -> ElasticSettings:
        """Return the settings of the index for a corpus and a kind of vectors; each pair has its own index."""
        name = f"benchmark-{corpus.label.split()[0]}-{len(corpus)}-{kind}"
        return ElasticSettings(hosts=self.server.hosts, name=name, vectors=kind)


def fill(run: Run, corpus: Corpus, search: Search, *, everything: bool, merges: bool) -> dict[str, Any]:
    """Load and promote; if `merges`, also search (if `everything`) and merge. Return the figures of these steps."""
    settings = search.settings
    stage = partial(_stage, run, settings)
    progress = run.notes.folder / settings.name / "progress.json"
    progress.parent.mkdir(parents=True, exist_ok=True)
    with closing(ElasticIndex(settings)) as index, open_cluster(settings) as cluster:
        loaded = stage(
            "load",
            lambda: load(
                index, corpus, generation=GENERATION, progress=progress, writers=run.writers, server=run.server
            ),
        )
        if index.generations()[0].state is GenerationState.BUILDING:
            index.register_candidate(GENERATION)
        if index.generations()[0].state is GenerationState.CANDIDATE:
            index.promote(GENERATION)
        name = index_of(cluster, GENERATION)
        if not merges:
            unmerged = stage("unmerged", lambda: {"seconds": 0.0, **storage(cluster, name), **run.server.memory()})
            return {"load": loaded, "before": unmerged, "merged": unmerged, "candidates before": []}
        before = stage("before merging", lambda: storage(cluster, name))
        candidates = stage("searches before merging", lambda: searching.by_candidates(search)) if everything else []

        def merge() -> dict[str, float]:
            started = perf_counter()
            index.compact(GENERATION)
            return {"seconds": perf_counter() - started, **storage(cluster, name), **run.server.memory()}

        merged = stage("merged", merge)
    return {"load": loaded, "before": before, "merged": merged, "candidates before": candidates}


def measure(
    run: Run, corpus: Corpus, kind: VectorType, questions: Questions, *, everything: bool, merges: bool = True
) -> dict[str, Any]:
    """Return all figures of one corpus with one kind of vectors; print the tables."""
    search = run.search(corpus, kind, questions)
    settings = search.settings
    title = f"{corpus.label} companies, {kind}"
    figures = fill(run, corpus, search, everything=everything, merges=merges)
    again = partial(_stage, run, settings, repeatable=True)
    tables.show_pairs(
        f"{title}: space",
        tables.space(
            figures["load"],
            figures["before"],
            figures["merged"],
            dimension=corpus.vectors.shape[1],
            vectors=settings.vectors,
        ),
    )
    if everything and merges:
        tables.show(f"{title}: search, before merging", figures["candidates before"], tables.CANDIDATE_COLUMNS)
    figures["candidates"] = again("searches", lambda: searching.by_candidates(search))
    segments = f"{figures['merged']['segments']:,} segment(s)"
    tables.show(f"{title}: search, {segments}", figures["candidates"], tables.CANDIDATE_COLUMNS)
    figures["oversample"] = again("oversampling", lambda: searching.by_oversample(search))
    tables.show(f"{title}: rescoring", figures["oversample"], tables.OVERSAMPLE_COLUMNS)
    if everything:
        figures["filtered"] = again("filtered", lambda: searching.filtered(search))
        tables.show(f"{title}: filtered", figures["filtered"], tables.FILTER_COLUMNS)
        anchored = run.search(corpus, kind, company_questions(corpus, len(questions)))
        path = again("whole path", lambda: searching.whole_path(anchored))
        lines = [{"what": "live, get, similar", **path}]
        tables.show(f"{title}: as the service asks", lines, {"what": "{}", **tables.CANDIDATE_COLUMNS})
        figures["memory"] = again("memory", run.server.memory)
        print(f"\nthe server's own memory, and files it has mapped: {tables.memory(figures['memory'])}")
    return figures


def promise(title: str, lines: Sequence[dict[str, Any]], *, recall: float, milliseconds: float) -> None:
    """Print whether the default settings keep the promise, and which numbers of candidates keep it."""
    default = ElasticSettings(hosts=("http://localhost:9200",), name="default").num_candidates
    keeping = [line["candidates"] for line in lines if line["recall"] >= recall and line["p50"] <= milliseconds]
    [usual] = [line for line in lines if line["candidates"] == default]
    print(
        f"\n{title}: recall@10 >= {recall} at p50 <= {milliseconds:.0f} ms: {usual['recall']:.4f} at "
        f"{usual['p50']:.1f} ms with the default {default} candidates: {'kept' if default in keeping else 'MISSED'} "
        f"(kept by {', '.join(map(str, keeping)) or 'none'})"
    )


def show_plan(figures: dict[str, Any], real: dict[str, Any], *, dimension: int, texts_per_second: float) -> None:
    """Print the plan for PLANNED companies: memory and speed from the largest corpus, disk from the real one.

    The real corpus has whole texts, the synthetic one a few words. If the largest was not merged, the speed of merging
    is also from the real one. The speed of embedding is `texts_per_second`.
    """
    vectors: VectorType = "int8_hnsw"
    merged = figures["merged"] if figures["merged"]["seconds"] else real["merged"]
    measured = Measured(
        disk_bytes=real["merged"]["disk"] / real["merged"]["documents"],
        memory_bytes=measured_bytes(figures["merged"], vectors),
        whole_bytes=figures["merged"]["vectors_vec"] / figures["merged"]["documents"],
        texts_per_second=texts_per_second,
        documents_per_second=figures["load"]["docs_per_second"],
        merged_per_second=merged["documents"] / merged["seconds"],
    )
    lines = plan(PLANNED, measured, by_formula=formula_bytes(dimension, vectors))
    tables.show_pairs(f"{PLANNED:,} companies, {vectors}, worked out from the above", lines)


def show_neighbourhood(
    real: Corpus, questions: Questions, synthetic: Corpus, held_out: Questions, notes: Notes
) -> None:
    """Print cosines to neighbours in the real corpus, extrapolated to the synthetic size, and in the synthetic one."""
    lines = notes.stage(
        f"neighbourhood-{len(synthetic)}",
        lambda: [
            [real.label, neighbourhood(real.vectors, questions)],
            [
                f"real, extrapolated to {len(synthetic):,}",
                extrapolated_neighbourhood(real, questions, size=len(synthetic)),
            ],
            [synthetic.label, neighbourhood(synthetic.vectors, held_out)],
        ],
    )
    pairs = [(name, ", ".join(f"{cosine:.3f}" for cosine in cosines)) for name, cosines in lines]
    tables.show_pairs("median cosine to the 1st, 10th and 100th neighbour", pairs)


def show_pgvector(notes: Notes, url: str, corpus: Corpus, searches: dict[str, Search]) -> None:
    """Load and search pgvector beside Elasticsearch with each kind of vectors; print both tables."""
    name = f"pgvector-{len(corpus)}"
    loaded = notes.stage(f"{name}/load", lambda: pgvector.load(url, corpus))
    tables.show_pairs(f"{corpus.label} companies, pgvector", [(key, f"{value:,.0f}") for key, value in loaded.items()])
    lines = notes.stage(f"{name}/searches", lambda: pgvector.compare(url, searches), repeatable=True)
    tables.show(f"{corpus.label} companies: Elasticsearch beside pgvector", lines, pgvector.COLUMNS)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parsed(arguments)
    notes = Notes(folder=options.work / "figures", reuse=options.reuse)
    notes.folder.mkdir(parents=True, exist_ok=True)
    real = read_corpus(options.index, limit=options.limit)
    questions = company_questions(real, options.questions)
    with running_server(options.url, options.work / "server", heap=options.heap) as server:
        print(", ".join(f"{name} {value}" for name, value in machine(server.version).items()), flush=True)
        run = Run(
            server=server,
            notes=notes,
            writers=options.writers,
            warm_up=options.warm_up,
            client_seconds=options.client_seconds,
        )
        writing = notes.stage(
            f"writing-{len(real)}",
            lambda: compare_writing(run.settings(real, "int8_hnsw"), real),
            repeatable=True,
        )
        tables.show("writing into a new index", writing, tables.WRITING_COLUMNS)
        figures = {
            kind: measure(run, real, kind, questions, everything=kind == options.vectors[0]) for kind in options.vectors
        }
        of_real = largest = figures[options.vectors[0]]
        if options.synthetic:
            corpus = synthetic_corpus(real, options.work, size=options.synthetic)
            held_out = held_out_questions(real, corpus, options.work, options.questions)
            show_neighbourhood(real, questions, corpus, held_out, notes)
            for kind in options.synthetic_vectors:
                first = kind == options.synthetic_vectors[0]
                found = measure(run, corpus, kind, held_out, everything=first, merges=not options.unmerged)
                largest = found if first else largest
            if options.pgvector:
                beside = {kind: run.search(corpus, kind, held_out) for kind in options.synthetic_vectors}
                show_pgvector(notes, options.pgvector, corpus, beside)
            promise(corpus.label, largest["candidates"], recall=SYNTHETIC_PROMISE[0], milliseconds=SYNTHETIC_PROMISE[1])
        promise(real.label, of_real["candidates"], recall=REAL_PROMISE[0], milliseconds=REAL_PROMISE[1])
    show_plan(largest, of_real, dimension=real.vectors.shape[1], texts_per_second=options.texts_per_second)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Speed, recall and size of the Elasticsearch index.")
    kinds = get_args(VectorType)
    parser.add_argument("--index", type=Path, required=True, help="embedded index with companies and their vectors")
    parser.add_argument("--limit", type=int, help="use only this many of its companies")
    parser.add_argument("--work", type=Path, default=Path(".cache/elasticsearch"), help="for data and figures")
    parser.add_argument("--url", help="measure this server instead of starting one")
    parser.add_argument("--heap", default="2g", help="heap of the server that is started")
    parser.add_argument("--vectors", nargs="+", choices=kinds, default=["int8_hnsw", "hnsw", "bbq_hnsw"])
    parser.add_argument("--synthetic", type=int, help="also measure this many companies made from the real ones")
    parser.add_argument("--synthetic-vectors", nargs="+", choices=kinds, default=["int8_hnsw"])
    parser.add_argument(
        "--unmerged", action="store_true", help="do not merge the synthetic companies, which takes hours"
    )
    parser.add_argument("--pgvector", help="address of a PostgreSQL server to load and ask the same, beside it")
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--warm-up", type=int, default=10_000, help="searches before the first figure")
    parser.add_argument(
        "--client-seconds", type=float, default=4.0, help="duration of a measurement of searches per second"
    )
    parser.add_argument("--writers", type=int, default=2, help="number of threads that load")
    parser.add_argument("--reuse", action="store_true", help="measure all but loading and merging again")
    parser.add_argument("--texts-per-second", type=float, default=TEXTS_PER_SECOND, help="encoder speed, for the plan")
    return parser.parse_args(arguments)


def _stage(
    run: Run, settings: ElasticSettings, name: str, measure: Callable[[], Any], *, repeatable: bool = False
) -> Any:
    return run.notes.stage(f"{settings.name}/{name}", measure, repeatable=repeatable)


if __name__ == "__main__":
    main()
