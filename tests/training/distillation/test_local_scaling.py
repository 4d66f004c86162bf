"""Hubness against a plain double loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.distillation import targets as module
from training.distillation.targets import hubness

pytestmark = pytest.mark.training


def unit_rows(count: int, *, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    rows = np.random.default_rng(seed).normal(size=(count, 5)).astype(np.float32)
    unit: np.ndarray[tuple[int, int], np.dtype[np.float32]] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


@settings(deadline=None, max_examples=40)
@given(count=st.integers(2, 60), seed=st.integers(0, 9), rows=st.integers(1, 70))
def test_hubness_is_the_centred_mean_cosine_to_the_nearest_others(count: int, seed: int, rows: int) -> None:
    vectors = unit_rows(count, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "NEAREST", 4)
        patch.setattr(module, "_ROWS", rows)  # however it is cut
        found = hubness(vectors, seed=seed)
    means = []
    for one in range(count):
        others = sorted((float(vectors[one] @ vectors[other]) for other in range(count) if other != one), reverse=True)
        means.append(np.mean(others[:4]))
    np.testing.assert_allclose(found, np.array(means) - np.mean(means), atol=1e-5)


def test_reference_texts_are_a_sample_of_a_large_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tight cluster in a loose corpus has a high hubness, whether its own texts were drawn or not."""
    monkeypatch.setattr(module, "REFERENCE_TEXTS", 100)
    monkeypatch.setattr(module, "NEAREST", 5)
    loose = unit_rows(300, seed=1)
    tight = np.float32(0.1) * unit_rows(100, seed=2) + np.array([1, 0, 0, 0, 0], dtype=np.float32)
    vectors = np.concatenate([loose, tight / np.linalg.norm(tight, axis=1, keepdims=True)])
    found = hubness(vectors, seed=0)
    assert found[300:].min() > np.quantile(found[:300], 0.9)
    np.testing.assert_array_equal(found, hubness(vectors, seed=0))
    assert abs(found.mean()) < 1e-6
