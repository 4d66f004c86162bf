"""Bootstrap confidence intervals of a mean over anchors."""

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
INTERVAL = (2.5, 97.5)
BLOCK_RESAMPLES = 1_000


def resampled_means(values: NDArray[np.float64], *, seed: int, resamples: int = RESAMPLES) -> NDArray[np.float64]:
    """Return means `[resamples]`, each of n random draws with replacement from the `values` `[n]`, n >= 1."""
    random = np.random.default_rng(seed)
    means = np.empty(resamples)
    # In blocks: all draws at the same time would need 16 x resamples x n bytes.
    for start in range(0, resamples, BLOCK_RESAMPLES):
        block = means[start : start + BLOCK_RESAMPLES]
        block[:] = values[random.integers(len(values), size=(len(block), len(values)))].mean(axis=1)
    return means


def bootstrap_interval(values: NDArray[np.float64], *, seed: int, resamples: int = RESAMPLES) -> tuple[float, float]:
    """Return the 2.5th and 97.5th percentile of `resampled_means`."""
    lower, upper = np.percentile(resampled_means(values, seed=seed, resamples=resamples), INTERVAL)
    return float(lower), float(upper)
