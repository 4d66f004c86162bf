"""Projection: the same vectors always give the same map, and few or equal ones a sensible one."""

import numpy as np
import pytest
from numpy.typing import NDArray

from similarity.search.projection import project


def cloud(count: int, *, dimension: int = 16, seed: int = 1) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).normal(size=(count, dimension))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


def distances(points: NDArray[np.floating]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.linalg.norm(points[:, None] - points[None], axis=-1)
    return found


def test_points_in_a_plane_keep_their_distances_up_to_one_scale() -> None:
    corners = np.array([[0, 0], [4, 0], [4, 1], [0, 1]], dtype=np.float32)
    vectors = np.zeros((4, 8), dtype=np.float32)
    vectors[:, [2, 5]] = corners
    projection = project(vectors)
    assert projection.explained == pytest.approx(1.0)
    assert distances(projection.points) == pytest.approx(distances(corners) / 2, abs=1e-6)


def test_the_first_axis_is_where_they_differ_most() -> None:
    vectors = np.zeros((4, 8), dtype=np.float32)
    vectors[:, 3] = [0, 1, 2, 9]
    vectors[:, 6] = [0, 1, 0, 1]
    projection = project(vectors)
    spread = projection.points.std(axis=0)
    assert spread[0] > spread[1] > 0
    assert projection.points[:, 0].max() == 1.0


def test_all_points_are_within_one_and_one_touches_it() -> None:
    assert np.abs(project(cloud(50)).points).max() == 1.0


def test_the_explained_share_is_that_of_the_two_axes() -> None:
    vectors = np.zeros((6, 8), dtype=np.float32)
    for axis, length in enumerate((3, 2, 1)):
        vectors[2 * axis : 2 * axis + 2, axis] = (length, -length)
    assert project(vectors).explained == pytest.approx((9 + 4) / (9 + 4 + 1))


def test_the_order_of_the_vectors_does_not_move_the_map() -> None:
    vectors = cloud(20)
    turned = project(vectors[::-1].copy())
    assert turned.points[::-1] == pytest.approx(project(vectors).points, abs=1e-6)


def test_a_mirror_image_of_the_vectors_gives_no_mirrored_map() -> None:
    vectors = cloud(20)
    for axis in range(2):
        farthest = project(vectors).points[:, axis]
        assert farthest[np.abs(farthest).argmax()] > 0


def test_two_vectors_lie_on_one_axis_opposite_each_other() -> None:
    projection = project(cloud(2))
    assert projection.points == pytest.approx(np.array([[1.0, 0.0], [-1.0, 0.0]]), abs=1e-6)
    assert projection.explained == pytest.approx(1.0)


@pytest.mark.parametrize("vectors", [cloud(1), cloud(1).repeat(7, axis=0), np.empty((0, 16), dtype=np.float32)])
def test_one_vector_or_none_or_always_the_same_lies_at_the_origin(vectors: NDArray[np.float32]) -> None:
    projection = project(vectors)
    assert projection.points.shape == (len(vectors), 2)
    assert not projection.points.any()
    assert projection.explained == 1.0


def test_vectors_of_one_number_have_a_map_too() -> None:
    projection = project(np.array([[1.0], [2.0], [4.0]], dtype=np.float32))
    assert projection.points[:, 1].tolist() == [0.0, 0.0, 0.0]
    assert projection.points[2, 0] == 1.0


def test_the_vectors_given_are_left_as_they_were() -> None:
    vectors = cloud(5)
    before = vectors.copy()
    project(vectors)
    assert (vectors == before).all()


@pytest.mark.parametrize("count", [9, 60, 251])
def test_the_axes_are_the_principal_components_and_lapack_gets_no_large_matrix(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(2)
    vectors = (cloud(count, dimension=64) + random.normal(size=(count, 3)) @ cloud(3, dimension=64)).astype(np.float32)
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    left, spreads, _ = np.linalg.svd(centred, full_matrices=False)
    expected = left[:, :2] * spreads[:2]

    def refused(matrix: object, **_: object) -> None:
        pytest.fail("its threads take seconds on a busy machine")

    monkeypatch.setattr(np.linalg, "svd", refused)
    projection = project(vectors)
    assert np.abs(projection.points) == pytest.approx(np.abs(expected) / np.abs(expected).max(), abs=1e-5)
    assert projection.explained == pytest.approx(float((spreads[:2] ** 2).sum() / (spreads**2).sum()))
