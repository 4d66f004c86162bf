"""A question: which companies or descriptions the hits should be like, and which of them to show."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from similarity.errors import InvalidInput
from similarity.index.filters import FieldFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """What hits should be like (or, as a negative, unlike): a company, or a description in free text.

    `company` is an id, domain, name or alias. `weight` counts among several anchors; negatives weigh the same.

    Raises:
        InvalidInput: neither or both of company and text are given, the text is blank, or the weight is not above 0.
    """

    company: str | None = None
    text: str | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        if (self.company is None) == (self.text is None):
            raise InvalidInput("an anchor is either a company or a text; give one of the two")
        if not self.reference.strip():
            raise InvalidInput("the text is empty; describe what the company does")
        if not self.weight > 0:
            raise InvalidInput(f"the weight of {self.reference!r} is {self.weight:g}; give one above 0")

    @property
    def reference(self) -> str:
        """The company's name, or the text, as it was given."""
        return self.company if self.company is not None else self.text or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Asks for the `k` competitors nearest to `anchors` and far from `negatives`, under all `filters`.

    `exclude` are companies to leave out, by id, domain, name or alias. With `hybrid`, companies that use the
    words of the first anchor are ranked too, and the two rankings are fused. `min_probability` drops less
    likely hits. For the first `explain` hits the phrases that carry the match are looked for, which runs
    the encoder.

    Raises:
        InvalidInput: there is no anchor.
    """

    anchors: Sequence[Anchor]
    negatives: Sequence[Anchor] = ()
    filters: Sequence[FieldFilter] = ()
    exclude: Sequence[str] = ()
    hybrid: bool = False
    min_probability: float | None = None
    k: int = 10
    explain: int = 0

    def __post_init__(self) -> None:
        if not self.anchors:
            raise InvalidInput("name at least one company to be similar to")

    def digest(self) -> str:
        """32 hexadecimal digits, equal for questions with the same ranking: `k` and `explain` do not count."""
        ranking = {
            "anchors": [asdict(anchor) for anchor in self.anchors],
            "negatives": [asdict(anchor) for anchor in self.negatives],
            "filters": [asdict(each) for each in self.filters],
            "exclude": list(self.exclude),
            "hybrid": self.hybrid,
            "min_probability": self.min_probability,
        }
        return hashlib.sha256(json.dumps(ranking, sort_keys=True).encode()).hexdigest()[:32]
