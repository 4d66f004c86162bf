"""The probability that a hit is a competitor."""

import math

from similarity.index.protocol import Calibration


def probability_of(cosine: float, calibration: Calibration | None) -> float | None:
    """P(competitor) = sigmoid(slope * cosine + intercept), to four decimals; None without a calibration.

    >>> probability_of(0.5, Calibration(slope=4.0, intercept=-2.0))
    0.5
    """
    if calibration is None:
        return None
    logit = calibration.slope * cosine + calibration.intercept
    # tanh saturates where exp would overflow.
    return round(0.5 * (1 + math.tanh(logit / 2)), 4)
