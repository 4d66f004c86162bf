"""Measures the cost of `similarity export` for more companies than are at hand.

python -m benchmarks.export --index FILE --sizes 46616 1000000

The companies of an index are repeated up to each size. The vectors of the copies have noise (their cosine to the
original is about 0.9). One part of about `--companies` companies is exported. Times are processor time of all threads,
so other work on the machine changes them little. Memory is the peak of the process; copies share the words of their
original, so it holds only the words of the companies at hand.
"""

import argparse
import os
import platform
import resource
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import numpy as np

from similarity.index.sqlite import SqliteIndex
from similarity.search import neighbours

NOISE = 0.5
"""Length of the noise beside a unit vector."""


def repeated(corpus: neighbours._Corpus, size: int) -> neighbours._Corpus:
    """Return the corpus, repeated up to `size` companies. Copies have no keys, so they are nobody's duplicates."""
    count = len(corpus.ids)
    rows = np.arange(size) % count
    vectors = corpus.vectors[rows]
    random = np.random.default_rng(0)
    for start in range(count, size, count):
        copies = vectors[start : start + count]
        copies += random.standard_normal(copies.shape, dtype=np.float32) * (NOISE / copies.shape[1] ** 0.5)
        copies /= np.linalg.norm(copies, axis=1, keepdims=True)
    return neighbours._Corpus(
        ids=[corpus.ids[row] if number < count else f"{number}" for number, row in enumerate(rows)],
        names=[corpus.names[row] for row in rows],
        keys=[corpus.keys[row] if number < count else () for number, row in enumerate(rows)],
        vectors=vectors,
        features=[corpus.features[row] for row in rows],
        readable=[corpus.readable[row] for row in rows],
    )


def main() -> None:
    """Reads the options and measures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--companies", type=int, default=512)
    given = parser.parse_args()
    print(f"cpus {os.cpu_count()}, python {platform.python_version()}, date {datetime.now(UTC):%Y-%m-%d}, ", end="")
    print(f"load {os.getloadavg()[0]:.1f}")
    with closing(SqliteIndex(given.index)) as index:
        live = index.live()
        began = time.process_time()
        corpus = neighbours._load(index, live)
        print(
            f"read {len(corpus.ids):,} companies: {1e6 * (time.process_time() - began) / len(corpus.ids):.0f} us each\n"
        )
        print("| companies | of the processor, each | of all | memory |\n| --- | --- | --- | --- |")
        for size in given.sizes:
            with patch.object(neighbours, "_load", return_value=repeated(corpus, size)):
                began = time.process_time()
                part = (1, max(1, size // given.companies))
                done = sum(1 for _ in neighbours.all_neighbours(index, live, k=10, part=part))
                each = (time.process_time() - began) / max(1, done)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(f"| {size:,} | {1e3 * each:.1f} ms | {each * size / 3600:.2f} h | {memory:.1f} GiB |", flush=True)


if __name__ == "__main__":
    main()
