"""Gains of unlabelled pairs by a value that both companies share."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from similarity.errors import InvalidInput
from training.data.pairs import Pairs
from training.distillation.weak_labels import read_values
from training.papers.weak_labels import with_shared_values


@pytest.fixture
def pairs() -> Pairs:
    """Company a with b, c, d and e; only the pair with b is labelled."""
    known = np.array([[True], [False], [False], [False]])
    return Pairs(
        texts=tuple("abcde"),
        ids=tuple("abcde"),
        left=np.zeros(4, dtype=np.int64),
        right=np.arange(1, 5, dtype=np.int64),
        classes=("competitor",),
        targets=np.ones((4, 1), dtype=np.float32),
        known=known,
        gains=np.where(known[:, 0], 3, np.nan).astype(np.float32),
        directed=False,
    )


def test_a_shared_value_gives_a_gain_and_another_value_none(pairs: Pairs) -> None:
    found = with_shared_values(pairs, {"a": "ships", "b": "tools", "c": "ships", "d": "tools"})
    # b is labelled, c shares the value, d has another, e has none.
    np.testing.assert_array_equal(found.gains, [3, 1, 0, np.nan])
    np.testing.assert_array_equal(found.known, pairs.known)


def test_values_are_read_where_they_are(tmp_path: Path) -> None:
    rows = [{"id": "a", "industry": "Ships"}, {"id": "b", "industry": ""}, {"id": "c"}]
    path = tmp_path / "companies.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    assert read_values(path, "industry") == {"a": "Ships"}
    with pytest.raises(InvalidInput, match=r"no company in .* has a field 'sector'"):
        read_values(path, "sector")
