"""The query of the library: anchors, negatives, filters and options of one search."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from similarity.errors import InvalidInput
from similarity.index.filters import FieldFilter
from similarity.search.reranking.rank import Rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A company, or a description in free text, that hits should be similar to (as a negative: not similar to).

    `company`: an id, domain, name or alias. `segment`: number of the only line of business that counts, of those that
    `Searcher.segments` returns; None for the whole company. `weight`: relative to the other anchors; negatives all
    weigh the same.

    Raises:
        InvalidInput: neither or both of company and text are given, one is blank, a text has a segment, or the weight
            is not above 0.
    """

    company: str | None = None
    text: str | None = None
    weight: float = 1.0
    segment: int | None = None

    def __post_init__(self) -> None:
        if self.segment is not None and self.company is None:
            raise InvalidInput("only a company has segments; give a company, or leave the segment out")
        if (self.company is None) == (self.text is None):
            raise InvalidInput("an anchor is either a company or a text; give one of the two")
        if not self.reference.strip():
            raise InvalidInput("the text is empty; describe what the company does")
        if not self.weight > 0:
            raise InvalidInput(f"the weight of {self.reference!r} is {self.weight:g}; it must be above 0")

    @property
    def reference(self) -> str:
        """The value of `company` or of `text`, unchanged."""
        return self.company if self.company is not None else self.text or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query for the `k` competitors nearest to `anchors` and far from `negatives` that pass all `filters`.

    `exclude`: companies to omit, by id, domain, name or alias. `exclude_lists`: ids of companies to omit, by the name
    of the saved list that holds them; ids that the generation does not hold are ignored. `exact`: names must be the
    company's, and similar names are only suggested (see `Resolver`). `by_id`: anchors and negatives are ids, not names.
    `rank`: what orders the hits.
    `min_probability`: drop hits below it. `explain`: for how many of the first hits to compute the phrases with the
    largest effect on the cosine, which runs the encoder.

        >>> Question(anchors=[Anchor(company="nike")], k=5, min_probability=0.5).k
        5

    Raises:
        InvalidInput: there is no anchor, or `min_probability` is given for a ranking without probabilities.
    """

    anchors: Sequence[Anchor]
    negatives: Sequence[Anchor] = ()
    filters: Sequence[FieldFilter] = ()
    exclude: Sequence[str] = ()
    exclude_lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rank: Rank = Rank.BUSINESS
    min_probability: float | None = None
    k: int = 10
    explain: int = 0
    exact: bool = False
    by_id: bool = False

    def __post_init__(self) -> None:
        if not self.anchors:
            raise InvalidInput("name at least one company to be similar to")
        if self.rank is Rank.COSINE and self.min_probability is not None and not self._has_one_anchor_only:
            raise InvalidInput(
                "rank=cosine has a probability only for one anchor without negatives, so min_probability cannot "
                "be applied; use rank=business or remove min_probability",
                about="min_probability",
            )

    @property
    def needs_encoder(self) -> bool:
        """Whether an anchor or a negative is free text or a segment of a company, whose vectors are not stored."""
        return any(each.text is not None or each.segment is not None for each in (*self.anchors, *self.negatives))

    @property
    def _has_one_anchor_only(self) -> bool:
        return len(self.anchors) == 1 and not self.negatives

    def digest(self) -> str:
        """Return 32 hexadecimal digits, equal for queries that differ only in `k`, `explain` or `by_id`.

        The companies in `exclude_lists` do not count either, so that one can be added to a list between two pages.
        """
        ranking = {
            "anchors": [asdict(anchor) for anchor in self.anchors],
            "negatives": [asdict(anchor) for anchor in self.negatives],
            "filters": [asdict(each) for each in self.filters],
            "exclude": list(self.exclude),
            "rank": self.rank,
            "min_probability": self.min_probability,
            "exact": self.exact,
            "exclude_lists": sorted(self.exclude_lists),
        }
        return hashlib.sha256(json.dumps(ranking, sort_keys=True).encode()).hexdigest()[:32]
