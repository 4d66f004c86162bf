"""Exact nearest neighbours in memory: all vectors of a generation in one array."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from similarity.company import Vector

Rows: TypeAlias = NDArray[np.int64]

# Sums of a few hundred products in float32 differ from the exact ones by less than this. Rows whose score is this close
# to the k-th best are scored again in float64.
ROUNDING = 1e-5
# Rows that are copied at a time: the copy fits into the cache of the processor, which is six times faster.
BLOCK_ROWS = 512
# If a filter keeps less than this share of the rows, only these are scored.
GATHER_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A company near a vector: its id, the number of its row in the table `documents`, and its exact cosine."""

    id: str
    document_number: int
    score: float


def exact_cosines(vectors: Vector, query: Vector) -> NDArray[np.float64]:
    """Return the cosines of unit vectors `[n, dimension]` to the unit vector `query`, float64 `[n]`."""
    # Not a matrix product: BLAS adds in an order that depends on the position of a row, so equal vectors could get
    # different scores.
    cosines: NDArray[np.float64] = np.clip((vectors * query.astype(np.float64)).sum(axis=1), -1.0, 1.0)
    return cosines


class VectorMatrix:
    """Unit vectors by company id, in one array, float32 `[n, dimension]`.

    Threads may search it at the same time, but not while it is changed.

    The row of a company without a vector, whose stored vector is zeros, is NaN; it is never a neighbour.
    Removing a row moves the last row to its place, so row numbers are only valid until the next change.
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
        """Add or replace the vector of a company."""
        row = self._row_of.get(company_id)
        if row is None:
            row = len(self._ids)
            if row == len(self._vectors):
                self._grow()
            self._ids.append(company_id)
            self._row_of[company_id] = row
        self._vectors[row] = vector if vector.any() else np.nan
        self._documents[row] = document

    def remove(self, company_id: str) -> None:
        """Remove a company if it is present."""
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
        """Return for each row whether it is one of these documents, `[n]`."""
        return np.isin(self._documents[: len(self)], documents)

    def nearest(
        self, vector: Vector, *, k: int, rows: Rows | None = None, exclude: Iterable[str] = ()
    ) -> list[Neighbour]:
        """Return the k companies with the highest cosine to the unit `vector`, best first, ties by id.

        `rows`: only these rows are searched. `exclude`: ids that are left out.
        """
        scores = self._scores(vector, rows, exclude)
        best = _highest(scores, k)
        candidates = best if rows is None else rows[best]
        exact = self._exact_scores(vector, candidates)
        ids = [self._ids[row] for row in candidates]
        places = sorted(range(len(ids)), key=lambda place: (-exact[place], ids[place]))[:k]
        return [Neighbour(ids[place], int(self._documents[candidates[place]]), float(exact[place])) for place in places]

    def count_above(
        self, vector: Vector, score: float, *, rows: Rows | None = None, exclude: Iterable[str] = ()
    ) -> int:
        """Return how many companies have an exact cosine above `score`; `rows` and `exclude` as in `nearest`."""
        scores = self._scores(vector, rows, exclude)
        close = np.flatnonzero(np.abs(scores - score) <= ROUNDING)
        exact = self._exact_scores(vector, close if rows is None else rows[close])
        return int((scores > score + ROUNDING).sum() + (exact > score).sum())

    def _scores(self, vector: Vector, rows: Rows | None, exclude: Iterable[str]) -> Vector:
        """Return the scores, rounded to float32, of `rows` or of all rows; -inf if excluded or without a vector."""
        scores = self._all_scores(vector, rows)
        scores[np.isnan(scores)] = -np.inf
        excluded = [self._row_of[company_id] for company_id in exclude if company_id in self._row_of]
        if excluded:
            scores[excluded if rows is None else np.isin(rows, excluded)] = -np.inf
        return scores

    def _all_scores(self, vector: Vector, rows: Rows | None) -> Vector:
        if rows is not None and len(rows) < GATHER_SHARE * len(self):
            gathered = np.empty(len(rows), dtype=np.float32)
            for block in _blocks(len(rows)):
                gathered[block] = np.vecdot(self._vectors[rows[block]], vector)
            return gathered
        # Not `@`, for which BLAS starts a thread for each processor: on a busy machine of two cores they took 4 ms for
        # 1,279 rows, where one thread takes 0.03 ms. A service has other requests for its other processors.
        scores: Vector = np.vecdot(self._vectors[: len(self)], vector)
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
    """Return the positions of the k highest scores, and of scores that may be lower only because of rounding."""
    if k < len(scores):
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        return np.flatnonzero((scores >= threshold - ROUNDING) & np.isfinite(scores))
    return np.flatnonzero(np.isfinite(scores))
