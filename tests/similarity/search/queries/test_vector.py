import numpy as np
import pytest

from similarity.company import Vector
from similarity.errors import InvalidInput
from similarity.search.queries.vector import NEGATIVE_WEIGHT, query_vector
from tests.factories import unit_vector


def axis(place: int) -> Vector:
    vector: Vector = np.eye(8, dtype=np.float32)[place]
    return vector


def test_one_anchor_is_its_own_query() -> None:
    assert query_vector([unit_vector(1)]) is not None
    np.testing.assert_array_equal(query_vector([unit_vector(1)]), unit_vector(1))


def test_several_anchors_give_the_direction_between_them() -> None:
    np.testing.assert_allclose(query_vector([axis(0), axis(1)]), (axis(0) + axis(1)) / np.sqrt(2), atol=1e-6)


def test_weights_pull_the_query() -> None:
    query = query_vector([axis(0), axis(1)], weights=[3, 1])
    assert query[0] == pytest.approx(3 * query[1], rel=1e-5)


def test_a_negative_pushes_the_query_away() -> None:
    query = query_vector([axis(0)], negatives=[axis(1), axis(1)])
    assert query[1] == pytest.approx(-NEGATIVE_WEIGHT * query[0], rel=1e-5)


def test_a_query_is_a_unit_vector_of_float32() -> None:
    query = query_vector([unit_vector(1), unit_vector(2)], weights=[0.1, 9], negatives=[unit_vector(3)])
    assert query.dtype == np.float32
    assert np.linalg.norm(query) == pytest.approx(1, abs=1e-6)


def test_anchors_that_cancel_out_are_refused() -> None:
    with pytest.raises(InvalidInput, match="cancel out"):
        query_vector([axis(0), -axis(0)])


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, float("nan")]])
def test_weights_must_fit_the_anchors(weights: list[float]) -> None:
    with pytest.raises(InvalidInput, match="weight above 0"):
        query_vector([axis(0), axis(1)], weights=weights)


def test_no_anchor_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        query_vector([])
