"""The query behind `/similar`: as a JSON body, and as the parameters of a URL."""

from dataclasses import asdict, replace
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import ConfigDict, Field, StringConstraints, field_validator, model_validator
from pydantic_core import PydanticCustomError

from similarity.company import MAX_NAME_CHARACTERS
from similarity.errors import InvalidFilter
from similarity.feedback.protocol import MAX_LIST_NAME_CHARACTERS
from similarity.index.filters import FieldFilter
from similarity.search.explanations.segments import MOST_SEGMENTS
from similarity.search.queries import question as search
from similarity.search.reranking.rank import Rank

from ..wire.bodies import Closed, Listed, example
from ..wire.problem_documents import pattern_of
from ..wire.tables import Format
from .schemas import MAX_HITS, Text, Words
from .url_filters import CONDITION, FIELD, FIELD_NAMES, filters_of

MAX_ANCHORS = 10
MAX_FILTERS = 20
MAX_EXCLUDED = 10_000
MAX_EXCLUDED_IN_ADDRESS = 100
MAX_EXCLUDED_LISTS = 20
MAX_EXPLAINED = 50
DEFAULT_EXPLAINED = 3
MAX_QUESTIONS = 100
MAX_CURSOR_CHARACTERS = 1_000
MAX_CONDITION_CHARACTERS = MAX_NAME_CHARACTERS + 100

CURSOR_PATTERN = pattern_of(r"^[A-Za-z0-9_-]*$", "is not a cursor; send `next_cursor` of the page before unchanged")
RankName: TypeAlias = Literal["business", "comparable", "cosine"]
CompanyMember: TypeAlias = Literal[
    "id", "name", "description", "aliases", "domain", "country", "industry", "tags", "attributes"
]
MEMBERS: tuple[str, ...] = get_args(CompanyMember)
_MEMBER = f"({'|'.join(MEMBERS)})"
_MEMBERS = pattern_of(
    f"^({_MEMBER}(,{_MEMBER}){{0,{len(MEMBERS) - 1}}})?$",
    f"must be members of a company, separated by commas: {', '.join(MEMBERS)}",
)

Reference = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARACTERS)]
ListName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_LIST_NAME_CHARACTERS)]
Cursor = Annotated[str, StringConstraints(pattern=CURSOR_PATTERN, max_length=MAX_CURSOR_CHARACTERS)]
Weight = Annotated[float, Field(ge=0.001, le=1000)]
Number = (
    Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
    | Annotated[float, Field(strict=True, ge=-1e300, le=1e300)]
)
Limit = Number | Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARACTERS)]
LIMIT = "limit of an attribute: a number, or a level if it is declared as an ordinal (`GET /attributes`)."

RANK: Any = Field(
    default="business",
    description="The order of the hits. `business`: by what the companies do. `comparable`: also by size (if the index "
    "has one) and country, as analysts compare. `cosine`: by the cosine of the descriptions alone.",
)
MIN_PROBABILITY: Any = Field(
    default=None,
    ge=0,
    le=1,
    allow_inf_nan=False,
    description="Only hits with at least this probability. Needs a calibrated generation.",
)
RESOLVE: Any = Field(
    default=None,
    description="`exact`: a company is found by its id, domain, name or alias only. Without it, the company with a "
    "similar name is used if it is clearly the best match.",
)
HOW_MANY: Any = Field(default=10, ge=1, le=MAX_HITS, description="Maximum number of competitors.")
CURSOR: Any = Field(
    default=None,
    description="`next_cursor` of the page before, for the same query. `k`, `reasons` and `fields` may differ.",
)
Explained = Annotated[
    int,
    Field(
        ge=0,
        le=MAX_EXPLAINED,
        description="For how many of the first hits to find the phrases that carry the match; this runs the encoder.",
    ),
]


class _Body(Closed):
    model_config = ConfigDict(strict=True)


class Negative(_Body):
    """A company (its id, domain, name or alias) or a description in free text: exactly one of the two."""

    company: Reference | None = Field(
        default=None, description="A company's id, domain, name or alias.", examples=["nike"]
    )
    text: Text | None = Field(default=None, examples=["rents out e-scooters"])
    segment: Annotated[int, Field(ge=1, le=MOST_SEGMENTS)] | None = Field(
        default=None,
        description="Only this line of business of the company counts: a number of `GET /segments/{company_id}`.",
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.company is None) == (self.text is None):
            raise PydanticCustomError("one_of_both", "give either company or text")
        if self.segment is not None and self.company is None:
            raise PydanticCustomError("segment_of_text", "only a company has segments; leave segment out")
        return self

    def anchor(self) -> search.Anchor:
        """Return the anchor of a library question."""
        return search.Anchor(**dict(self))


class Anchor(Negative):
    """A company or a description that the hits should be similar to, and its weight."""

    model_config = example(company="nike", weight=2)

    weight: Weight = Field(default=1.0, description="Relative to the other anchors.")


FIELD_PATTERN = pattern_of(f"^{FIELD}$", f"must be {FIELD_NAMES.replace('`', '')}")


class Filter(_Body):
    """Keep companies whose `field` has any of `any_of`, none of `none_of`, and is in the range."""

    model_config = example(field="country", any_of=["Germany", "France"])

    field: Annotated[str, StringConstraints(pattern=FIELD_PATTERN)] = Field(
        description=f"{FIELD_NAMES}.", examples=["country"]
    )
    any_of: Words = Field(default=[], description="Upper and lower case are equal; one matching tag is enough.")
    none_of: Words = Field(default=[])
    at_least: Limit | None = Field(default=None, description=f"Inclusive {LIMIT}", examples=[100, "large"])
    at_most: Limit | None = Field(default=None, description=f"Inclusive {LIMIT}")
    above: Limit | None = Field(default=None, description=f"Exclusive {LIMIT}")
    below: Limit | None = Field(default=None, description=f"Exclusive {LIMIT}")

    @model_validator(mode="after")
    def _is_usable(self) -> Self:
        try:
            self.chosen()
        except InvalidFilter as error:
            raise PydanticCustomError("invalid_filter", "{reason}", {"reason": str(error)}) from None
        return self

    def chosen(self) -> FieldFilter:
        """Return the filter of a library question.

        Raises:
            InvalidFilter: it has no values, or its range is invalid.
        """
        lists = {"any_of": tuple(self.any_of), "none_of": tuple(self.none_of)}
        return FieldFilter(**{**dict(self), **lists})


class Criteria(_Body):
    """The members of a query that decide its ranking. How many hits are returned is not among them."""

    anchors: Listed[Anchor] = Field(
        min_length=1, max_length=MAX_ANCHORS, description="The companies or texts that the hits should be similar to."
    )
    negatives: Listed[Negative] = Field(
        default=[], max_length=MAX_ANCHORS, description="The companies or texts that the hits should not be similar to."
    )
    filters: Listed[Filter] = Field(default=[], max_length=MAX_FILTERS, description="A hit must pass all filters.")
    exclude: Listed[Reference] = Field(
        default=[],
        max_length=MAX_EXCLUDED,
        description="Companies to omit: ids, domains, names or aliases.",
        examples=[["adidas", "about.puma.com"]],
    )
    exclude_lists: Listed[ListName] = Field(
        default=[],
        max_length=MAX_EXCLUDED_LISTS,
        description="Names of saved lists of companies: the companies on them at the time of the query are omitted.",
        examples=[["already contacted"]],
    )
    rank: RankName = RANK
    resolve: Literal["exact"] | None = RESOLVE
    min_probability: float | None = MIN_PROBABILITY

    @property
    def segments(self) -> int:
        """Number of anchors and negatives that are segments; each runs the encoder, as a reason does."""
        return sum(each.segment is not None for each in (*self.anchors, *self.negatives))

    def asked(self) -> search.Question:
        """Return the library question."""
        return search.Question(
            anchors=[each.anchor() for each in self.anchors],
            negatives=[each.anchor() for each in self.negatives],
            filters=[each.chosen() for each in self.filters],
            exclude=self.exclude,
            rank=Rank(self.rank),
            min_probability=self.min_probability,
            exact=self.resolve == "exact",
        )


class BatchQuestion(Criteria):
    """One query of a batch."""

    k: int = HOW_MANY
    reasons: Explained = 0
    fields: Listed[CompanyMember] | None = Field(
        default=None,
        max_length=len(MEMBERS),
        description="The members of each hit's `company` to return, besides `id`; by default all.",
    )

    def asked(self) -> search.Question:
        """Return the library question."""
        return replace(super().asked(), k=self.k, explain=self.reasons)


class Question(BatchQuestion):
    """A query for competitors."""

    model_config = example(anchors=[{"company": "nike"}, {"text": "sells shoes", "weight": 0.5}], k=5)

    reasons: Explained = DEFAULT_EXPLAINED
    cursor: Cursor | None = CURSOR


class Locate(Criteria):
    """A query for competitors, and the company whose rank among them is returned."""

    company: Reference = Field(description="A company's id, domain, name or alias.", examples=["puma"])


class Batch(_Body):
    """Several queries, answered from one generation."""

    questions: Listed[BatchQuestion] = Field(min_length=1, max_length=MAX_QUESTIONS)

    @model_validator(mode="after")
    def _explains_little(self) -> Self:
        explained = sum(question.reasons + question.segments for question in self.questions)
        if explained > MAX_EXPLAINED:
            raise PydanticCustomError(
                "too_many_reasons",
                "the queries ask for {explained} reasons and segments; a batch may ask for {most} in total",
                {"explained": explained, "most": MAX_EXPLAINED},
            )
        return self


class FormatQuery(Closed):
    """The parameters of a query that is sent as a body."""

    format: Format | None = Field(
        default=None, description="`csv` or `xlsx` for a table; by default the `Accept` header decides."
    )


# The pattern is only documentation: `filters_of` checks conditions, with better messages.
READABLE = Field(max_length=MAX_CONDITION_CHARACTERS, json_schema_extra={"pattern": CONDITION})
Conditions = Annotated[Listed[Annotated[str, READABLE]], Field(max_length=MAX_FILTERS)]


class SimilarQuery(FormatQuery):
    """The parameters of a query for competitors: everything that fits in a URL."""

    k: int = HOW_MANY
    country: Words = Field(
        default=[],
        description="Only from this country; repeat it for several. Case is ignored, an empty value means any.",
        examples=[["Germany", "France"]],
    )
    industry: Words = Field(default=[], description="Only from this industry; repeat it for several.")
    tag: Words = Field(default=[], description="Only with this tag; repeat it for several.")
    filter: Conditions = Field(
        default=[],
        description="A condition: `FIELD=VALUE`, `FIELD!=VALUE`, and for attributes `FIELD>=LIMIT`, `FIELD<=LIMIT`, "
        "`FIELD>LIMIT` and `FIELD<LIMIT`, where LIMIT is a number, or a level of an ordinal attribute. "
        f"FIELD is {FIELD_NAMES}. Repeat it: several `FIELD=VALUE` of one field mean any of them; "
        "all other conditions must hold.",
        examples=[["attributes.employees>=100"]],
    )
    also: Listed[Reference] = Field(
        default=[], max_length=MAX_ANCHORS - 1, description="Another company to be similar to; repeat it for several."
    )
    unlike: Listed[Reference] = Field(
        default=[], max_length=MAX_ANCHORS, description="A company not to be similar to; repeat it for several."
    )
    exclude: Listed[Reference] = Field(
        default=[],
        max_length=MAX_EXCLUDED_IN_ADDRESS,
        description="A company to omit: id, domain, name or alias; repeat it. `POST /similar` allows 10,000.",
    )
    exclude_list: Listed[ListName] = Field(
        default=[],
        max_length=MAX_EXCLUDED_LISTS,
        description="The name of a saved list of companies to omit; repeat it for several.",
    )
    rank: RankName = RANK
    resolve: Literal["exact"] | None = RESOLVE
    min_probability: float | None = MIN_PROBABILITY
    fields: Annotated[str, StringConstraints(pattern=_MEMBERS)] = Field(
        default="",
        description=f"The members of each hit's `company` to return besides `id`, by default all: {','.join(MEMBERS)}.",
        examples=["name,country"],
    )
    reasons: Explained = DEFAULT_EXPLAINED
    cursor: Cursor | None = CURSOR

    @field_validator("filter")
    @classmethod
    def _is_usable(cls, conditions: list[str]) -> list[str]:
        try:
            filters_of(conditions)
        except InvalidFilter as error:
            raise PydanticCustomError("invalid_filter", "{reason}", {"reason": str(error)}) from None
        return conditions

    def filters(self) -> list[FieldFilter]:
        """Return one filter for each field that the parameters filter by."""
        return filters_of(self.filter, {"country": self.country, "industry": self.industry, "tags": self.tag})

    def question(self, anchor: Anchor) -> Question:
        """Return the query for companies similar to `anchor`."""
        # The parameters have been validated already.
        return Question.model_construct(
            anchors=[anchor, *(Anchor(company=each) for each in self.also)],
            negatives=[Negative(company=each) for each in self.unlike],
            filters=[Filter.model_construct(**asdict(each)) for each in self.filters()],
            exclude=self.exclude,
            exclude_lists=self.exclude_list,
            rank=self.rank,
            resolve=self.resolve,
            min_probability=self.min_probability,
            k=self.k,
            reasons=self.reasons,
            fields=self.fields.split(",") if self.fields else None,
            cursor=self.cursor,
        )


class TextQuery(SimilarQuery):
    """The parameters of a query in free text."""

    text: Text
