"""The query operations of the service, independent of HTTP: converts requests and rankings; no search logic."""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from similarity.company import Company
from similarity.errors import InvalidInput, SimilarityError
from similarity.feedback.labels import latest_verdicts
from similarity.feedback.protocol import FeedbackEvent, UnknownList, Workspace
from similarity.feedback.shortlists import WrongKindOfList, shortlists
from similarity.search.errors import deleted_or_named
from similarity.search.names.index_queries import possible_ids
from similarity.search.names.resolver import FoundCompany, Resolved, Resolver, without_description
from similarity.search.queries.question import Question as LibraryQuestion
from similarity.search.queries.resolution import MAX_SIMILAR_NAMES, Role
from similarity.search.ranking import Ranking as LibraryRanking
from similarity.search.searcher import Searcher, retry_if_retired

from ..wire import problems
from ..wire.failures import problem_of
from ..wire.problem_documents import Problem, problem_document, reference_of
from .answers import company_members, model_of, record_of
from .cursors import Cursors
from .question_schemas import (
    MAX_EXCLUDED,
    Anchor,
    Batch,
    BatchQuestion,
    Criteria,
    Locate,
    Question,
    SimilarQuery,
    TextQuery,
)
from .ranking_schemas import (
    Answered,
    BatchAnswer,
    CompanySegments,
    Located,
    Ranking,
    Refused,
    SimilarToCompany,
    SimilarToText,
)
from .recent_counts import RecentCounts
from .schemas import CompanyAnswer, DeclaredAttributes, DeclaredType, FindQuery, FoundCompanies, Ready
from .shaping import located_members, ranking_members, segment_of

MAX_ERRORS_NAMED = 5
QUICKLY_NAMED = 1_000
"""Looking up more companies is heavy work: 10,000 exclusions that nobody knows take over a second."""
QUICKLY_FILTERED = 5
"""More filters are heavy work: 20 that most of 46,000 companies pass take 130 ms on the embedded index."""
QUICKLY_RANKED = 100
"""More hits are heavy work: 250 take five times the processor time of ten."""
QUICKLY_JUDGED = 1_000
"""Reading more verdicts on one company is heavy work: 40,000 take over a second."""


class SearchService:
    """Runs queries with `searcher`, and builds the response models.

    `workspace`: the store of the shortlists that queries exclude, and of verdicts; None if there are none.
    `cursor_key`: secret that signs cursors. Several processes need the same key; without one, a cursor is valid only in
    the process that issued it. `before_each`: called before each of several queries; it may raise, to stop.
    `before_heavy_work`: called before more than QUICKLY_NAMED exclusions or members of a list are looked up,
    more than QUICKLY_FILTERED filters compared, more than QUICKLY_RANKED hits returned or more than QUICKLY_JUDGED
    verdicts read; it may raise.
    """

    def __init__(
        self,
        searcher: Searcher,
        workspace: Workspace | None = None,
        *,
        cursor_key: bytes | None = None,
        before_each: Callable[[], None] = lambda: None,
        before_heavy_work: Callable[[], None] = lambda: None,
    ) -> None:
        self.searcher = searcher
        self.before_each = before_each
        self._before_heavy_work = before_heavy_work
        self._workspace = workspace
        self._counts = RecentCounts(searcher.index)
        self._cursors = Cursors(cursor_key or secrets.token_bytes(32))

    def similar_to_company(self, reference: str, query: SimilarQuery) -> SimilarToCompany:
        """Return the competitors of the company that `reference` names.

        Raises:
            UnknownCompany, AmbiguousCompany, TooFewWords: no company matches `reference`, several do, or it has too few
                words to rank by, even if the query has other valid anchors.

        Also raises the exceptions of `ranking`.
        """
        started = time.perf_counter()
        question = query.question(Anchor(company=reference))
        ranking = self.ranking_about(reference, question)
        anchor = ranking.anchors[0]
        assert anchor.document is not None  # noqa: S101  # the first anchor is a company, and it was resolved
        members = company_members(FoundCompany(anchor.document, anchor.confidence), reference, ranking.generation)
        return SimilarToCompany(**(members | self._members(question, ranking, started)))

    def similar_to_text(self, query: TextQuery) -> SimilarToText:
        """Return the companies nearest to a description in free text.

        Raises:
            EncoderNotLoaded: the encoder of the live generation is not loaded.

        Also raises the other exceptions of `ranking`.
        """
        started = time.perf_counter()
        question = query.question(Anchor(text=query.text))
        members = self._members(question, self.ranking(question), started)
        first = members["anchors"][0]
        return SimilarToText(**members, text=query.text, language=first.language, warning=first.warning)

    def rank(self, question: Question, *, by_id: bool = False) -> Ranking:
        """Return the hits of a question; `by_id` as in `ranking`. Raises what `ranking` raises."""
        started = time.perf_counter()
        return Ranking(**self._members(question, self.ranking(question, by_id=by_id), started))

    def rank_all(self, batch: Batch) -> BatchAnswer:
        """Return one entry per query of the batch: its hits, or the problem document of its error."""
        started = time.perf_counter()
        asked = [self._asked_or_error(question) for question in batch.questions]
        questions = [each for each in asked if isinstance(each, LibraryQuestion)]
        live, rankings = self.searcher.search_all(questions, before_each=self.before_each)
        found = iter(rankings)
        answers: list[Answered | Refused] = []
        for question, each in zip(batch.questions, asked, strict=True):
            ranking = next(found) if isinstance(each, LibraryQuestion) else each
            if isinstance(ranking, LibraryRanking):
                answers.append(Answered(answer=Ranking(**self._members(question, ranking, started))))
            else:
                problem = problem_of(ranking)
                document = problem_document(problem, path="/similar/batch")
                answers.append(Refused(status=problem.kind.status, problem=document))
        return BatchAnswer(answers=answers, generation=live.name, took_ms=_milliseconds_since(started))

    def locate(self, asked: Locate) -> Located:
        """Return the place of a company in a ranking. Raises what `asked` and `Searcher.locate` raise."""
        started = time.perf_counter()
        location = self.searcher.locate(self.asked(asked), asked.company)
        return Located(**located_members(location, asked.company), took_ms=_milliseconds_since(started))

    def ranking(self, question: Question, *, by_id: bool = False) -> LibraryRanking:
        """Return the ranking of a question: the page after its cursor, or the first page.

        `by_id`: its anchors and negatives are ids, never names.

        Raises:
            Problem: the cursor is damaged, or belongs to another query.

        Also raises the exceptions of `asked` and `Searcher.search`.
        """
        asked = replace(self.asked(question), by_id=by_id)
        after = self._cursors.read(question.cursor, digest=asked.digest()) if question.cursor else None
        return self.searcher.search(asked, after=after)

    def ids_of(self, references: Sequence[str]) -> list[str]:
        """Return the id of each of these companies once, by its id, domain, name or alias, never by a similar name.

        Raises:
            UnknownCompany, AmbiguousCompany: a reference matches no company, or several, or also the id of a deleted
                one; the message names the first few such references.
        """
        if len(references) > QUICKLY_NAMED:
            self._before_heavy_work()
        resolved = self._exactly(references, max_similar_searches=MAX_SIMILAR_NAMES)
        known = {each: one.document.company for each, one in resolved.items() if isinstance(one, FoundCompany)}
        by_name = [each for each, company in known.items() if company.id != each]
        for each in retry_if_retired(lambda: self._exact_resolver().deleted(by_name)):
            resolved[each] = deleted_or_named(each, known[each])
        if errors := [each for each in resolved.values() if not isinstance(each, FoundCompany)]:
            named = "; ".join(map(str, errors[:MAX_ERRORS_NAMED]))
            more = len(errors) - MAX_ERRORS_NAMED
            errors[0].args = (f"{named}; and {more:,} more" if more > 0 else named,)
            raise errors[0]
        return list(dict.fromkeys(company.id for company in known.values()))

    def known(self, references: Sequence[str]) -> tuple[dict[str, Company], set[str]]:
        """Return the only company that has each reference as its id, domain, name or alias, by reference.

        Also return those of the references that are ids of deleted companies.
        """
        if len(references) > QUICKLY_NAMED:
            self._before_heavy_work()
        deleted = retry_if_retired(lambda: self._exact_resolver().deleted(references))
        resolved = self._exactly(references, max_similar_searches=0).items()
        return {each: one.document.company for each, one in resolved if isinstance(one, FoundCompany)}, deleted

    def _exactly(self, references: Sequence[str], *, max_similar_searches: int) -> dict[str, Resolved]:
        def run_once() -> dict[str, Resolved]:
            return self._exact_resolver().companies(references, max_similar_searches=max_similar_searches)

        return retry_if_retired(run_once)

    def _exact_resolver(self) -> Resolver:
        return Resolver(self.searcher.index, self.searcher.live(), exact=True, shorten=without_description)

    def asked(self, question: Criteria) -> LibraryQuestion:
        """Return the library question, with the companies that are on the excluded lists now.

        Raises:
            UnknownList, WrongKindOfList: a list to exclude does not exist, or is a saved query.
            InvalidInput: the lists hold too many companies, or `rank` has no probability to filter by.
        """
        lists = shortlists(self._workspace, question.exclude_lists)
        if (count := sum(map(len, lists.values()))) > MAX_EXCLUDED:
            raise InvalidInput(
                f"the excluded lists have {count:,} companies together, and a query excludes at most {MAX_EXCLUDED:,}; "
                "exclude fewer lists"
            )
        asked = replace(question.asked(), exclude_lists=lists)
        named = count + len(question.exclude)
        if named > QUICKLY_NAMED or len(question.filters) > QUICKLY_FILTERED or asked.k > QUICKLY_RANKED:
            self._before_heavy_work()
        return asked

    def verdicts(self, anchor: str, user: str) -> dict[str, FeedbackEvent]:
        """Return the user's valid verdicts on pairs with the company `anchor`, by the id of the other company."""
        events = self.valid_events(anchor, user)
        return {event.hit if event.anchor == anchor else event.anchor: event for event in events}

    def valid_events(self, anchor: str, user: str = "") -> list[FeedbackEvent]:
        """Return the valid verdicts on pairs with the company `anchor`, of `user` or else of all users."""
        latest = latest_verdicts(self._events(anchor, user))
        return [event for by_user in latest.values() for event in by_user.values()]

    def ranking_about(self, reference: str, question: Question) -> LibraryRanking:
        """Return the ranking of a question whose anchor `reference` must be known.

        Raises:
            UnknownCompany, AmbiguousCompany, TooFewWords: it names no company, several, or one with too few words.

        Also raises the exceptions of `ranking`.
        """
        ranking = self.ranking(question)
        for each in ranking.unresolved:
            if (each.role, each.reference) == (Role.ANCHOR, reference):
                raise each.error
        return ranking

    def company(self, reference: str, *, exact: bool = False) -> CompanyAnswer:
        """Return the company that `reference` resolves to; if `exact`, only by its id, domain, name or alias.

        Raises:
            UnknownCompany, AmbiguousCompany: no company, or several, go by it.
        """
        found, live = self.searcher.company(reference, exact=exact)
        return CompanyAnswer(**company_members(found, reference, live))

    def segments(self, reference: str, *, exact: bool = False) -> CompanySegments:
        """Return the company that `reference` resolves to, and the lines of business in its description.

        Raises:
            UnknownCompany, AmbiguousCompany, EncoderNotLoaded: as `Searcher.segments`.
        """
        found, segments, live = self.searcher.segments(reference, exact=exact)
        return CompanySegments(
            **company_members(found, reference, live), segments=[segment_of(each) for each in segments]
        )

    def stored(self, company_id: str) -> CompanyAnswer:
        """Return the company with this id.

        Raises:
            Problem: no company has the id, although another may have it as its name, or in another case.
        """

        def run_once() -> CompanyAnswer:
            live = self.searcher.live()
            index = self.searcher.index
            if document := index.get(live.name, [company_id]).get(company_id):
                return CompanyAnswer(**company_members(FoundCompany(document), company_id, live))
            meant = index.get(live.name, [*possible_ids(company_id), *index.resolve(live.name, company_id)])
            raise Problem(
                problems.UNKNOWN_COMPANY,
                f"no company has the id {company_id!r} (ids are case-sensitive)",
                suggestions=[reference_of(each.company) for _, each in sorted(meant.items())],
            )

        return retry_if_retired(run_once)

    def find(self, query: FindQuery) -> FoundCompanies:
        """Return companies for a search box; a blank query finds none."""
        if query.limit > QUICKLY_RANKED:
            self._before_heavy_work()
        found, live = self.searcher.find(query.q, limit=query.limit)
        return FoundCompanies(query=query.q, companies=[record_of(each) for each in found], generation=live.name)

    def attributes(self) -> DeclaredAttributes:
        """Return the declared types of attributes."""
        declared = self.searcher.index.attributes()
        types = {
            name: DeclaredType(type="ordinal" if each.levels else "number", levels=each.levels)
            for name, each in declared.types.items()
        }
        return DeclaredAttributes(types=types, size=declared.size or None)

    def ready(self, feedback_trouble: Callable[[], str | None] = lambda: None) -> Ready:
        """Return the live generation, its model, and whether free text and feedback work."""

        def answer() -> Ready:
            live = self.searcher.live()
            texts = self.searcher.encoders.text_vectors(live)
            reason = texts.reason_unavailable(live)
            trouble = feedback_trouble()
            return Ready(
                generation=live.name,
                model=model_of(live),
                companies=self._counts.of(live.name),
                loaded_encoder_id=texts.encoder_id,
                free_text=reason is None,
                free_text_reason=reason,
                feedback=trouble is None,
                feedback_reason=trouble,
            )

        return retry_if_retired(answer)

    def _events(self, company: str, user: str) -> Iterator[FeedbackEvent]:
        if self._workspace is not None:
            for number, event in enumerate(self._workspace.events(company=company, user=user)):
                if number == QUICKLY_JUDGED:
                    self._before_heavy_work()
                yield event

    def _asked_or_error(self, question: BatchQuestion) -> LibraryQuestion | SimilarityError:
        try:
            return self.asked(question)
        except (InvalidInput, UnknownList, WrongKindOfList) as error:
            return error

    def _members(self, question: BatchQuestion, ranking: LibraryRanking, started: float) -> dict[str, Any]:
        """Return the fields of a `Ranking` response as keyword arguments."""
        members = None if question.fields is None else {"id", *question.fields}
        cursor = None if ranking.next is None else self._cursors.write(ranking.next)
        took = _milliseconds_since(started)
        return ranking_members(ranking, members) | {"next_cursor": cursor, "took_ms": took}


def _milliseconds_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
