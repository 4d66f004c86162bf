"""The weights of the second stage of a search, which orders the candidates that the index returns.

Two readings of one question: *business* (what the companies do) and *comparable* (whom an analyst would put beside
the company: also of similar size, and in the same country). Both are linear, so that each weight can be
read. `similarity.search.pair_features` computes the features, `python -m training.rank` fits the weights.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from similarity.model.calibration import Calibration


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparableWeights:
    """Weights of the reading *comparable*: score = business * logit of the business reading + density * the facts.

    The probability is sigmoid(slope * score + intercept) where facts count in full, fitted on the same judgements as
    the business reading, so that both mean the same: P(competitor). `density`: see `similarity.search.reranking`.

    Raises:
        ValueError: `business` is not above 0.
    """

    business: float
    size_gap: float
    size_unknown: float
    same_country: float
    slope: float
    intercept: float

    def __post_init__(self) -> None:
        if not self.business > 0:
            raise ValueError("ranker.comparable.business must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranker:
    """Weights of the reading *business*: P(competitor) = sigmoid(the weighted sum of the features + `intercept`).

    `encoder_id`: the encoder whose cosines it was fitted on. `comparable`: None if no such weights were fitted.

    Raises:
        ValueError: a weight has the wrong sign, so that a better match would be ranked lower.
    """

    encoder_id: str
    cosine: float
    shared_words: float = 0.0
    same_industry: float = 0.0
    sparsity: float = 0.0
    intercept: float
    comparable: ComparableWeights | None = None

    def __post_init__(self) -> None:
        rising = {"cosine": self.cosine, "shared_words": self.shared_words, "same_industry": self.same_industry}
        if self.comparable:
            other = asdict(self.comparable)
            rising |= {f"comparable.{name}": other[name] for name in ("same_country",)}
            rising |= {f"-comparable.{name}": -other[name] for name in ("size_gap", "size_unknown")}
            rising["comparable.slope"] = other["slope"]
        wrong = next((name for name, weight in rising.items() if not weight >= 0), None)
        if wrong:
            raise ValueError(f"ranker.{wrong.removeprefix('-')} has the wrong sign: a better match would rank lower")


def ranker_of(calibration: Calibration, encoder_id: str) -> Ranker | None:
    """Return the ranker that knows only the cosine; None if higher cosines have lower probabilities."""
    if calibration.slope < 0:
        return None
    return Ranker(encoder_id=encoder_id, cosine=calibration.slope, intercept=calibration.intercept)


def ranker_from_json(content: object) -> Ranker | None:
    """Return the ranker of a JSON object, as `dataclasses.asdict` makes it, or None of null.

    Raises:
        ValueError: a member is missing, unknown or of the wrong type, or a weight has the wrong sign.
    """
    if content is None:
        return None
    found = _members("ranker", content, Ranker)
    comparable = found.pop("comparable")
    if not isinstance(found["encoder_id"], str):
        raise ValueError("ranker.encoder_id is not a text")
    weights = {name: _number(f"ranker.{name}", value) for name, value in found.items() if name != "encoder_id"}
    others = None
    if comparable is not None:
        named = _members("ranker.comparable", comparable, ComparableWeights)
        others = ComparableWeights(
            **{name: _number(f"ranker.comparable.{name}", value) for name, value in named.items()}
        )
    return Ranker(encoder_id=found["encoder_id"], comparable=others, **weights)


def _members(name: str, content: object, kind: type) -> dict[str, Any]:
    wanted = {each.name for each in fields(kind)}
    if not isinstance(content, Mapping) or set(content) != wanted:
        raise ValueError(f"{name} is not an object of {', '.join(sorted(wanted))}")
    return dict(content)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} is {value!r:.40}, not a finite number")
    return float(value)
