"""Maps a cosine to the probability that a hit is a competitor."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """P(competitor) of a cosine: sigmoid(slope * cosine + intercept) (Platt scaling)."""

    slope: float
    intercept: float


def probability_of(cosine: float, calibration: Calibration | None) -> float | None:
    """Return P(competitor) to four decimals; None without a calibration.

    >>> probability_of(0.5, Calibration(slope=4.0, intercept=-2.0))
    0.5
    """
    if calibration is None:
        return None
    logit = calibration.slope * cosine + calibration.intercept
    # tanh saturates where exp would overflow.
    return round(0.5 * (1 + math.tanh(logit / 2)), 4)
