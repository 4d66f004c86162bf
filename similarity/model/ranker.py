"""The weights of the second stage of a search, which orders the candidates that the index returns.

Two readings of one question: *business* (what the companies do) and *comparable* (whom an analyst would put beside
the company: also of similar size, and in the same country). The score of each is a weighted sum of features, so that
each weight can be read. In *comparable*, facts count less for a company with few near neighbours.
`similarity.search.reranking.pair_features` computes the features, `python -m training.rank` fits the weights.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from similarity.model.calibration import Calibration

ENGLISH = ("en",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparableWeights:
    """Weights of the reading *comparable*. With [x] for the feature x of a pair:

        score = business * logit of *business* + density * facts
        facts = size_gap * [size_gap] + size_unknown * [size_unknown] + same_country * [same_country]

    `density` is 0 to 1 (`similarity.search.reranking.scores`). If it is 1, P(competitor) is
    sigmoid(slope * score + intercept); with a lower density, it is nearer to the probability of *business*.
    `slope` and `intercept` are fitted on the same judgements as *business*, the other weights on lists of peers.

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
    `languages`: ISO 639 codes of the languages that the encoder reads; for other texts no probability is given.

    Raises:
        ValueError: a weight has the wrong sign, so that a better match would be ranked lower; or `languages` is empty
            or has an entry that is no ISO 639 code.
    """

    encoder_id: str
    cosine: float
    shared_words: float = 0.0
    same_industry: float = 0.0
    sparsity: float = 0.0
    intercept: float
    comparable: ComparableWeights | None = None
    languages: tuple[str, ...] = ENGLISH

    def __post_init__(self) -> None:
        if not self.languages or any(re.fullmatch("[a-z]{2,3}", each) is None for each in self.languages):
            raise ValueError("ranker.languages is not a list of ISO 639 codes such as en")
        rising = {"cosine": self.cosine, "shared_words": self.shared_words, "same_industry": self.same_industry}
        if self.comparable:
            comparable = asdict(self.comparable)
            rising |= {f"comparable.{name}": comparable[name] for name in ("same_country", "slope")}
            rising |= {f"-comparable.{name}": -comparable[name] for name in ("size_gap", "size_unknown")}
        wrong = next((name for name, weight in rising.items() if not weight >= 0), None)
        if wrong:
            raise ValueError(f"ranker.{wrong.removeprefix('-')} has the wrong sign: a better match would rank lower")


def ranker_of(calibration: Calibration, encoder_id: str) -> Ranker | None:
    """Return the ranker that knows only the cosine; None if higher cosines have lower probabilities."""
    if calibration.slope < 0:
        return None
    return Ranker(encoder_id=encoder_id, cosine=calibration.slope, intercept=calibration.intercept)


def ranker_to_json(ranker: Ranker | None) -> dict[str, Any] | None:
    """Return the JSON object of a ranker.

    `languages` is left out if it is only English, because earlier releases refuse an object with that member.
    """
    if ranker is None:
        return None
    values = asdict(ranker)
    languages = values.pop("languages")
    return values if languages == ENGLISH else {**values, "languages": list(languages)}


def ranker_from_json(content: object) -> Ranker | None:
    """Return the ranker of a JSON object, as `ranker_to_json` makes it, or None if `content` is None (null in JSON).

    Raises:
        ValueError: a member is missing, unknown or of the wrong type, or `Ranker` refuses its value.
    """
    if content is None:
        return None
    found = _members("ranker", content, Ranker, {"languages": ENGLISH})
    comparable, languages = found.pop("comparable"), found.pop("languages")
    if not isinstance(languages, list | tuple) or not all(isinstance(each, str) for each in languages):
        raise ValueError("ranker.languages is not a list of texts")
    if not isinstance(found["encoder_id"], str):
        raise ValueError("ranker.encoder_id is not a text")
    weights = {name: _number(f"ranker.{name}", value) for name, value in found.items() if name != "encoder_id"}
    comparable_weights = None
    if comparable is not None:
        named = _members("ranker.comparable", comparable, ComparableWeights, {})
        comparable_weights = ComparableWeights(
            **{name: _number(f"ranker.comparable.{name}", value) for name, value in named.items()}
        )
    return Ranker(encoder_id=found["encoder_id"], comparable=comparable_weights, languages=tuple(languages), **weights)


def _members(name: str, content: object, kind: type, optional: Mapping[str, Any]) -> dict[str, Any]:
    wanted = {each.name for each in fields(kind)}
    if not isinstance(content, Mapping) or {*content, *optional} != wanted:
        raise ValueError(f"{name} is not an object of {', '.join(sorted(wanted))}")
    return {**optional, **content}


def is_finite(value: float) -> bool:
    """Return whether a number is finite and, if it is a whole number, one that a float can hold."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_finite(value):
        raise ValueError(f"{name} is {value!r:.40}, not a finite number")
    return float(value)
