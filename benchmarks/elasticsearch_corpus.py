"""The corpora of `benchmarks.elasticsearch`: real or synthetic companies; and the exact answers.

Figures of the synthetic corpus are always labelled synthetic. Each of its vectors is a random point between a real
company and one of that company's ten nearest, plus Gaussian noise whose length is about `NOISE` times the distance
between the two, scaled to unit norm. Without noise, all vectors would lie on few lines, and a graph would find them too
easily. The noise is chosen so that the cosines to the 1st, 10th and 100th neighbour equal the cosines expected in a
real corpus of that size, which are extrapolated from samples (both are printed). The synthetic texts are a few words,
so vectors take most of the disk. Questions on this corpus are real companies moved in the same way.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from similarity.company import Company, EmbeddedCompany, Vector
from similarity.index.protocol import Generation
from similarity.index.sqlite import SqliteIndex

K = 10
# The attribute of the companies that a filter keeps, by their share of the corpus in per cent.
SHARES: Mapping[int, str] = {1: "one_in_100", 10: "one_in_10", 50: "one_in_2"}
NOISE = 0.6
NEIGHBOURS = 10
BLOCK = 50_000
RANKS = (1, 10, 100)
SYNTHETIC_WORDS = 12

Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Companies by row. `vectors` is float32 `[companies, dimension]` of unit rows, in memory or mapped."""

    label: str
    vectors: Vector
    company: Callable[[int], Company]
    encoder_id: str
    bundle_id: str
    embedded_at: datetime = datetime(2025, 1, 1, tzinfo=UTC)

    def __len__(self) -> int:
        return len(self.vectors)

    def generation(self, name: str) -> Generation:
        """Return the generation that holds this corpus."""
        return Generation(
            name=name,
            encoder_id=self.encoder_id,
            bundle_id=self.bundle_id,
            dimension=self.vectors.shape[1],
            created_at=datetime(2025, 1, 1, tzinfo=UTC),
        )

    def documents(self, rows: range) -> list[EmbeddedCompany]:
        """Return the documents of some rows, with an attribute for each share that a row belongs to."""
        return [
            EmbeddedCompany(
                company=shared(self.company(row), row),
                version=2,
                text_hash=f"{row:032x}",
                encoder_id=self.encoder_id,
                vector=np.asarray(self.vectors[row]),
                embedded_at=self.embedded_at,
                language="en",
            )
            for row in rows
        ]

    def passing(self, share: int) -> Rows:
        """Return the rows that the filter of this share keeps."""
        return np.arange(0, len(self), 100 // share)


@dataclass(frozen=True, kw_only=True)
class Questions:
    """Unit vectors `[questions, dimension]` to search for. A company is not a hit of its own question.

    `rows`: the row in `corpus` of each question's company; -1 if the question is no company.
    """

    corpus: Corpus
    vectors: Vector
    rows: Rows
    _exact: dict[int, list[frozenset[str]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.vectors)

    @cached_property
    def anchors(self) -> list[str]:
        """Return the id of each question's company; "" if the question is no company."""
        return [self.corpus.company(int(row)).id if row >= 0 else "" for row in self.rows]

    def exact(self, share: int = 100) -> list[frozenset[str]]:
        """Return the ids of the K nearest of each question, by exact cosine, among `share` per cent of the corpus.

        Each share is computed once, because that takes minutes for millions of companies.
        """
        if share not in self._exact:
            kept = None if share == 100 else self.corpus.passing(share)
            nearest = nearest_rows(self.corpus.vectors, self.vectors, k=K, without=self.rows, kept=kept)
            self._exact[share] = [frozenset(self.corpus.company(int(row)).id for row in rows) for rows in nearest]
        return self._exact[share]


def read_corpus(index_file: Path, *, limit: int | None) -> Corpus:
    """Return the companies with vectors in the live generation of an embedded index: the first `limit` by id."""
    companies: list[Company] = []
    vectors: list[Vector] = []
    with closing(SqliteIndex(index_file)) as index:
        live = index.live()
        for batch in index.scan(live.name):
            found = [each for each in batch if isinstance(each, EmbeddedCompany) and each.has_vector]
            companies += [document.company for document in found]
            vectors += [document.vector for document in found]
            if limit and len(companies) >= limit:
                break
    return Corpus(
        label=f"real {len(companies[:limit]):,}",
        vectors=np.stack(vectors[:limit]),
        company=companies[:limit].__getitem__,
        encoder_id=live.encoder_id,
        bundle_id=live.bundle_id,
    )


def synthetic_corpus(real: Corpus, folder: Path, *, size: int) -> Corpus:
    """Return `size` synthetic companies. Their vectors are made once, in `folder`, and are the same in every run."""
    file = folder / f"synthetic-{size}.npy"
    if not file.exists():
        write_synthetic(real, file, neighbours=real_neighbours(real, folder), size=size)
    vocabulary = sorted({word for row in range(min(2000, len(real))) for word in real.company(row).description.split()})

    def company(row: int) -> Company:
        chosen = np.random.default_rng([2, row]).integers(len(vocabulary), size=SYNTHETIC_WORDS)
        text = " ".join(vocabulary[word] for word in chosen)
        return Company(id=f"s{row:08}", name=f"Synthetic {row}", description=text)

    return Corpus(
        label=f"synthetic {size:,}",
        vectors=np.load(file, mmap_mode="r"),
        company=company,
        encoder_id=real.encoder_id,
        bundle_id=real.bundle_id,
    )


def real_neighbours(real: Corpus, folder: Path) -> Rows:
    """Return the rows `[companies, NEIGHBOURS]` of the nearest companies of each real company, computed once."""
    file = folder / f"neighbours-{len(real)}.npy"
    if not file.exists():
        np.save(file, nearest_rows(real.vectors, real.vectors, k=NEIGHBOURS, without=np.arange(len(real))))
    rows: Rows = np.load(file)
    return rows


def write_synthetic(real: Corpus, file: Path, *, neighbours: Rows, size: int) -> None:
    """Write the vectors in blocks, float32 `[size, dimension]`; the file appears when it is complete."""
    unfinished = file.with_suffix(".unfinished")
    made = np.lib.format.open_memmap(unfinished, "w+", dtype=np.float32, shape=(size, real.vectors.shape[1]))
    for start in range(0, size, BLOCK):
        block = made[start : start + BLOCK]
        block[:] = between_neighbours(real.vectors, neighbours, len(block), np.random.default_rng([0, start]))
        print(f"  made {start + len(block):,} of {size:,} vectors", flush=True)
    made.flush()
    unfinished.rename(file)


def between_neighbours(vectors: Vector, neighbours: Rows, count: int, random: np.random.Generator) -> Vector:
    """Return new unit vectors `[count, dimension]`, made as the module says. `neighbours`: rows `[companies, n]`."""
    first = random.integers(len(vectors), size=count)
    second = neighbours[first, random.integers(neighbours.shape[1], size=count)]
    way = vectors[second] - vectors[first]
    noise = random.standard_normal(way.shape, dtype=np.float32) / np.float32(np.sqrt(way.shape[1]))
    noise *= NOISE * np.linalg.norm(way, axis=1, keepdims=True)
    made = vectors[first] + random.random((count, 1), dtype=np.float32) * way + noise
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


def company_questions(corpus: Corpus, count: int) -> Questions:
    """Return questions for the neighbours of `count` companies of the corpus, chosen at random."""
    rows = np.random.default_rng(1).choice(len(corpus), size=min(count, len(corpus)), replace=False)
    return Questions(corpus=corpus, vectors=np.array(corpus.vectors[rows]), rows=rows)


def held_out_questions(real: Corpus, corpus: Corpus, folder: Path, count: int) -> Questions:
    """Return questions with new vectors, made like the vectors of the synthetic corpus but not in it."""
    random = np.random.default_rng(3)
    vectors = between_neighbours(real.vectors, real_neighbours(real, folder), count, random)
    return Questions(corpus=corpus, vectors=vectors, rows=np.full(count, -1))


def neighbourhood(vectors: Vector, questions: Questions) -> list[float]:
    """Return, for each rank in `RANKS`, the median cosine of the questions to their neighbour of that rank."""
    nearest = nearest_rows(vectors, questions.vectors, k=max(RANKS), without=questions.rows)
    cosines = np.einsum("qd,qkd->qk", questions.vectors, vectors[nearest])
    return [float(np.median(cosines[:, rank - 1])) for rank in RANKS]


def extrapolated_neighbourhood(real: Corpus, questions: Questions, *, size: int) -> list[float]:
    """Return the `neighbourhood` that a real corpus of `size` would have: distances shrink by a power of the size.

    The power is estimated from a random eighth of the corpus and the whole corpus.
    """
    kept = np.sort(np.random.default_rng(5).choice(len(real), size=len(real) // 8, replace=False))
    own = {int(row): -1 for row in questions.rows} | {int(row): place for place, row in enumerate(kept)}
    fewer = Questions(corpus=real, vectors=questions.vectors, rows=np.array([own[int(row)] for row in questions.rows]))
    few = 1 - np.array(neighbourhood(real.vectors[kept], fewer))
    all_of_them = 1 - np.array(neighbourhood(real.vectors, questions))
    power = np.log(all_of_them / few) / np.log(len(real) / len(kept))
    cosines: list[float] = (1 - all_of_them * (size / len(real)) ** power).tolist()
    return cosines


def nearest_rows(vectors: Vector, questions: Vector, *, k: int, without: Rows, kept: Rows | None = None) -> Rows:
    """Return rows `[questions, k]` of the highest cosines, best first; never the question's own row (`without`).

    `kept`: the only rows that may be found, ascending.
    """
    best = np.full((len(questions), k), -np.inf, dtype=np.float32)
    rows = np.zeros((len(questions), k), dtype=np.int64)
    for start in range(0, len(vectors), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(vectors)))
        if kept is not None:
            block = kept[np.searchsorted(kept, block[0]) : np.searchsorted(kept, block[-1], side="right")]
        held = np.ascontiguousarray(vectors[block])
        for first in range(0, len(questions), 1000):
            part = slice(first, first + 1000)
            scores = questions[part] @ held.T
            scores[block[None, :] == without[part, None]] = -np.inf
            best[part], rows[part] = _best(best[part], rows[part], scores, block, k)
    return rows


def recall(found: Sequence[Sequence[str]], exact: Sequence[frozenset[str]]) -> float:
    """Return the share of the exact answers that were found."""
    return sum(len(truth & set(ids)) for ids, truth in zip(found, exact, strict=True)) / sum(map(len, exact))


def shared(company: Company, row: int) -> Company:
    """Return the company with an attribute for every share that it belongs to."""
    attributes = {name: True for share, name in SHARES.items() if row % (100 // share) == 0}
    return replace(company, attributes={**company.attributes, **attributes})


def _best(best: Vector, rows: Rows, scores: Vector, block: Rows, k: int) -> tuple[Vector, Rows]:
    """Return the k best per question, of earlier blocks and of a new block's scores."""
    kept = min(k, scores.shape[1])
    places = np.argpartition(-scores, kept - 1, axis=1)[:, :kept] if kept else np.zeros((len(scores), 0), np.int64)
    all_scores = np.concatenate([best, np.take_along_axis(scores, places, axis=1)], axis=1)
    all_rows = np.concatenate([rows, block[places]], axis=1)
    order = np.argsort(-all_scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(all_scores, order, axis=1), np.take_along_axis(all_rows, order, axis=1)
