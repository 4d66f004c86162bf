"""The exact scan of the embedded index: all vectors of a generation in one block of memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.company import Vector

Rows: TypeAlias = NDArray[np.int64]

# Float32 sums of a few hundred products differ by less than this from the exact ones; whatever scores
# this close to the k-th place is scored again in float64 before the places are given.
ROUNDING = 1e-5
# Rows gathered at a time: few enough that the copy stays in the processor's cache (six times faster).
BLOCK_ROWS = 512
# A filter that leaves less than this share of the rows is scored on them alone, not on everything.
GATHER_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One place of a search: the company, its document's number in the file, and its exact cosine."""

    id: str
    document: int
    score: float


def exact_cosines(vectors: Vector, query: Vector) -> NDArray[np.float64]:
    """The cosines of unit vectors `[n, dimension]` to the unit vector `query`, in float64 `[n]`."""
    # A sum per row, not a matrix product: BLAS adds in an order that depends on where a row lies, so
    # equal vectors would not always tie.
    cosines: NDArray[np.float64] = np.clip((vectors * query.astype(np.float64)).sum(axis=1), -1.0, 1.0)
    return cosines


class VectorMatrix:
    """Unit vectors by company id, float32 `[n, dimension]`, contiguous. Not safe for several threads.

    Removing moves the last row into the gap, so row numbers are good until the next change only.
    """

    def __init__(self, dimension: int, *, capacity: int = 0) -> None:
        self._vectors = np.empty((capacity, dimension), dtype=np.float32)
        self._documents = np.empty(capacity, dtype=np.int64)
        self._ids: list[str] = []
        self._row_of: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, company_id: str) -> bool:
        return company_id in self._row_of

    def put(self, company_id: str, document: int, vector: Vector) -> None:
        """Adds or replaces the vector of a company."""
        row = self._row_of.get(company_id)
        if row is None:
            row = len(self._ids)
            if row == len(self._vectors):
                self._grow()
            self._ids.append(company_id)
            self._row_of[company_id] = row
        self._vectors[row] = vector
        self._documents[row] = document

    def remove(self, company_id: str) -> None:
        """Forgets a company; one that is not here is no error."""
        row = self._row_of.pop(company_id, None)
        if row is None:
            return
        last = len(self._ids) - 1
        last_id = self._ids.pop()
        if row != last:
            self._vectors[row] = self._vectors[last]
            self._documents[row] = self._documents[last]
            self._ids[row] = last_id
            self._row_of[last_id] = row

    def mask(self, documents: Rows) -> NDArray[np.bool_]:
        """Which rows hold one of these documents, `[n]`."""
        return np.isin(self._documents[: len(self)], documents)

    def nearest(
        self, vector: Vector, *, k: int, rows: Rows | None = None, exclude: Iterable[str] = ()
    ) -> list[Neighbour]:
        """The k rows of highest cosine to the unit `vector`, best first, equal scores by id.

        `rows` limits the search to these rows; `exclude` are ids to leave out.
        """
        scores = self._scores(vector, rows)
        excluded = [self._row_of[company_id] for company_id in exclude if company_id in self._row_of]
        if excluded:
            scores[excluded if rows is None else np.isin(rows, excluded)] = -np.inf
        best = _highest(scores, k)
        candidates = best if rows is None else rows[best]
        exact = self._exact_scores(vector, candidates)
        ids = [self._ids[row] for row in candidates]
        places = sorted(range(len(ids)), key=lambda place: (-exact[place], ids[place]))[:k]
        return [Neighbour(ids[place], int(self._documents[candidates[place]]), float(exact[place])) for place in places]

    def _scores(self, vector: Vector, rows: Rows | None) -> Vector:
        if rows is not None and len(rows) < GATHER_SHARE * len(self):
            gathered = np.empty(len(rows), dtype=np.float32)
            for block in _blocks(len(rows)):
                gathered[block] = self._vectors[rows[block]] @ vector
            return gathered
        scores: Vector = self._vectors[: len(self)] @ vector
        return scores if rows is None else scores[rows]

    def _exact_scores(self, vector: Vector, rows: Rows) -> NDArray[np.float64]:
        scores = np.empty(len(rows))
        for block in _blocks(len(rows)):
            scores[block] = exact_cosines(self._vectors[rows[block]], vector)
        return scores

    def _grow(self) -> None:
        capacity = max(1024, 2 * len(self._vectors))
        vectors = np.empty((capacity, self._vectors.shape[1]), dtype=np.float32)
        documents = np.empty(capacity, dtype=np.int64)
        vectors[: len(self)] = self._vectors[: len(self)]
        documents[: len(self)] = self._documents[: len(self)]
        self._vectors, self._documents = vectors, documents


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK_ROWS) for start in range(0, count, BLOCK_ROWS))


def _highest(scores: Vector, k: int) -> Rows:
    """The positions of the k highest scores and of all that rounding might have kept out of them."""
    if k < len(scores):
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        return np.flatnonzero((scores >= threshold - ROUNDING) & np.isfinite(scores))
    return np.flatnonzero(np.isfinite(scores))
