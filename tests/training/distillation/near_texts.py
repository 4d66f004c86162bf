"""Where texts may be: rows of vectors, and of words."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array


def unit_rows(count: int, *, seed: int = 0) -> Any:
    rows = np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def sparse(rows: Any) -> Any:
    return csr_array(np.asarray(rows, dtype=np.float32))
