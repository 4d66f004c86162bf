"""The calls that ask and change nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias, Unpack

from similarity.client.call import CSV, Call, Reply, as_json, decoded, json_of, path_of, reading
from similarity.client.problems import Problem, UnreadableAnswer, problem_of
from similarity.client.question import Anchor, Question, QuestionOptions
from similarity.client.ranking import CompanyRecord, CompanyReference, Miss, Model, Ranking


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCompany:
    """A company as the live generation holds it; `redirected_from` is what was asked for, if that was not the id."""

    company: CompanyRecord
    generation: str
    model: Model
    redirected_from: str | None = None
    language: str = "und"
    warning: str | None = None
    updated_at: datetime | None = None
    embedded_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCompanies:
    """Companies for a search box, better matches first."""

    query: str
    companies: tuple[CompanyRecord, ...]
    generation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What the service answers from, and whether free text can be asked and feedback be given."""

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
    """A company or a text in its place: `x` and `y` in [-1, 1]; `role` is anchor, negative or hit.

    Free words have no `id`; they are their own `name`.
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
    """Anchors, negatives and hits in two dimensions; `explained` is the share of their differences that these show."""

    points: tuple[MapPoint, ...]
    explained: float = 0.0
    misses: tuple[Miss, ...] = ()
    generation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRow:
    """A row of a list as it was asked about."""

    name: str = ""
    domain: str = ""
    country: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedRow:
    """What a row (the first is 1) was matched with. `how` says by what, `confidence` how often that is right.

    Of a `miss` it says why, and which companies may be meant.
    """

    row: int
    asked: AskedRow = AskedRow()
    id: str | None = None
    company: CompanyReference | None = None
    confidence: float | None = None
    how: str | None = None
    candidates: tuple[CompanyReference, ...] = ()
    miss: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matches:
    rows: tuple[MatchedRow, ...]


MatchRow: TypeAlias = str | Mapping[str, str]
"""A name or a domain, or what is known: `{"name": ..., "domain": ..., "country": ...}`."""


def ask(question: Question) -> Call[Ranking]:
    """The ranking that answers `question`."""
    return Call(method="POST", path="/similar", body=as_json(question.body()), read=reading(Ranking))


def similar(*anchors: str | Anchor, **options: Unpack[QuestionOptions]) -> Call[Ranking]:
    """The competitors of one company or of several together.

    Each anchor is a company's id, domain, name or alias, or an `Anchor` with a weight. Options are
    those of `QuestionOptions`: negatives, country, industry, tag, filters, exclude, mode,
    min_probability, k, reasons, fields, cursor. One unknown anchor among several is a miss of the
    answer; `UnknownCompany` is raised where none is known.
    """
    return ask(Question.about(*anchors, **options))


def similar_text(text: str, **options: Unpack[QuestionOptions]) -> Call[Ranking]:
    """The companies like a description in free words. Options as in `similar`."""
    return similar(Anchor(text=text), **options)


def table(question: Question | str) -> Call[str]:
    """One page of the answer as CSV, for spreadsheets: a cell that one would run begins with an apostrophe."""
    body = as_json(_question(question).body())
    return Call(method="POST", path="/similar", body=body, accept=CSV, read=lambda reply: reply.body.decode())


def batch(questions: Iterable[Question | str]) -> Call[tuple[Ranking | Problem, ...]]:
    """Answers to up to 100 questions, in order and from one generation; a problem where there is none.

    A text is a question about the company of that name.
    """
    body = as_json({"questions": [_question(each).body() for each in questions]})
    return Call(method="POST", path="/similar/batch", body=body, read=_answers)


def find(query: str, *, limit: int | None = None) -> Call[FoundCompanies]:
    """Companies by domain, by the start of a name or alias, then by words."""
    path = path_of("companies", parameters={"q": query, "limit": limit})
    return Call(method="GET", path=path, read=reading(FoundCompanies))


def company(reference: str) -> Call[StoredCompany]:
    """One company, by its id, domain, name or alias."""
    return Call(method="GET", path=path_of("companies", reference), read=reading(StoredCompany))


def match(rows: Sequence[MatchRow]) -> Call[tuple[MatchedRow, ...]]:
    """Which companies are meant by up to 5,000 rows of names or domains, with a confidence each."""
    body = as_json({"rows": [{"name": row} if isinstance(row, str) else dict(row) for row in rows]})

    def read(reply: Reply) -> tuple[MatchedRow, ...]:
        return reading(_Matches)(reply).rows

    return Call(method="POST", path="/match", body=body, read=read)


def map_of(question: Question | str) -> Call[CompanyMap]:
    """The anchors and hits of a question, or the neighbourhood of one company, drawn in two dimensions."""
    return Call(method="POST", path="/map", body=as_json(_question(question).body()), read=reading(CompanyMap))


def ready() -> Call[Ready]:
    """What the service would answer from. Raises `Unavailable` where it would not."""
    return Call(method="GET", path="/readyz", read=reading(Ready))


def _question(asked: Question | str) -> Question:
    return Question.about(asked) if isinstance(asked, str) else asked


def _answers(reply: Reply) -> tuple[Ranking | Problem, ...]:
    answers = json_of(reply)
    if not isinstance(answers, dict) or not isinstance(answers.get("answers"), list):
        raise UnreadableAnswer("it has no list of answers", request_id=reply.request_id)
    return tuple(_answer(each, reply) for each in answers["answers"])


def _answer(each: Any, reply: Reply) -> Ranking | Problem:
    if isinstance(each, dict) and each.get("status") == 200:
        return decoded(Ranking, each.get("answer"), reply)
    document = each.get("problem") if isinstance(each, dict) else None
    status = each.get("status") if isinstance(each, dict) else None
    return problem_of(document, status=status if isinstance(status, int) else 500, request_id=reply.request_id)
