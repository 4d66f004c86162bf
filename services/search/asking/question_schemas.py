"""What may be asked: the one question behind `/similar`, as a JSON body and as the parameters of an address."""

from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator
from pydantic_core import PydanticCustomError

from similarity.company import MAX_NAME_CHARACTERS
from similarity.errors import InvalidFilter
from similarity.index.filters import FieldFilter
from similarity.search import question as search

from ..wire.bodies import Listed
from .conditions import CONDITION, FIELD, filters_of
from .schemas import MAX_HITS, Text, Words

MAX_ANCHORS = 10
MAX_FILTERS = 20
MAX_EXCLUDED = 10_000
MAX_EXCLUDED_IN_ADDRESS = 100
MAX_EXPLAINED = 50
DEFAULT_EXPLAINED = 3
MAX_QUESTIONS = 100
MAX_CURSOR_CHARACTERS = 1_000
MAX_CONDITION_CHARACTERS = MAX_NAME_CHARACTERS + 100

Mode: TypeAlias = Literal["vector", "hybrid"]
CompanyMember: TypeAlias = Literal[
    "id", "name", "description", "aliases", "domain", "country", "industry", "tags", "attributes"
]
MEMBERS: tuple[str, ...] = get_args(CompanyMember)
_MEMBER = f"({'|'.join(MEMBERS)})"

Reference = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARACTERS)]
Cursor = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]*$", max_length=MAX_CURSOR_CHARACTERS)]
Weight = Annotated[float, Field(ge=0.001, le=1000)]
Number = (
    Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
    | Annotated[float, Field(strict=True, ge=-1e300, le=1e300)]
)
ONE_OF_BOTH: dict[str, Any] = {
    "oneOf": [
        {"required": [one], "properties": {one: {"type": "string"}, other: {"type": "null"}}}
        for one, other in (("company", "text"), ("text", "company"))
    ]
}

MODE: Any = Field(
    default="vector",
    description="`vector`: by the meaning of the descriptions. `hybrid`: companies that use the same words are ranked "
    "too, and the two rankings are fused.",
)
MIN_PROBABILITY: Any = Field(
    default=None,
    ge=0,
    le=1,
    allow_inf_nan=False,
    description="Only hits of at least this probability. Needs a calibrated generation.",
)
HOW_MANY: Any = Field(default=10, ge=1, le=MAX_HITS, description="How many competitors at most.")
CURSOR: Any = Field(
    default=None,
    description="`next_cursor` of the page before, to the same question. `k`, `reasons` and `fields` may differ.",
)


def _explained(default: int) -> Any:
    return Field(
        default=default,
        ge=0,
        le=MAX_EXPLAINED,
        description="For how many of the first hits the phrases that carry the match are looked for. This runs the "
        "encoder; 0 answers at once.",
    )


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Negative(_Body):
    """A company, by id, domain, name or alias, or a description in free words: exactly one of the two."""

    model_config = ConfigDict(json_schema_extra=ONE_OF_BOTH)

    company: Reference | None = Field(
        default=None, description="A company's id; its domain, name or an alias will do as well.", examples=["nike"]
    )
    text: Text | None = Field(default=None, examples=["rents out e-scooters"])

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.company is None) == (self.text is None):
            raise PydanticCustomError("one_of_both", "give either company or text")
        return self

    def anchor(self) -> search.Anchor:
        """Return the anchor of a library question."""
        return search.Anchor(company=self.company, text=self.text)


class Anchor(Negative):
    """What the hits should be like: a company or a description, and how much it counts beside the others."""

    weight: Weight = Field(default=1.0, description="Among several anchors, how much this one counts.")

    def anchor(self) -> search.Anchor:
        """Return the anchor of a library question."""
        return search.Anchor(company=self.company, text=self.text, weight=self.weight)


class Filter(_Body):
    """Keep companies whose `field` has any of `any_of`, none of `none_of`, and lies in the range: all that is given."""

    field: Annotated[str, StringConstraints(pattern=f"^{FIELD}$")] = Field(
        description="`country`, `industry`, `tags`, `domain` or `attributes.NAME`.", examples=["country"]
    )
    any_of: Words = Field(default=[], description="Compared in any case; of tags, one is enough.")
    none_of: Words = Field(default=[])
    at_least: Number | None = Field(default=None, description="Of an attribute that is a number; included.")
    at_most: Number | None = Field(default=None, description="Of an attribute that is a number; included.")

    @model_validator(mode="after")
    def _is_usable(self) -> Self:
        try:
            self.chosen()
        except InvalidFilter as error:
            raise PydanticCustomError("invalid_filter", "{reason}", {"reason": str(error)}) from None
        return self

    @classmethod
    def of(cls, chosen: FieldFilter) -> "Filter":
        """The same filter as a part of a question."""
        return cls.model_construct(
            field=chosen.field,
            any_of=list(chosen.any_of),
            none_of=list(chosen.none_of),
            at_least=chosen.at_least,
            at_most=chosen.at_most,
        )

    def chosen(self) -> FieldFilter:
        """The filter as an index takes it.

        Raises:
            InvalidFilter: it has nothing to compare with, or a range that no number is in.
        """
        return FieldFilter(
            field=self.field,
            any_of=tuple(self.any_of),
            none_of=tuple(self.none_of),
            at_least=self.at_least,
            at_most=self.at_most,
        )


class BatchQuestion(_Body):
    """One question of a batch."""

    anchors: Listed[Anchor] = Field(min_length=1, max_length=MAX_ANCHORS, description="What the hits should be like.")
    negatives: Listed[Negative] = Field(default=[], max_length=MAX_ANCHORS, description="What they should not be like.")
    filters: Listed[Filter] = Field(default=[], max_length=MAX_FILTERS, description="All of them must hold.")
    exclude: Listed[Reference] = Field(
        default=[],
        max_length=MAX_EXCLUDED,
        description="Companies to leave out, by id, domain, name or alias.",
        examples=[["adidas", "puma.com"]],
    )
    mode: Mode = MODE
    min_probability: float | None = MIN_PROBABILITY
    k: int = HOW_MANY
    reasons: int = _explained(0)
    fields: Listed[CompanyMember] | None = Field(
        default=None,
        max_length=len(MEMBERS),
        description="The members of each hit's `company` that are wanted; `id` always comes along. All without it.",
    )

    def asked(self) -> search.Question:
        """Return the library question."""
        return search.Question(
            anchors=[each.anchor() for each in self.anchors],
            negatives=[each.anchor() for each in self.negatives],
            filters=[each.chosen() for each in self.filters],
            exclude=self.exclude,
            hybrid=self.mode == "hybrid",
            min_probability=self.min_probability,
            k=self.k,
            explain=self.reasons,
        )


class Question(BatchQuestion):
    """Who to be similar to, and among whom."""

    reasons: int = _explained(DEFAULT_EXPLAINED)
    cursor: Cursor | None = CURSOR


class Batch(_Body):
    """Several questions at once, answered from one generation."""

    questions: Listed[BatchQuestion] = Field(min_length=1, max_length=MAX_QUESTIONS)

    @model_validator(mode="after")
    def _explains_little(self) -> Self:
        explained = sum(question.reasons for question in self.questions)
        if explained > MAX_EXPLAINED:
            raise PydanticCustomError(
                "too_many_reasons",
                "the questions ask for {explained} reasons; all of a batch together may ask for {most}",
                {"explained": explained, "most": MAX_EXPLAINED},
            )
        return self


class FormatQuery(BaseModel):
    """The parameters of a question that is sent as a body."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["json", "csv"] | None = Field(
        default=None, description="`csv` for a table; the `Accept` header decides without it."
    )


# Only described as a pattern: whoever breaks it is told in words (`filters_of`).
READABLE = Field(json_schema_extra={"pattern": CONDITION})
Conditions = Annotated[
    Listed[Annotated[str, StringConstraints(max_length=MAX_CONDITION_CHARACTERS), READABLE]],
    Field(max_length=MAX_FILTERS),
]


class SimilarQuery(FormatQuery):
    """The parameters of a question for competitors: all of a question that an address can carry."""

    k: int = HOW_MANY
    country: Words = Field(
        default=[],
        description="Only from this country; repeat it for any of several. Upper and lower case are the same, "
        "an empty value means any.",
        examples=[["Germany", "France"]],
    )
    industry: Words = Field(default=[], description="Only of this industry; repeat it for any of several.")
    tag: Words = Field(default=[], description="Only with this tag; repeat it for any of several.")
    filter: Conditions = Field(
        default=[],
        description="A condition: `FIELD=VALUE`, `FIELD!=VALUE`, and for attributes that are numbers `FIELD>=NUMBER` "
        "and `FIELD<=NUMBER`. FIELD is `country`, `industry`, `tags`, `domain` or `attributes.NAME`. Repeat it: "
        "several `FIELD=VALUE` of one field mean any of them, all else must hold.",
        examples=[["attributes.employees>=100"]],
    )
    also: Listed[Reference] = Field(
        default=[], max_length=MAX_ANCHORS - 1, description="A further company to be similar to; repeat it for several."
    )
    unlike: Listed[Reference] = Field(
        default=[], max_length=MAX_ANCHORS, description="A company not to be similar to; repeat it for several."
    )
    exclude: Listed[Reference] = Field(
        default=[],
        max_length=MAX_EXCLUDED_IN_ADDRESS,
        description="A company to leave out, by id, domain, name or alias; repeat it. `POST /similar` takes 10,000.",
    )
    mode: Mode = MODE
    min_probability: float | None = MIN_PROBABILITY
    fields: Annotated[str, StringConstraints(pattern=f"^({_MEMBER}(,{_MEMBER}){{0,{len(MEMBERS) - 1}}})?$")] = Field(
        default="",
        description=f"The members of each hit's `company` that are wanted, by commas: {', '.join(MEMBERS)}. `id` "
        "always comes along. All without it.",
        examples=["name,country"],
    )
    reasons: int = _explained(DEFAULT_EXPLAINED)
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
        """All that the parameters filter by, a filter a field."""
        return filters_of(self.filter, {"country": self.country, "industry": self.industry, "tags": self.tag})

    def question(self, anchor: Anchor) -> Question:
        """The question that is asked about `anchor`."""
        # Everything was checked as a parameter, where an offence has its name.
        return Question.model_construct(
            anchors=[anchor, *(Anchor(company=each) for each in self.also)],
            negatives=[Negative(company=each) for each in self.unlike],
            filters=[Filter.of(each) for each in self.filters()],
            exclude=self.exclude,
            mode=self.mode,
            min_probability=self.min_probability,
            k=self.k,
            reasons=self.reasons,
            fields=self.fields.split(",") if self.fields else None,
            cursor=self.cursor,
        )


class TextQuery(SimilarQuery):
    """The parameters of a question in free words."""

    text: Text
