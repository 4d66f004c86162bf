"""Read-only calls: similar companies, look-up, matching, map and readiness."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias, Unpack
from urllib.parse import unquote

from similarity.client.call import CSV, Call, Reply, as_json, json_reader, path_of, read_text
from similarity.client.problems import Problem, problem_of
from similarity.client.question import Anchor, AnyQuestion, Question, QuestionOptions, as_question, several
from similarity.client.ranking import CompanyRecord, CompanyReference, Miss, Model, Ranking, Reason, Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCompany:
    """A company in the live generation.

    `redirected_from`: the requested domain or name; None for the id. `confidence`: how sure it is that this company was
    meant: 1, or less if only the names are similar.
    """

    company: CompanyRecord
    generation: str
    model: Model
    redirected_from: str | None = None
    confidence: float = 1.0
    language: str = "und"
    warning: str | None = None
    updated_at: datetime | None = None
    embedded_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanySegments(StoredCompany):
    """A company and the lines of business in its description; no `segments` if it is short or about one business."""

    segments: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Why a company has no rank. `by`: anchor, negative, exclude, duplicate, filter or min_probability.

    `company`: the id of that anchor, negative, exclusion or better hit. `field`: the field of that filter.
    """

    by: str
    company: str | None = None
    field: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedCompany(StoredCompany):
    """The place of a company in a ranking.

    `rank`: None if something removes it (`removed_by`) or it is beyond rank 1,000. `nearer`: how many companies have a
    higher cosine; None if there are more than the store counts.
    """

    score: float
    rank: int | None = None
    nearer: int | None = None
    probability: float | None = None
    reason: Reason = field(default_factory=Reason)
    removed_by: tuple[Removal, ...] = ()
    approximate: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCompanies:
    """Companies found by name, best match first; iterating over it yields `companies`."""

    query: str
    companies: tuple[CompanyRecord, ...]
    generation: str = ""

    def __iter__(self) -> Iterator[CompanyRecord]:
        return iter(self.companies)

    def __len__(self) -> int:
        return len(self.companies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """State of the service: live generation, model, and whether free-text queries and feedback are available."""

    generation: str
    model: Model
    companies: int = 0
    free_text: bool = False
    free_text_reason: str | None = None
    feedback: bool = True
    feedback_reason: str | None = None
    status: str = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPoint:
    """A company or a free text on the map: `x` and `y` in [-1, 1]; `role` is anchor, negative or hit.

    A free text has no `id`; its `name` is the text.
    """

    x: float
    y: float
    role: str
    id: str | None = None
    name: str = ""
    score: float | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanyMap:
    """Anchors, negatives and hits in two dimensions, which show the share `explained` of the variance."""

    points: tuple[MapPoint, ...]
    explained: float = 0.0
    misses: tuple[Miss, ...] = ()
    generation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRow:
    """One input row of `match`."""

    name: str = ""
    domain: str = ""
    country: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedRow:
    """The match of a row (the first is 1). `how`: the kind of match; `confidence`: its share of correct matches.

    If there was no match, `miss` is the reason and `candidates` are similar companies.
    """

    row: int
    asked: InputRow = InputRow()
    id: str | None = None
    company: CompanyReference | None = None
    confidence: float | None = None
    how: str | None = None
    candidates: tuple[CompanyReference, ...] = ()
    miss: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _BatchAnswer:
    status: int
    answer: Ranking | None = None
    problem: Mapping[str, Any] | None = None


MatchRow: TypeAlias = str | Mapping[str, str]
"""A name or a domain, or several fields: `{"name": ..., "domain": ..., "country": ...}`."""


OF_A_PAGE = ("k", "reasons", "fields", "cursor")


def ask(question: AnyQuestion) -> Call[Ranking]:
    """Return the ranking of `question`."""
    return Call("POST", "/similar", json_reader(Ranking), body=as_json(as_question(question).body()))


def similar(*anchors: str | Anchor, **options: Unpack[QuestionOptions]) -> Call[Ranking]:
    """Return the competitors of one company, or of several together.

    Each anchor is a company's id, domain, name or alias, or an `Anchor` with a weight. Options are
    those of `QuestionOptions`: negatives, country, industry, tag, filters, exclude, exclude_lists, rank, resolve,
    min_probability, k, reasons, fields, cursor. If some anchors cannot be resolved, they are listed in
    `Ranking.misses`; if none can, a `Problem` such as `UnknownCompany` is raised.
    """
    return ask(Question.about(*anchors, **options))


def similar_text(text: str, **options: Unpack[QuestionOptions]) -> Call[Ranking]:
    """Return the companies whose descriptions are nearest to a free text. Options as in `similar`."""
    return similar(Anchor(text=text), **options)


def table(question: AnyQuestion) -> Call[str]:
    """Return one page of hits as CSV. A cell that a spreadsheet would run as a formula begins with an apostrophe.

    References that match no company, and the warnings of the ranking, become warnings (`warnings.warn`).
    """
    body = as_json(as_question(question).body())
    return Call("POST", "/similar", _read_table, body=body, accept=CSV)


def _read_table(reply: Reply) -> str:
    misses, notes = (unquote(reply.headers.get(name, "")) for name in ("misses", "warnings"))
    if misses:
        warnings.warn(f"left out, because no company has this name: {misses}", stacklevel=2)
    if notes:
        warnings.warn(notes, stacklevel=2)
    return read_text(reply)


def batch(questions: Iterable[AnyQuestion]) -> Call[tuple[Ranking | Problem, ...]]:
    """Run up to 100 queries on one generation; return one ranking or one `Problem` per query, in order.

    A str is a query for the competitors of the company with that id, domain, name or alias.
    """
    if isinstance(questions, str):
        raise TypeError(f"{questions!r} is one name; give a list of questions: [{questions!r}]")
    body = as_json({"questions": [as_question(each).body() for each in questions]})
    return Call("POST", "/similar/batch", _answers, body=body)


def locate(reference: str, question: AnyQuestion) -> Call[LocatedCompany]:
    """Return the place of the company `reference` in the ranking of a query, however far down, and why it is there.

    What the query says of the page of hits (k, reasons, fields, cursor) does not matter.
    """
    asked = {name: value for name, value in as_question(question).body().items() if name not in OF_A_PAGE}
    body = as_json({**asked, "company": reference})
    return Call("POST", "/similar/locate", json_reader(LocatedCompany), body=body)


def find(query: str, *, limit: int | None = None) -> Call[FoundCompanies]:
    """Return companies found by id, domain, name or alias, then by the start of a name or alias, then by words."""
    path = path_of("companies", parameters={"q": query, "limit": limit})
    return Call("GET", path, json_reader(FoundCompanies))


def segments(reference: str, *, resolve: Literal["exact"] | None = None) -> Call[CompanySegments]:
    """Return the lines of business of a company; `Anchor(company=..., segment=number)` is about one of them."""
    path = path_of("segments", reference, parameters={"resolve": resolve})
    return Call("GET", path, json_reader(CompanySegments))


def company(reference: str, *, resolve: Literal["exact", "id"] | None = None) -> Call[StoredCompany]:
    """Return one company by its id, domain, name or alias, or by a similar name that is clearly the best match.

    `resolve`: `exact` accepts no similar name, and `id` only the id, case-sensitive.
    """
    path = path_of("companies", reference, parameters={"resolve": resolve})
    return Call("GET", path, json_reader(StoredCompany))


def match(rows: Sequence[MatchRow]) -> Call[tuple[MatchedRow, ...]]:
    """Return the match of each of up to 5,000 rows of names or domains, with its confidence."""
    body = as_json({"rows": [{"name": row} if isinstance(row, str) else dict(row) for row in several(rows)]})
    return Call("POST", "/match", json_reader(tuple[MatchedRow, ...], member="rows"), body=body)


def map_of(question: AnyQuestion) -> Call[CompanyMap]:
    """Return the anchors, negatives and hits of a query in two dimensions; a str is the query for one company."""
    return Call("POST", "/map", json_reader(CompanyMap), body=as_json(as_question(question).body()))


def ready() -> Call[Ready]:
    """Return the state of the service. Raises `Unavailable` if it is not ready."""
    return Call("GET", "/readyz", json_reader(Ready))


def _answers(reply: Reply) -> tuple[Ranking | Problem, ...]:
    return tuple(
        each.answer or problem_of(each.problem, status=each.status, request_id=reply.request_id)
        for each in json_reader(tuple[_BatchAnswer, ...], member="answers")(reply)
    )
