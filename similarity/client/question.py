"""A question for competitors: who to look for, and among whom."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

from similarity.errors import InvalidInput
from similarity.index.filters import FieldFilter

if TYPE_CHECKING:
    from similarity.client.ranking import Ranking

Mode: TypeAlias = Literal["vector", "hybrid"]

PAGES = "The answer page by page (`k` hits each), until there are no more. Options as in `similar`."
HITS = "Hit after hit, asking for the next page (`k` hits) when it is needed. Options as in `similar`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A company to look for (by id, domain, name or alias), or a description of one in free words.

    `weight` is how much it counts beside the others; negatives have none.

    Raises:
        InvalidInput: it is both, or neither.
    """

    company: str | None = None
    text: str | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        if (self.company is None) == (self.text is None):
            raise InvalidInput("an anchor is either a company or a text: Anchor(company='nike') or Anchor(text='...')")

    def body(self) -> dict[str, Any]:
        """The anchor as JSON."""
        named: dict[str, Any] = {"text": self.text} if self.company is None else {"company": self.company}
        return named if self.weight == 1 else {**named, "weight": self.weight}


class QuestionOptions(TypedDict, total=False):
    """What may be said besides the anchors. What is left out, the service decides.

    negatives: less like these companies. country, industry, tag: only these (any of several).
    filters: other fields and ranges. exclude: never these (ids, domains, names). mode: `hybrid` ranks by shared
    words too. min_probability: 0 to 1. k: hits at most, 1 to 250. reasons: for how many of the first
    hits the phrases that carry the match are looked for. fields: the members of each hit's company
    that are wanted. cursor: go on where a ranking ended.
    """

    negatives: str | Anchor | Sequence[str | Anchor]
    country: str | Sequence[str]
    industry: str | Sequence[str]
    tag: str | Sequence[str]
    filters: Sequence[FieldFilter]
    exclude: str | Sequence[str]
    mode: Mode
    min_probability: float
    k: int
    reasons: int
    fields: str | Sequence[str]
    cursor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question for competitors. `Question.about("nike", country="Germany", k=20)` is the short way.

    Raises:
        InvalidInput: it has no anchor.
    """

    anchors: tuple[Anchor, ...]
    negatives: tuple[Anchor, ...] = ()
    filters: tuple[FieldFilter, ...] = ()
    exclude: tuple[str, ...] = ()
    mode: Mode | None = None
    min_probability: float | None = None
    k: int | None = None
    reasons: int | None = None
    fields: tuple[str, ...] = ()
    cursor: str | None = None

    def __post_init__(self) -> None:
        if not self.anchors:
            raise InvalidInput("a question needs a company or a text to be about, for example: similar('nike')")

    @classmethod
    def about(cls, *anchors: str | Anchor, **options: Unpack[QuestionOptions]) -> "Question":
        """The question for competitors of `anchors`, each a company's id, domain, name or alias, or an `Anchor`."""
        shorthand = {"country": "country", "industry": "industry", "tag": "tags"}
        chosen = [
            FieldFilter(field=field, any_of=_several(values))
            for option, field in shorthand.items()
            if (values := options.get(option))
        ]
        return cls(
            anchors=_anchors(anchors),
            negatives=_anchors(_several(options.get("negatives", ()))),
            filters=(*chosen, *options.get("filters", ())),
            exclude=_several(options.get("exclude", ())),
            mode=options.get("mode"),
            min_probability=options.get("min_probability"),
            k=options.get("k"),
            reasons=options.get("reasons"),
            fields=_several(options.get("fields", ())),
            cursor=options.get("cursor"),
        )

    def after(self, ranking: "Ranking") -> "Question | None":
        """The question for the hits that follow `ranking`, its answer; None where that was the last page."""
        return None if ranking.next_cursor is None else replace(self, cursor=ranking.next_cursor)

    def body(self) -> dict[str, Any]:
        """The question as JSON, without what it does not say."""
        return _without_blanks(
            {
                "anchors": [anchor.body() for anchor in self.anchors],
                "negatives": [anchor.body() for anchor in self.negatives],
                "filters": [_filter_body(each) for each in self.filters],
                "exclude": list(self.exclude),
                "mode": self.mode,
                "min_probability": self.min_probability,
                "k": self.k,
                "reasons": self.reasons,
                "fields": list(self.fields),
                "cursor": self.cursor,
            }
        )


def _filter_body(chosen: FieldFilter) -> dict[str, Any]:
    return _without_blanks(
        {
            "field": chosen.field,
            "any_of": list(chosen.any_of),
            "none_of": list(chosen.none_of),
            "at_least": chosen.at_least,
            "at_most": chosen.at_most,
        }
    )


def _anchors(named: Sequence[str | Anchor]) -> tuple[Anchor, ...]:
    return tuple(each if isinstance(each, Anchor) else Anchor(company=each) for each in named)


def _several(items: Any) -> tuple[Any, ...]:
    """One or several as several: a text is a sequence of letters, which nobody means."""
    return (items,) if isinstance(items, str | Anchor) else tuple(items)


def _without_blanks(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None and value != []}
