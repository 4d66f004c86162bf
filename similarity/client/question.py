"""The query of the client: anchors, negatives, filters and options of one search."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

from similarity.client.problems import UnreadableAnswer
from similarity.errors import InvalidInput
from similarity.index.filters import FieldFilter

if TYPE_CHECKING:
    from similarity.client.ranking import Ranking

Rank: TypeAlias = Literal["business", "comparable", "cosine"]

# The options that are short for a filter on a field.
SHORT_FILTERS = {"country": "country", "industry": "industry", "tag": "tags"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A company (by id, domain, name or alias), or a description in free text, that hits should be similar to.

    `segment`: number of the only line of business of the company that counts (see `segments`). `weight`: relative to
    the other anchors, by default 1; negatives have none.

    Raises:
        InvalidInput: both or neither of company and text are given.
    """

    company: str | None = None
    text: str | None = None
    weight: float | None = None
    segment: int | None = None

    def __post_init__(self) -> None:
        if (self.company is None) == (self.text is None):
            raise InvalidInput("an anchor is either a company or a text: Anchor(company='nike') or Anchor(text='...')")


class QuestionOptions(TypedDict, total=False):
    """The options of a query; the service has defaults for all of them.

    negatives: companies to be far from. country, industry, tag: allowed values. filters: other fields and ranges.
    exclude: companies to omit (ids, domains, names). exclude_lists: names of shortlists to omit. rank: `business` (what
    they do), `comparable` (also size and country) or `cosine`. resolve: `exact` accepts no similar names.
    min_probability: 0 to 1. k: number of hits, 1 to 250. reasons: for how many of the first hits to compute the
    explaining phrases. fields: the fields of each hit's company to return. cursor: the `next_cursor` of the previous
    page.
    """

    negatives: str | Anchor | Sequence[str | Anchor]
    country: str | Sequence[str]
    industry: str | Sequence[str]
    tag: str | Sequence[str]
    filters: Sequence[FieldFilter]
    exclude: str | Sequence[str]
    exclude_lists: str | Sequence[str]
    rank: Rank
    resolve: Literal["exact"]
    min_probability: float
    k: int
    reasons: int
    fields: str | Sequence[str]
    cursor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query for competitors. `Question.about("nike", country="Germany", k=20)` is the short form.

    Raises:
        InvalidInput: it has no anchor.
    """

    anchors: tuple[Anchor, ...]
    negatives: tuple[Anchor, ...] = ()
    filters: tuple[FieldFilter, ...] = ()
    exclude: tuple[str, ...] = ()
    exclude_lists: tuple[str, ...] = ()
    rank: Rank | None = None
    resolve: Literal["exact"] | None = None
    min_probability: float | None = None
    k: int | None = None
    reasons: int | None = None
    fields: tuple[str, ...] = ()
    cursor: str | None = None

    def __post_init__(self) -> None:
        if not self.anchors:
            raise InvalidInput("the query has no anchor; give a company or a text, for example: similar('nike')")

    @classmethod
    def about(cls, *anchors: str | Anchor, **options: Unpack[QuestionOptions]) -> "Question":
        """Return the query for competitors of `anchors`, each a company's id, domain, name or alias, or an `Anchor`."""
        given: dict[str, Any] = dict(options)
        short = [
            FieldFilter(field=field, any_of=several(values))
            for option, field in SHORT_FILTERS.items()
            if (values := given.pop(option, ()))
        ]
        given["filters"] = (*short, *given.get("filters", ()))
        given["negatives"] = _anchors(several(given.get("negatives", ())))
        for option in ("exclude", "exclude_lists", "fields"):
            given[option] = several(given.get(option, ()))
        return cls(anchors=_anchors(anchors), **given)

    def after(self, ranking: "Ranking") -> "Question | None":
        """Return the query for the page after `ranking`; None if that was the last page.

        Raises:
            UnreadableAnswer: the cursor of the next page is that of this page.
        """
        if ranking.next_cursor is None:
            return None
        if ranking.next_cursor == self.cursor:
            raise UnreadableAnswer("the cursor of a page leads to itself")
        return replace(self, cursor=ranking.next_cursor)

    def body(self) -> dict[str, Any]:
        """Return the query as the members of a JSON object, without options that are not set."""
        return asdict(self, dict_factory=_set_members)


def _anchors(references: Sequence[str | Anchor]) -> tuple[Anchor, ...]:
    return tuple(each if isinstance(each, Anchor) else Anchor(company=each) for each in references)


AnyQuestion: TypeAlias = Question | Mapping[str, Any] | str
"""A query: as an object, as a saved list has it (`SavedList.question`), or as the name of one company."""


def as_question(question: AnyQuestion) -> Question:
    """Return a query as an object."""
    if isinstance(question, str):
        return Question.about(question)
    return Question(**question) if isinstance(question, Mapping) else question


def several(items: Any) -> tuple[Any, ...]:
    """Return a tuple of one or several items. A str is one item, although it is a sequence."""
    return (items,) if isinstance(items, str | Anchor) else tuple(items)


def _set_members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in members if value is not None and value != ()}
