"""The search measurements of `benchmarks.elasticsearch`: time and recall.

The times of one client are measured around `ElasticIndex.similar`, which the service calls too (`whole_path`: with
`live` and `get`), and include reading the records.
`took` is the time that the server reports for the vector search alone (in whole milliseconds, so the mean is shown).
"""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.elasticsearch_corpus import SHARES, K, Questions, recall
from benchmarks.elasticsearch_server import index_of, load_average, open_cluster
from similarity.index.elastic import ElasticIndex, ElasticSettings, queries
from similarity.index.elastic.documents import vector_text
from similarity.index.elastic.settings import MAX_CANDIDATES, OVERSAMPLE
from similarity.index.filters import FieldFilter

CANDIDATES = (20, 50, 100, 200, 400)
OVERSAMPLES = {"int8_hnsw": (1.0, 1.5, 3.0), "int4_hnsw": (1.0, 2.0, 3.0), "bbq_hnsw": (2.0, 3.0, 5.0, 10.0)}
FILTERED_CANDIDATES = (100, 200, 400)
CLIENTS = (1, 2, 4)
ROUNDS = 3  # how often every question is asked, after a first round that is not timed

Ask = Callable[[int], Sequence[str]]
Figures = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Search:
    """A generation, how it is searched, and the questions.

    `warm_up`: number of searches before the first figure, because Java compiles code only after thousands of calls.
    `client_seconds`: duration of each measurement of searches per second. `share`: per cent of the companies that pass
    the filter.
    """

    settings: ElasticSettings
    generation: str
    questions: Questions
    warm_up: int
    client_seconds: float
    share: int = 100

    def with_settings(self, **changes: Any) -> "Search":
        return replace(self, settings=replace(self.settings, **changes))


def by_candidates(search: Search) -> list[Figures]:
    """Return recall, times and questions per second at each of CANDIDATES."""
    with asking(search) as ask:
        for number in range(search.warm_up):
            ask(number % len(search.questions))
    lines = []
    for candidates in CANDIDATES:
        changed = search.with_settings(num_candidates=candidates)
        with asking(changed) as ask:
            line = {"candidates": candidates, **timed(ask, changed), "took": mean_took(changed)}
            for clients in CLIENTS:
                line[f"per_second_{clients}"] = per_second(ask, search, clients=clients)
        lines.append(line)
        print("  " + ", ".join(f"{name} {value:.3g}" for name, value in line.items()), flush=True)
    return lines


def by_oversample(search: Search) -> list[Figures]:
    """Return recall and times for each useful oversampling of this kind of vectors, at 50, 100 and 200 candidates."""
    lines = []
    kind = search.settings.vectors
    for oversample, candidates in itertools.product(OVERSAMPLES.get(kind, (OVERSAMPLE[kind],)), (50, 100, 200)):
        changed = search.with_settings(oversample=oversample, num_candidates=candidates)
        with asking(changed) as ask:
            lines.append({"oversample": oversample, "candidates": candidates, **timed(ask, changed)})
    return lines


def whole_path(search: Search) -> Figures:
    """Return the figures of the service's three reads for a company: live generation, vector, neighbours."""
    with closing(ElasticIndex(search.settings)) as index:

        def ask(number: int) -> list[str]:
            anchor = search.questions.anchors[number]
            live = index.live().name
            vector = index.get(live, [anchor])[anchor].vector
            return [hit.company.id for hit in index.similar(live, vector, k=K, exclude=[anchor]).hits]

        line = {**timed(ask, search), "candidates": search.settings.num_candidates}
        return line | {f"per_second_{n}": per_second(ask, search, clients=n) for n in CLIENTS}


def filtered(search: Search) -> list[Figures]:
    """Return figures of filtered searches: by the graph, and exact if at most MAX_CANDIDATES companies pass."""
    lines = []
    for share, attribute in SHARES.items():
        passing = len(search.questions.corpus.passing(share))
        of_share = replace(search, share=share)
        filters = (FieldFilter(field=f"attributes.{attribute}", any_of=("true",)),)
        ways = [("graph", {"exact_limit": 1, "num_candidates": candidates}) for candidates in FILTERED_CANDIDATES]
        if passing <= MAX_CANDIDATES:
            ways.append(("exact", {"exact_limit": passing}))
        for way, changes in ways:
            changed = of_share.with_settings(**changes)
            line = {"share": share, "passing": passing, "way": way}
            if way == "graph":
                line["candidates"] = changed.settings.num_candidates
            with asking(changed, filters=filters) as ask:
                lines.append({**line, **timed(ask, changed)})
    return lines


@contextmanager
def asking(search: Search, *, filters: Sequence[FieldFilter] = ()) -> Iterator[Ask]:
    """Yield a function that runs the question with a given number and returns the ids of its hits."""
    questions = search.questions
    with closing(ElasticIndex(search.settings)) as index:

        def ask(number: int) -> list[str]:
            anchor = questions.anchors[number]
            answer = index.similar(
                search.generation,
                questions.vectors[number],
                k=K,
                filters=filters,
                exclude=[anchor] if anchor else [],
            )
            return [hit.company.id for hit in answer.hits]

        yield ask


def timed(ask: Ask, search: Search) -> Figures:
    """Return the milliseconds of one client that asks every question ROUNDS times after a warm-up, and recall at K."""
    numbers = range(len(search.questions))
    found = [ask(number) for number in numbers]
    times = []
    for number in [*numbers] * ROUNDS:
        started = perf_counter()
        ask(number)
        times.append(1000 * (perf_counter() - started))
    return {
        "recall": recall(found, search.questions.exact(search.share)),
        "p50": float(np.percentile(times, 50)),
        "p99": float(np.percentile(times, 99)),
        "load": load_average(),
    }


def mean_took(search: Search) -> float:
    """Return the mean milliseconds that the server reports for the vector search."""
    settings = search.settings
    took = []
    with open_cluster(settings) as cluster:
        index = index_of(cluster, search.generation)
        for vector in search.questions.vectors:
            body = queries.nearest(
                vector_text(vector, packed=cluster.packs_vectors),
                size=K + 1,
                candidates=settings.num_candidates,
                oversample=settings.oversample_of(settings.vectors, K + 1),
            )
            took.append(cluster.search(index, body)["took"])
    return float(np.mean(took))


def per_second(ask: Ask, search: Search, *, clients: int) -> float:
    """Return the questions per second of `clients` threads; each asks again as soon as it has an answer."""
    end = perf_counter() + search.client_seconds

    def run(first: int) -> None:
        for number in itertools.count(first, clients):
            if perf_counter() > end:
                return
            ask(number % len(search.questions))
            answered[first] += 1

    answered = [0] * clients
    started = perf_counter()
    threads = [threading.Thread(target=run, args=(first,)) for first in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(answered) / (perf_counter() - started)
