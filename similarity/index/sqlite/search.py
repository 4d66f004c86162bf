"""Exact search in the embedded index: the matrices in memory, kept level with the file, and filters.

The caller holds one read transaction around a search, so the matrix, the filters and the companies
that the answer names all come from the same state of the file.
"""

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from similarity.company import Vector
from similarity.index import rules
from similarity.index.sqlite import generations
from similarity.index.sqlite.checksums import VECTOR_COLUMNS, checked_vector
from similarity.index.sqlite.files import DamagedRow
from similarity.index.sqlite.filters import Conditions, KeyRange
from similarity.index.sqlite.generations import StoredGeneration
from similarity.index.sqlite.matrix import Neighbour, Rows, VectorMatrix
from similarity.index.sqlite.reading import require_companies

MATRICES_KEPT = 2  # the live generation's and one that is compared with it
FILTERS_KEPT = 32


class ExactSearch:
    """The searches of one index, safe for several threads: one scans while the others wait."""

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
        """The k documents (`depth`, if that is more) of highest cosine in the generation `name`, best first.

        `connection` is in a transaction that has read nothing yet: the file must not be older than
        the matrix, and another thread may have brought that up to date a moment ago.

        Raises:
            UnknownGeneration: there is no such generation.
            DamagedRow: a vector is not what was written, or a company cannot be found any more.
            InvalidInput: k is below 1, or the vector is not a unit vector of the generation's dimension.
        """
        with self._lock:
            generation = generations.named(connection, name)
            rules.check_query(vector, k=k, dimension=generation.record.dimension)
            matrix = self._matrix(generation)
            matrix.refresh(connection, generation)
            return matrix.nearest(connection, vector, k=max(k, depth), conditions=conditions, exclude=exclude)

    def require_unknown(self, generation: StoredGeneration, ids: Collection[str]) -> None:
        """Raises DamagedRow for an id that the file does not find, though the matrix read it from there.

        The caller has looked for `ids` in the transaction that read `generation`. A matrix that is not loaded yet, or
        not at a state of the file that lets it tell, says nothing.
        """
        if not ids:
            return
        with self._lock:
            matrix = self._matrices.get(generation.number)
            hidden = matrix.known(generation, ids) if matrix else None
        if hidden:
            raise DamagedRow(f"company {hidden!r} is in the file, but an index of the file does not name it")

    def clear(self) -> None:
        """Frees the memory."""
        with self._lock:
            self._matrices.clear()

    def _matrix(self, generation: StoredGeneration) -> "_LevelMatrix":
        matrix = self._matrices.get(generation.number)
        if matrix is None:
            matrix = self._matrices[generation.number] = _LevelMatrix(generation)
        self._matrices.move_to_end(generation.number)
        while len(self._matrices) > MATRICES_KEPT:
            self._matrices.popitem(last=False)
        return matrix


class _LevelMatrix:
    """A generation's matrix and how far into its sequence of writes it has read."""

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
        require_companies(generation, len(self._matrix))
        self._filtered.clear()
        self._sequence = generation.sequence

    def known(self, generation: StoredGeneration, ids: Collection[str]) -> str | None:
        """One of `ids` that the file must hold in the state `generation`, a tombstone perhaps."""
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
        rows = self._rows(connection, conditions) if conditions else None
        return self._matrix.nearest(vector, k=k, rows=rows, exclude=exclude)

    def _load(self, connection: sqlite3.Connection, generation: StoredGeneration) -> None:
        # Afresh: a tombstone that this matrix had not read was purged, so changes alone are not enough.
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

    def _rows(self, connection: sqlite3.Connection, conditions: Conditions) -> Rows:
        rows = self._filtered.get(conditions)
        if rows is None:
            rows = self._filtered[conditions] = self._matching_rows(connection, conditions)
        self._filtered.move_to_end(conditions)
        while len(self._filtered) > FILTERS_KEPT:
            self._filtered.popitem(last=False)
        return rows

    def _matching_rows(self, connection: sqlite3.Connection, conditions: Conditions) -> Rows:
        kept: NDArray[np.bool_] = np.ones(len(self._matrix), dtype=np.bool_)
        for condition in conditions:
            if condition.any_of:
                kept &= self._matrix.mask(self._documents(connection, condition.field, condition.any_of))
            if condition.none_of:
                kept &= ~self._matrix.mask(self._documents(connection, condition.field, condition.none_of))
            if condition.range:
                kept &= self._matrix.mask(self._documents_in(connection, condition.range))
        return np.flatnonzero(kept)

    def _documents(self, connection: sqlite3.Connection, field: str, values: tuple[str, ...]) -> Rows:
        documents = [
            document
            for value in values
            for (document,) in connection.execute(
                "SELECT document FROM lookups WHERE generation = ? AND field = ? AND value = ?",
                (self._number, field, value),
            )
        ]
        return np.array(documents, dtype=np.int64)

    def _documents_in(self, connection: sqlite3.Connection, keys: KeyRange) -> Rows:
        found = connection.execute(
            "SELECT document FROM lookups WHERE generation = ? AND field = ? AND value BETWEEN ? AND ?",
            (self._number, *keys),
        )
        return np.array([document for (document,) in found], dtype=np.int64)
