"""Maps a cosine to the probability that a hit is a competitor."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """P(competitor) of a cosine: sigmoid(slope * cosine + intercept) (Platt scaling)."""

    slope: float
    intercept: float
