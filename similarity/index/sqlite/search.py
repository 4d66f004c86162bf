"""Exact search in the SQLite index, with the vectors of generations in memory.

The caller opens one read transaction per search. Vectors, filters and the companies of the hits therefore come from the
same state of the file.
"""

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from similarity.company import Vector
from similarity.index import validation
from similarity.index.filters import LANGUAGE
from similarity.index.sqlite import generations, reading
from similarity.index.sqlite.checksums import VECTOR_COLUMNS, checked_vector
from similarity.index.sqlite.files import DamagedRow
from similarity.index.sqlite.filters import ANY_OF, BETWEEN, Conditions
from similarity.index.sqlite.generations import StoredGeneration
from similarity.index.sqlite.matrix import Neighbour, Rows, VectorMatrix

MAX_MATRICES = 2  # one for the live generation, and one for a generation that is compared with it
MAX_FILTERS = 32
# As one text: 46,000 numbers take 4 ms, most of it outside the interpreter's lock, and as rows 14 ms.
NUMBERS = "coalesce(group_concat(document), '')"

Key = TypeVar("Key")
Value = TypeVar("Value")


class ExactSearch:
    """The vector searches in one index, with cached matrices.

    Thread-safe: searches run at the same time. One thread at a time brings a matrix to the state of the file, and waits
    until no search reads the matrices.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._matrices: OrderedDict[int, _GenerationMatrix] = OrderedDict()
        self._searches = _RunningSearches()

    def nearest(
        self,
        connection: sqlite3.Connection,
        name: str,
        vector: Vector,
        *,
        k: int,
        conditions: Conditions,
        exclude: Collection[str],
    ) -> list[Neighbour]:
        """Return the k companies with the highest cosine in the generation `name`, best first.

        `connection` must be in a transaction that has not read anything yet. Otherwise the transaction could see an
        older state of the file than the cached matrix, because another thread may have just updated the matrix.

        Raises:
            UnknownGeneration: there is no such generation.
            DamagedRow: a vector does not match its checksum, or the generation lacks a company.
            InvalidInput: k is below 1, or the vector is not a unit vector of the generation's dimension.
        """
        with self._current_matrix(connection, name, vector, conditions, k=k) as (matrix, rows):
            return matrix.nearest(vector, k=k, rows=rows, exclude=exclude)

    def count_above(
        self,
        connection: sqlite3.Connection,
        name: str,
        vector: Vector,
        score: float,
        *,
        conditions: Conditions,
        exclude: Collection[str],
    ) -> int:
        """Return how many companies have a cosine above `score`; see `nearest`."""
        with self._current_matrix(connection, name, vector, conditions) as (matrix, rows):
            return matrix.count_above(vector, score, rows=rows, exclude=exclude)

    def require_unknown(self, generation: StoredGeneration, ids: Collection[str]) -> None:
        """Raise DamagedRow if the matrix contains one of `ids`, which the caller did not find in the file.

        The caller must have looked up `ids` in the transaction that read `generation`. If the matrix is not loaded, or
        if its state and the state of the file cannot be compared, nothing is checked.
        """
        if not ids:
            return
        with self._lock:
            matrix = self._matrices.get(generation.number)
            hidden_id = matrix.first_stored(generation, ids) if matrix else None
        if hidden_id:
            raise DamagedRow(f"company {hidden_id!r} is in the file, but an SQL index of the file lacks it")

    def clear(self) -> None:
        """Drop all cached matrices."""
        with self._lock:
            self._matrices.clear()

    @contextmanager
    def _current_matrix(
        self, connection: sqlite3.Connection, name: str, vector: Vector, conditions: Conditions, *, k: int = 1
    ) -> Iterator[tuple[VectorMatrix, Rows | None]]:
        """Yield the matrix of the generation `name` at the state of the file, and its rows that pass the conditions.

        The rows are None if all rows pass. In the body the matrix does not change. Checks `vector` and `k`.
        """
        with self._lock:
            generation = generations.named(connection, name)
            validation.check_query(vector, k=k, dimension=generation.record.dimension)
            cached = _cached(
                self._matrices, generation.number, lambda: _GenerationMatrix(generation), max_size=MAX_MATRICES
            )
            if not cached.is_current(generation):
                self._searches.wait_for_end()
                cached.refresh(connection, generation)
            # Still with the lock, so that no other thread changes the matrix before this search is counted.
            self._searches.begin()
        try:
            # Without the lock: comparing many filters with all companies takes a tenth of a second.
            yield cached.matrix, cached.passing(connection, conditions)
        finally:
            self._searches.end()


class _RunningSearches:
    """The number of searches that read matrices now."""

    def __init__(self) -> None:
        self._count = 0
        self._ended = threading.Condition()

    def begin(self) -> None:
        with self._ended:
            self._count += 1

    def end(self) -> None:
        with self._ended:
            self._count -= 1
            self._ended.notify_all()

    def wait_for_end(self) -> None:
        """Wait until no search runs."""
        with self._ended:
            self._ended.wait_for(lambda: not self._count)


class _GenerationMatrix:
    """The vectors of a generation up to one write, and the rows that pass recent filters.

    `_sequence`: the number of that write; -1 before the first load.
    """

    def __init__(self, generation: StoredGeneration) -> None:
        self._number = generation.number
        self.matrix = VectorMatrix(generation.record.dimension)
        self._sequence = -1
        self._filtered: OrderedDict[Conditions, Rows] = OrderedDict()
        # Not the lock of the searches: a thread that has it waits for searches that call `passing`.
        self._filtered_lock = threading.Lock()

    def is_current(self, generation: StoredGeneration) -> bool:
        """Return whether the matrix has the state of the file."""
        return self._sequence >= generation.sequence

    def refresh(self, connection: sqlite3.Connection, generation: StoredGeneration) -> None:
        """Bring the matrix to the state of the file. Raises DamagedRow as `ExactSearch.nearest`."""
        if self._sequence < generation.purged:
            self._load(connection, generation)
        else:
            self._apply_changes(connection)
        reading.require_companies(generation, len(self.matrix))
        self._filtered.clear()
        self._sequence = generation.sequence

    def first_stored(self, generation: StoredGeneration, ids: Collection[str]) -> str | None:
        """Return the first of `ids` that must be in the file at the state `generation`; None if there is none.

        In the file, the document with this id may be a tombstone.
        """
        if not generation.purged <= self._sequence <= generation.sequence:
            return None
        return next((company_id for company_id in ids if company_id in self.matrix), None)

    def passing(self, connection: sqlite3.Connection, conditions: Conditions) -> Rows | None:
        """Return the rows that pass the conditions; None for all rows. Threads may call it at the same time."""
        if not conditions:
            return None
        with self._filtered_lock:
            rows = self._filtered.get(conditions)
        if rows is None:
            rows = self._matching_rows(connection, conditions)
        with self._filtered_lock:
            return _cached(self._filtered, conditions, lambda: rows, max_size=MAX_FILTERS)

    def _load(self, connection: sqlite3.Connection, generation: StoredGeneration) -> None:
        # All rows are read, because a tombstone that this matrix has not applied may have been purged.
        count = connection.execute("SELECT count(*) FROM documents WHERE generation = ?", (self._number,)).fetchone()[0]
        self.matrix = VectorMatrix(generation.record.dimension, capacity=count)
        self._sequence = -1
        self._apply_changes(connection)

    def _apply_changes(self, connection: sqlite3.Connection) -> None:
        changes = connection.execute(
            f"SELECT {VECTOR_COLUMNS} FROM documents LEFT JOIN vectors USING (document) "
            "WHERE generation = ? AND sequence > ?",
            (self._number, self._sequence),
        )
        for row in changes:
            document_number, _, company_id, _, checksum = row
            if checksum is None:  # a tombstone
                self.matrix.remove(company_id)
            else:
                self.matrix.put(company_id, document_number, checked_vector(*row))

    def _matching_rows(self, connection: sqlite3.Connection, conditions: Conditions) -> Rows:
        passes: NDArray[np.bool_] = np.ones(len(self.matrix), dtype=np.bool_)
        for condition in conditions:
            if condition.any_of:
                passes &= self._has_value(connection, condition.field, ANY_OF, json.dumps(condition.any_of))
            if condition.none_of:
                passes &= ~self._has_value(connection, condition.field, ANY_OF, json.dumps(condition.none_of))
            if condition.range:
                field, *limits = condition.range
                passes &= self._has_value(connection, field, BETWEEN, *limits)
        return np.flatnonzero(passes)

    def _has_value(
        self, connection: sqlite3.Connection, field: str, comparison: str, *values: str
    ) -> NDArray[np.bool_]:
        """Return for each row of the matrix whether a value of the field fits the SQL `comparison` with `values`."""
        if field == LANGUAGE:
            query = f"SELECT {NUMBERS} FROM documents WHERE generation = ? AND NOT deleted AND language {comparison}"
            found = connection.execute(query, (self._number, *values))
        else:
            query = f"SELECT {NUMBERS} FROM lookups WHERE generation = ? AND field = ? AND value {comparison}"
            found = connection.execute(query, (self._number, field, *values))
        [numbers] = found.fetchone()
        return self.matrix.mask(np.fromstring(numbers, dtype=np.int64, sep=","))


def _cached(cache: OrderedDict[Key, Value], key: Key, make: Callable[[], Value], *, max_size: int) -> Value:
    """Return the value of `key`. If it is missing, make it, and drop the least recently used value above `max_size`."""
    if key not in cache:
        cache[key] = make()
    cache.move_to_end(key)
    while len(cache) > max_size:
        cache.popitem(last=False)
    return cache[key]
