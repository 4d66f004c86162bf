"""Measures the time to find the phrases that explain ten hits, and whether their weights are right.

    python -m benchmarks.reasons --index FILE

Uses random companies of an index made with the shipped bundle. Measures the time of `Explainer.phrases` for a company
and its ten nearest, with an empty and with a full cache, on one thread and on all. For the first phrase of each
nearest hit, compares its weight with the drop of the cosine when the phrase is deleted and the description encoded
again.
"""

import argparse
import os
import random
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from similarity.bundle import ModelBundle, seed_folder
from similarity.company import Company, EmbeddedCompany
from similarity.encoder import TextEncoder, available_threads
from similarity.index.sqlite import SqliteIndex
from similarity.search.explanations.explainer import Explainer
from similarity.search.explanations.explanation import ExplainingPhrase, Side
from similarity.text import embedding_text

HITS = 10
Asked = tuple[Company, list[Company]]


def questions(index: SqliteIndex, count: int) -> list[Asked]:
    """Return `count` random companies, each with its HITS nearest."""
    live = index.live().name
    ids = [document.id for document in next(index.versions(live, batch_size=100_000))]
    chosen = random.Random(5).sample(ids, min(2 * count, len(ids)))
    documents = [each for each in index.get(live, chosen).values() if isinstance(each, EmbeddedCompany)][:count]
    return [
        (each.company, [hit.company for hit in index.similar(live, each.vector, k=HITS, exclude=(each.id,)).hits])
        for each in documents
    ]


def seconds(explainer: Explainer, asked: Asked) -> float:
    """Return the seconds that one explanation takes."""
    began = time.perf_counter()
    explainer.phrases([asked[0]], asked[1])
    return time.perf_counter() - began


def print_costs(asked: list[Asked], bundle: ModelBundle) -> None:
    """Print the median times with an empty and with a full cache; every company has a new cache."""
    for threads in sorted({1, available_threads()}):
        encoder = TextEncoder(bundle, threads=threads)
        cold, warm = [], []
        for each in asked:
            explainer = Explainer(encoder)
            cold.append(seconds(explainer, each))
            warm.append(seconds(explainer, each))
        print(
            f"{threads} threads: nothing remembered {1000 * median(cold):,.0f} ms, "
            f"all remembered {1000 * median(warm):.1f} ms",
            flush=True,
        )


def without(company: Company, phrase: ExplainingPhrase) -> Company:
    """Return the company with the phrase deleted from its description."""
    text = company.description
    return replace(company, description=text[: phrase.start] + " " + text[phrase.end :])


def deviation(encoder: TextEncoder, anchor: Company, hit: Company, phrase: ExplainingPhrase) -> float:
    """Return the absolute difference between the phrase's weight and the drop of the cosine without the phrase."""
    cut, other = (anchor, hit) if phrase.of is Side.ANCHOR else (hit, anchor)
    texts = [embedding_text(each, encoder.text_settings) for each in (cut, without(cut, phrase), other)]
    whole, left, opposite = encoder.encode(texts)
    return abs(float(whole @ opposite - left @ opposite) - phrase.weight)


def main() -> None:
    """Read the options and print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--index", type=Path, required=True, help="index file")
    parser.add_argument("--companies", type=int, default=20, help="random companies of it (%(default)s)")
    given = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d}, cpus {os.cpu_count()}, load {os.getloadavg()[0]:.1f}")
    bundle = ModelBundle.load(seed_folder())
    with closing(SqliteIndex(given.index)) as index:
        asked = questions(index, given.companies)
        print(f"{len(asked)} companies of {index.stats(index.live().name).companies:,}, {HITS} hits each")
    print_costs(asked, bundle)
    encoder = TextEncoder(bundle)
    explainer = Explainer(encoder)
    shown = [(anchor, hits[0], explainer.phrases([anchor], hits[:1])[0]) for anchor, hits in asked]
    found = [deviation(encoder, anchor, hit, phrases[0]) for anchor, hit, phrases in shown if phrases]
    print(f"{len(found)} shown phrases deleted by hand: weights differ by at most {max(found):.1e}")


if __name__ == "__main__":
    main()
