from itertools import pairwise

import numpy as np
import pytest

from similarity.index.sqlite.matrix import VectorMatrix
from tests.factories import unit_vector


def filled(count: int, *, dimension: int = 8) -> VectorMatrix:
    """Companies c0, c1, ... with document numbers 100, 101, ..."""
    matrix = VectorMatrix(dimension)
    for number in range(count):
        matrix.put(f"c{number}", 100 + number, unit_vector(number, dimension))
    return matrix


def ranked(vectors: dict[int, int], query: int, k: int) -> list[int]:
    """The documents of highest cosine, by brute force; `vectors` holds the seed of each document's vector."""
    scores = {
        document: float(unit_vector(seed).astype(np.float64) @ unit_vector(query)) for document, seed in vectors.items()
    }
    return sorted(scores, key=lambda document: -scores[document])[:k]


def test_rows_stay_right_while_companies_come_change_and_go() -> None:
    random = np.random.default_rng(0)
    matrix = VectorMatrix(8)
    held: dict[int, int] = {}
    for step in range(1, 400):
        number = int(random.integers(40))
        if random.random() < 0.4:
            matrix.remove(f"c{number}")
            held.pop(number, None)
        else:
            matrix.put(f"c{number}", number, unit_vector(step))
            held[number] = step
        assert len(matrix) == len(held)
        found = matrix.nearest(unit_vector(0), k=5)
        assert [neighbour.document_number for neighbour in found] == ranked(held, 0, 5)


class NoProduct(np.ndarray):
    """Vectors that no matrix product may be made of."""

    def __matmul__(self, _: object) -> np.ndarray:
        raise AssertionError("a product starts a thread for each processor")


def test_a_search_starts_no_threads() -> None:
    matrix = filled(50)
    matrix._vectors = matrix._vectors.view(NoProduct)
    for rows in (None, np.arange(10)):
        assert [each.id for each in matrix.nearest(unit_vector(3), k=1, rows=rows)] == ["c3"]


def test_growing_keeps_what_was_there() -> None:
    matrix = filled(2500)
    assert [neighbour.document_number for neighbour in matrix.nearest(unit_vector(3), k=1)] == [103]
    assert [neighbour.document_number for neighbour in matrix.nearest(unit_vector(2499), k=1)] == [2599]


def test_a_company_can_get_another_document_number() -> None:
    matrix = filled(3)
    matrix.put("c1", 7, unit_vector(1))
    assert matrix.nearest(unit_vector(1), k=1)[0].document_number == 7
    assert matrix.mask(np.array([7])).tolist() == [False, True, False]


def test_equal_vectors_tie_wherever_they_lie() -> None:
    matrix = VectorMatrix(384)
    vector, query = unit_vector(1, 384), unit_vector(2, 384)
    for number in range(1003):
        matrix.put(f"c{number:04}", number, vector)
    for limit in (None, np.arange(1, 1003), np.arange(1000, 1003)):
        found = matrix.nearest(query, k=1003, rows=limit)
        assert len({neighbour.score for neighbour in found}) == 1
        assert [neighbour.document_number for neighbour in found] == (
            list(range(1003)) if limit is None else limit.tolist()
        )


def test_scores_are_the_float64_cosines() -> None:
    matrix = filled(300, dimension=384)
    query = unit_vector(999, 384)
    for neighbour in matrix.nearest(query, k=300):
        exact = float(unit_vector(neighbour.document_number - 100, 384).astype(np.float64) @ query.astype(np.float64))
        assert neighbour.score == pytest.approx(exact, abs=1e-12)


def test_scores_never_leave_their_range() -> None:
    matrix = VectorMatrix(8)
    long = unit_vector(1) * np.float32(1.0009)
    matrix.put("a", 1, long)
    assert [matrix.nearest(vector, k=1)[0].score for vector in (long, -long)] == [1.0, -1.0]


def test_more_places_than_one_block_are_scored() -> None:
    matrix = filled(9000)
    found = matrix.nearest(unit_vector(1), k=9000)
    assert len({neighbour.document_number for neighbour in found}) == 9000
    assert all(first.score >= second.score for first, second in pairwise(found))


@pytest.mark.parametrize("rows", [[], [4], [4, 5], list(range(10))])
def test_only_the_given_rows_are_searched(rows: list[int]) -> None:
    found = filled(10).nearest(unit_vector(4), k=3, rows=np.array(rows, dtype=np.int64), exclude=["c5", "none"])
    allowed = {row: row for row in rows if row != 5}
    assert [neighbour.document_number - 100 for neighbour in found] == ranked(allowed, 4, 3)
