"""Exact and hybrid search in the embedded index, with the vectors of generations in memory.

The caller opens one read transaction for a search, so vectors, filters and the companies of the hits come from the same
state of the file.
"""

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from similarity.company import Vector
from similarity.index import rules
from similarity.index.fusion import DEPTH, fuse
from similarity.index.sqlite import generations, reading, words
from similarity.index.sqlite.checksums import VECTOR_COLUMNS, checked_vector
from similarity.index.sqlite.files import DamagedRow
from similarity.index.sqlite.filters import ANY_OF, BETWEEN, Conditions
from similarity.index.sqlite.generations import StoredGeneration
from similarity.index.sqlite.matrix import Neighbour, Rows, VectorMatrix, exact_cosines

MATRICES_KEPT = 2  # of the live generation, and of one that is compared with it
FILTERS_KEPT = 32

Key = TypeVar("Key")
Value = TypeVar("Value")


class ExactSearch:
    """The searches in one index. Thread-safe; one thread searches at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._matrices: OrderedDict[int, _LevelMatrix] = OrderedDict()

    def nearest(
        self,
        connection: sqlite3.Connection,
        name: str,
        vector: Vector,
        *,
        k: int,
        conditions: Conditions,
        exclude: Collection[str],
        depth: int = 0,
    ) -> list[Neighbour]:
        """Return the k documents (or `depth`, if larger) with the highest cosine in the generation `name`, best first.

        `connection` must be in a transaction that has not read anything yet. Otherwise its state of the file could be
        older than the matrix, which another thread may just have updated.

        Raises:
            UnknownGeneration: there is no such generation.
            DamagedRow: a vector differs from what was written, or a company is missing.
            InvalidInput: k is below 1, or the vector is not a unit vector of the generation's dimension.
        """
        with self._lock:
            generation = generations.named(connection, name)
            rules.check_query(vector, k=k, dimension=generation.record.dimension)
            matrix = self._matrix(generation)
            matrix.refresh(connection, generation)
            return matrix.nearest(connection, vector, k=max(k, depth), conditions=conditions, exclude=exclude)

    def require_unknown(self, generation: StoredGeneration, ids: Collection[str]) -> None:
        """Raise DamagedRow if one of `ids`, which the caller did not find in the file, is in the matrix.

        The caller must have searched `ids` in the transaction that read `generation`. If the matrix is not loaded, or
        its state cannot be compared with that of the file, this does nothing.
        """
        if not ids:
            return
        with self._lock:
            matrix = self._matrices.get(generation.number)
            hidden = matrix.known(generation, ids) if matrix else None
        if hidden:
            raise DamagedRow(f"company {hidden!r} is in the file, but an index of the file does not name it")

    def clear(self) -> None:
        """Release the memory."""
        with self._lock:
            self._matrices.clear()

    def _matrix(self, generation: StoredGeneration) -> "_LevelMatrix":
        return _cached(self._matrices, generation.number, lambda: _LevelMatrix(generation), most=MATRICES_KEPT)


class _LevelMatrix:
    """The matrix of a generation, and the number of the last write that it contains."""

    def __init__(self, generation: StoredGeneration) -> None:
        self._number = generation.number
        self._matrix = VectorMatrix(generation.record.dimension)
        self._sequence = -1
        self._filtered: OrderedDict[Conditions, Rows] = OrderedDict()

    def refresh(self, connection: sqlite3.Connection, generation: StoredGeneration) -> None:
        if self._sequence < generation.purged:
            self._load(connection, generation)
        elif self._sequence < generation.sequence:
            self._follow(connection)
        else:
            return
        reading.require_companies(generation, len(self._matrix))
        self._filtered.clear()
        self._sequence = generation.sequence

    def known(self, generation: StoredGeneration, ids: Collection[str]) -> str | None:
        """Return one of `ids` that must be in the file in the state `generation`, perhaps as a tombstone; or None."""
        if not generation.purged <= self._sequence <= generation.sequence:
            return None
        return next((company_id for company_id in ids if company_id in self._matrix), None)

    def nearest(
        self,
        connection: sqlite3.Connection,
        vector: Vector,
        *,
        k: int,
        conditions: Conditions,
        exclude: Collection[str],
    ) -> list[Neighbour]:
        rows = None
        if conditions:
            rows = _cached(
                self._filtered, conditions, lambda: self._matching_rows(connection, conditions), most=FILTERS_KEPT
            )
        return self._matrix.nearest(vector, k=k, rows=rows, exclude=exclude)

    def _load(self, connection: sqlite3.Connection, generation: StoredGeneration) -> None:
        # From the beginning, because a tombstone that this matrix has not read may have been purged.
        count = connection.execute("SELECT count(*) FROM documents WHERE generation = ?", (self._number,)).fetchone()[0]
        self._matrix = VectorMatrix(generation.record.dimension, capacity=count)
        self._sequence = -1
        self._follow(connection)

    def _follow(self, connection: sqlite3.Connection) -> None:
        changes = connection.execute(
            f"SELECT {VECTOR_COLUMNS} FROM documents LEFT JOIN vectors USING (document) "
            "WHERE generation = ? AND sequence > ?",
            (self._number, self._sequence),
        )
        for row in changes:
            document, _, company_id, _, checksum = row
            if checksum is None:
                self._matrix.remove(company_id)
            else:
                self._matrix.put(company_id, document, checked_vector(*row))

    def _matching_rows(self, connection: sqlite3.Connection, conditions: Conditions) -> Rows:
        kept: NDArray[np.bool_] = np.ones(len(self._matrix), dtype=np.bool_)
        for condition in conditions:
            if condition.any_of:
                kept &= self._has(connection, condition.field, ANY_OF, json.dumps(condition.any_of))
            if condition.none_of:
                kept &= ~self._has(connection, condition.field, ANY_OF, json.dumps(condition.none_of))
            if condition.range:
                field, *limits = condition.range
                kept &= self._has(connection, field, BETWEEN, *limits)
        return np.flatnonzero(kept)

    def _has(self, connection: sqlite3.Connection, field: str, compared: str, *values: str) -> NDArray[np.bool_]:
        """Return for each row whether `lookups` contains such a value of the field."""
        found = connection.execute(
            f"SELECT document FROM lookups WHERE generation = ? AND field = ? AND value {compared}",
            (self._number, field, *values),
        )
        return self._matrix.mask(np.array([document for (document,) in found], dtype=np.int64))


def _cached(cache: OrderedDict[Key, Value], key: Key, make: Callable[[], Value], *, most: int) -> Value:
    """Return the value of `key`, made if it is missing; only the `most` recently used values are kept."""
    if key not in cache:
        cache[key] = make()
    cache.move_to_end(key)
    while len(cache) > most:
        cache.popitem(last=False)
    return cache[key]


def hybrid_nearest(
    search: ExactSearch,
    connection: sqlite3.Connection,
    name: str,
    vector: Vector,
    looked_for: Sequence[str],
    *,
    k: int,
    conditions: Conditions,
    exclude: Collection[str],
) -> list[Neighbour]:
    """Return the k best documents by the fused ranking of vectors and words, with their exact cosines.

    `looked_for`: the words from `fusion.query_words`, at least one. Raises the same errors as `ExactSearch.nearest`.
    """
    by_vector = search.nearest(connection, name, vector, k=k, depth=DEPTH, conditions=conditions, exclude=exclude)
    by_words = words.with_any_word(
        connection,
        generations.named(connection, name),
        looked_for,
        conditions=conditions,
        exclude=exclude,
        limit=max(k, DEPTH),
    )
    places = {neighbour.id: neighbour for neighbour in by_vector}
    best = fuse([list(places), list(by_words)])[:k]
    only_by_words = {company_id: by_words[company_id] for company_id in best if company_id not in places}
    if only_by_words:
        vectors = np.stack(reading.vectors(connection, list(only_by_words.values())))
        for (company_id, document), score in zip(only_by_words.items(), exact_cosines(vectors, vector), strict=True):
            places[company_id] = Neighbour(company_id, document, float(score))
    return [places[company_id] for company_id in best]
