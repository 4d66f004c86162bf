"""Shortlists, independent of HTTP: their companies, and how they compare with a ranking or with another list."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from similarity.company import AttributeValue, Company, EmbeddedCompany, Vector
from similarity.feedback.protocol import FeedbackEvent, Workspace
from similarity.feedback.shortlists import companies_of, shortlists
from similarity.index.protocol import Generation
from similarity.search.names.resolver import Resolver, without_description
from similarity.search.ranking import Hit
from similarity.search.searcher import retry_if_retired

from ..asking.question_schemas import RANK, Anchor, FormatQuery, ListName, Question, RankName, Reference
from ..asking.ranking_tables import FACTS, attribute_columns
from ..asking.schemas import MAX_HITS
from ..asking.service import SearchService
from ..guards.callers import Caller
from ..wire.bodies import Closed
from ..wire.problem_documents import CompanyReference, reference_of

QUICKLY_READ = 250
"""Reading more companies of lists is heavy work: a table of 9,000 with 100 attributes takes 10 s."""


class MembersQuery(FormatQuery):
    """The parameters of a request for the companies of a list."""

    company: Reference | None = Field(
        default=None,
        description="Also return rank, score and probability in the ranking of this company, and your verdicts.",
        examples=["nike"],
    )
    rank: RankName = RANK


class ComparisonQuery(Closed):
    """The parameters of a comparison of a list: exactly one of `company` and `other`."""

    company: Reference | None = Field(
        default=None, description="Compare with the ranking of this company.", examples=["nike"]
    )
    other: ListName | None = Field(default=None, description="Compare with this list of companies.")
    rank: RankName = RANK
    k: int = Field(default=50, ge=1, le=MAX_HITS, description="Number of hits of the ranking to compare with.")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.company is None) == (self.other is None):
            raise PydanticCustomError("one_of_both", "give either company or other")
        return self


class Member(CompanyReference):
    """A company on a list, or one that a list is compared with."""

    name: str = Field(default="", description="Empty if it is deleted.", examples=["adidas AG"])
    attributes: dict[str, AttributeValue] = Field(default={}, description="Free facts by name.")
    deleted: bool = Field(default=False, description="Whether the index no longer holds it.")
    rank: int | None = Field(
        default=None, description="Its rank in the ranking of the company asked about, if that is long enough."
    )
    score: float | None = Field(
        default=None, description="Its cosine to the company asked about; null without a vector.", examples=[0.734]
    )
    probability: float | None = Field(
        default=None,
        description="Its probability of being a competitor, as in the ranking; null if it is not in the ranking.",
        examples=[0.81],
    )
    verdict: str | None = Field(default=None, description="Your verdict on it and the company asked about.")
    note: str = Field(default="", description="Your note with that verdict.")


class Members(BaseModel):
    """The companies of a list."""

    name: str = Field(description="The list's name.", examples=["already contacted"])
    company: CompanyReference | None = Field(description="The company asked about; null if there is none.")
    companies: list[Member] = Field(
        description="As they were added; with `company`, by rank, then by score. Deleted ones are last."
    )
    deleted: int = Field(description="Number of companies that the index no longer holds.")
    generation: str = Field(description="The copy of the corpus that answered.", examples=["2026-01-31"])


class Comparison(BaseModel):
    """A list beside the first hits of a ranking, or beside another list."""

    name: str = Field(description="The list's name.", examples=["already contacted"])
    company: CompanyReference | None = Field(description="The company asked about; null for another list.")
    other: str | None = Field(description="The name of the other list; null for a ranking.")
    in_both: list[Member] = Field(description="On the list, and among the hits or on the other list.")
    only_here: list[Member] = Field(description="On the list alone; `rank` is set if it is a hit further down.")
    only_there: list[Member] = Field(description="Not on the list.")
    generation: str = Field(examples=["2026-01-31"])


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The ranking of one company, with which the members of a list are compared."""

    company: Company
    vector: Vector
    hits: Mapping[str, Hit]
    verdicts: Mapping[str, FeedbackEvent]


@dataclass(frozen=True, slots=True)
class ShortlistService:
    """Reads shortlists in `workspace`, and their companies with `search`.

    `before_heavy_work`: called before more than QUICKLY_READ companies are read; it may raise.
    """

    search: SearchService
    workspace: Workspace
    before_heavy_work: Callable[[], None] = lambda: None

    def members(self, name: str, query: MembersQuery, caller: Caller) -> Members:
        """Return the companies of a list, each once.

        Raises:
            UnknownList, WrongKindOfList: there is no such list, or it is a saved query.
            UnknownCompany, AmbiguousCompany, TooFewWords: `company` names no company, several, or one without a vector.
        """
        ids = companies_of(self.workspace.saved_list(name))
        if len(ids) > QUICKLY_READ:
            self.before_heavy_work()

        def run_once() -> Members:
            live, ranked = self._ranked(query.company, query.rank, caller)
            members = self._of(ids, live, ranked)
            return Members(
                name=name,
                company=reference_of(ranked.company) if ranked else None,
                companies=members,
                deleted=sum(each.deleted for each in members),
                generation=live.name,
            )

        return retry_if_retired(run_once)

    def compare(self, name: str, query: ComparisonQuery, caller: Caller) -> Comparison:
        """Return which companies of a list are among the first hits of a ranking, or on another list, and which not.

        Raises:
            UnknownList, WrongKindOfList: one of the lists does not exist, or is a saved query.
            UnknownCompany, AmbiguousCompany, TooFewWords: `company` names no company, several, or one without a vector.
        """
        names = [name] if query.other is None else [name, query.other]
        lists = shortlists(self.workspace, names)
        if sum(map(len, lists.values())) > QUICKLY_READ:
            self.before_heavy_work()

        def run_once() -> Comparison:
            live, ranked = self._ranked(query.company, query.rank, caller)
            here = self._of(lists[name], live, ranked)
            if ranked is None:
                others, own = set(lists[names[-1]]), set(lists[name])
                there = self._of([each for each in lists[names[-1]] if each not in own], live, None)
            else:
                first = {each: hit for each, hit in ranked.hits.items() if hit.rank <= query.k}
                others = set(first)
                ranks_here = {first[each].rank for each in lists[name] if each in first}
                missing = [each for each, hit in first.items() if each == hit.company.id and hit.rank not in ranks_here]
                there = self._of(missing, live, ranked)
            return Comparison(
                name=name,
                company=reference_of(ranked.company) if ranked else None,
                other=query.other,
                in_both=[each for each in here if each.id in others],
                only_here=[each for each in here if each.id not in others],
                only_there=there,
                generation=live.name,
            )

        return retry_if_retired(run_once)

    def _ranked(self, reference: str | None, rank: RankName, caller: Caller) -> tuple[Generation, _Ranked | None]:
        """Return the generation, and the ranking of the company, with each hit by its id and its duplicates' ids."""
        if reference is None:
            return self.search.searcher.live(), None
        question = Question(anchors=[Anchor(company=reference)], rank=rank, k=MAX_HITS, reasons=0)
        ranking = self.search.ranking_about(reference, question)
        anchor = ranking.anchors[0]
        assert anchor.document is not None  # noqa: S101  # the anchor is a company, and it was resolved
        return ranking.generation, _Ranked(
            company=anchor.document.company,
            vector=anchor.vector,
            hits={each: hit for hit in ranking.hits for each in (hit.company.id, *hit.duplicates)},
            verdicts=self.search.verdicts(anchor.document.id, caller.name),
        )

    def _of(self, ids: Sequence[str], generation: Generation, ranked: _Ranked | None) -> list[Member]:
        resolver = Resolver(self.search.searcher.index, generation, exact=True, shorten=without_description)
        stored = resolver.stored(ids)
        members = [_member(each, stored.get(each), ranked) for each in ids]
        return sorted(members, key=_place)


def table_of(members: Members, *, has_notes: bool) -> list[tuple[object, ...]]:
    """Return the companies of a list as the rows of a table, the header first.

    `has_notes`: with a column for the notes, which programs that read CSV do not expect.
    """
    asked = ("rank", "score", "probability", "verdict", *(("note",) if has_notes else ())) if members.company else ()
    others = (*FACTS, *asked, "deleted")
    names, values = attribute_columns([each.attributes for each in members.companies], others)
    rows = (
        (*_values(each, FACTS), *attributes, *_values(each, asked), each.deleted)
        for each, attributes in zip(members.companies, values, strict=True)
    )
    return [(*FACTS, *names, *asked, "deleted"), *rows]


def _values(member: Member, names: Iterable[str]) -> list[object]:
    return [getattr(member, name) for name in names]


def _member(company_id: str, document: EmbeddedCompany | None, ranked: _Ranked | None) -> Member:
    if document is None:
        return Member(id=company_id, deleted=True)
    company = document.company
    facts = {**reference_of(company).model_dump(), "attributes": dict(company.attributes)}
    if ranked is None:
        return Member(**facts)
    hit = ranked.hits.get(company_id)
    judged = ranked.verdicts.get(company_id)
    score = float(np.clip(document.vector @ ranked.vector, -1.0, 1.0)) if document.has_vector else None
    return Member(
        **facts,
        rank=hit and hit.rank,
        score=None if score is None else round(score, 6),
        probability=hit.probability if hit else None,
        verdict=judged.verdict.value if judged else None,
        note=judged.note if judged else "",
    )


def _place(member: Member) -> tuple[bool, float, float]:
    """Return the sort key: by rank, then by score, and deleted companies last; stable without a ranking."""
    return member.deleted, member.rank or float("inf"), -(member.score or 0.0)
