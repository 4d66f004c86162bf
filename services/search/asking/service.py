"""What the service answers, without HTTP: questions in, answer models or Problems out.

Each question is answered from one generation: the one that is live when it begins, or that of the page
before. If that vanishes on the way (promoted over and retired), the question is asked once more from
the start.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from services.search.asking.answers import company_members, model_of, record_of
from services.search.asking.cursors import Cursors, Position
from services.search.asking.explaining import Explainer
from services.search.asking.generations import once_more
from services.search.asking.models import Models
from services.search.asking.question_schemas import Anchor, Batch, BatchQuestion, Question, SimilarQuery, TextQuery
from services.search.asking.questions import Understanding, digest_of, understand, words_of
from services.search.asking.ranking import Page, Ranker, Wanted
from services.search.asking.ranking_schemas import (
    Answered,
    BatchAnswer,
    Ranking,
    Refused,
    SimilarToCompany,
    SimilarToText,
)
from services.search.asking.recent_counts import RecentCounts
from services.search.asking.references import References
from services.search.asking.schemas import CompanyAnswer, FindQuery, FoundCompanies, Ready
from services.search.asking.shaping import asked_for, hits_of, miss_of
from services.search.asking.text_vectors import REMEMBERED
from services.search.wire import problems
from services.search.wire.problems import Problem, problem_document
from similarity.errors import InvalidInput
from similarity.index.protocol import CompanyIndex, Generation

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found for a question, before it is put into words: in which generation, about whom, and the hits."""

    generation: Generation
    understanding: Understanding
    page: Page
    next_cursor: str | None


class SearchService:
    """Answers from `index`; in free words, and with phrases as reasons, where `models` has the generation's.

    `cursor_key` signs cursors: processes that share it go on with each other's pages; without one, each
    process makes its own.
    """

    def __init__(self, index: CompanyIndex, models: Models | None = None, *, cursor_key: bytes | None = None) -> None:
        self.index = index
        self._models = models or Models({})
        self._counts = RecentCounts(index)
        self._cursors = Cursors(cursor_key or secrets.token_bytes(32))

    def live(self) -> Generation:
        """The live generation, whose encoder begins to be opened if it was just promoted."""
        live = self.index.live()
        self._models.notice(live)
        return live

    def similar_to_company(self, reference: str, query: SimilarQuery) -> SimilarToCompany:
        """The competitors of the company that `reference` names.

        Raises:
            Problem: no company, or several, go by that name, even where the other anchors (`also`) can be told.
        """
        started = time.perf_counter()
        question = query.question(Anchor(company=reference))

        def shape(found: Found) -> SimilarToCompany:
            for missed in found.understanding.misses:
                if (missed.role, missed.asked) == ("anchor", reference):
                    raise missed.problem
            [anchor, *_] = found.understanding.anchor_companies
            members = company_members(anchor, reference, found.generation)
            return SimilarToCompany(**(members | self._members(question, found, started)))

        return self.answer(question, shape)

    def similar_to_text(self, query: TextQuery) -> SimilarToText:
        """The companies nearest to a description in free words.

        Raises:
            Problem: the encoder of the live generation is not loaded.
        """
        started = time.perf_counter()
        question = query.question(Anchor(text=query.text))

        def shape(found: Found) -> SimilarToText:
            members = self._members(question, found, started)
            first = members["anchors"][0]
            return SimilarToText(**members, text=query.text, language=first.language, warning=first.warning)

        return self.answer(question, shape)

    def rank(self, question: Question) -> Ranking:
        """The hits of a question.

        Raises:
            Problem: none of its anchors can be told, or it needs what this service lacks.
        """
        started = time.perf_counter()
        return self.answer(question, lambda found: Ranking(**self._members(question, found, started)))

    def rank_all(self, batch: Batch) -> BatchAnswer:
        """The hits of several questions, each with a problem of its own if it has one."""
        started = time.perf_counter()

        def answer() -> BatchAnswer:
            live = self.live()
            self._encode_together(batch, live)
            answers = [self._answered(question, live) for question in batch.questions]
            return BatchAnswer(answers=answers, generation=live.name, took_ms=_milliseconds_since(started))

        return once_more(answer)

    def answer(self, question: Question, shape: Callable[[Found], Answer]) -> Answer:
        """`shape` of what is found for a question; for answers of other forms than a ranking.

        Raises:
            Problem: as `rank`, or its cursor is not one of this question, or its generation is gone.
        """
        after = self._cursors.read(question.cursor, digest=digest_of(question)) if question.cursor else None

        def attempt() -> Answer:
            generation = self._generation_of(after) if after else self.live()
            return shape(self._found(question, generation, after))

        return once_more(attempt)

    def company(self, reference: str) -> CompanyAnswer:
        """The company that `reference` (id, domain, name or alias) names.

        Raises:
            Problem: no company, or several, go by that name.
        """

        def answer() -> CompanyAnswer:
            live = self.live()
            found = References(self.index, live).company(reference)
            return CompanyAnswer(**company_members(found, reference, live))

        return once_more(answer)

    def find(self, query: FindQuery) -> FoundCompanies:
        """Companies for a search box; a blank query finds none."""

        def answer() -> FoundCompanies:
            live = self.live()
            found = self.index.find(live.name, query.q, limit=query.limit) if query.q.strip() else []
            return FoundCompanies(query=query.q, companies=[record_of(each) for each in found], generation=live.name)

        return once_more(answer)

    def ready(self, feedback_trouble: Callable[[], str | None] = lambda: None) -> Ready:
        """What this process would answer from, and whether feedback works. Raises what the index raises."""

        def answer() -> Ready:
            live = self.live()
            texts = self._models.texts(live)
            reason = texts.missing_for(live)
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

        return once_more(answer)

    def _found(self, question: BatchQuestion, generation: Generation, after: Position | None = None) -> Found:
        if question.min_probability is not None and generation.calibration is None:
            raise Problem(
                problems.NO_CALIBRATION, f"generation {generation.name} has no calibration; leave min_probability out"
            )
        understanding = understand(
            question,
            References(self.index, generation),
            lambda words: self._models.texts(generation).of(words, generation),
        )
        wanted = Wanted(
            generation=generation,
            vector=understanding.vector,
            k=question.k,
            named=[each.company for each in (*understanding.anchor_companies, *understanding.negative_companies)],
            left_out=[each.company for each in understanding.excluded],
            positives=[] if understanding.is_plain else [each.vector for each in understanding.anchors],
            filters=[each.chosen() for each in question.filters],
            exclude=understanding.exclude,
            words=words_of(understanding) if question.mode == "hybrid" else "",
            min_probability=question.min_probability,
            after=after,
        )
        page = Ranker(self.index, wanted).page()
        return Found(
            generation=generation,
            understanding=understanding,
            page=page,
            next_cursor=self._cursor_after(page, question, generation) if page.more else None,
        )

    def _cursor_after(self, page: Page, question: BatchQuestion, generation: Generation) -> str:
        last = page.hits[-1]
        position = Position(
            generation=generation.name,
            digest=digest_of(question),
            score=last.hit.score,
            id=last.hit.company.id,
            rank=last.rank,
        )
        return self._cursors.write(position)

    def _generation_of(self, position: Position) -> Generation:
        found = next((each for each in self.index.generations() if each.name == position.generation), None)
        if found is None:
            raise Problem(
                problems.CURSOR_EXPIRED,
                f"generation {position.generation}, which the page before came from, was retired; ask again without "
                "cursor",
            )
        return found

    def _members(self, question: BatchQuestion, found: Found, started: float) -> dict[str, Any]:
        """The members of a `Ranking`."""
        understanding, page = found.understanding, found.page
        explainer, warnings = self._explainer_for(question, found)
        duplicates = iter(page.of_named)
        anchors, negatives = (
            [asked_for(each, () if each.company is None else next(duplicates)) for each in asked]
            for asked in (understanding.anchors, understanding.negatives)
        )
        return {
            "anchors": anchors,
            "negatives": negatives,
            "misses": [miss_of(each) for each in understanding.misses],
            "hits": hits_of(page, understanding.anchors, question, explainer),
            "next_cursor": found.next_cursor,
            "warnings": warnings,
            "generation": found.generation.name,
            "model": model_of(found.generation),
            "approximate": page.approximate,
            "took_ms": _milliseconds_since(started),
        }

    def _explainer_for(self, question: BatchQuestion, found: Found) -> tuple[Explainer | None, list[str]]:
        """The explainer, if the question wants it and it fits the generation; else a warning that it was wanted."""
        if not question.reasons or not found.page.hits:
            return None, []
        explainer = self._models.explainer(found.generation)
        if explainer is not None:
            return explainer, []
        reason = self._models.texts(found.generation).missing_for(found.generation)
        return None, [f"the phrases that carry the matches were not looked for: {reason}"]

    def _answered(self, question: BatchQuestion, live: Generation) -> Answered | Refused:
        started = time.perf_counter()
        try:
            found = self._found(question, live)
            return Answered(answer=Ranking(**self._members(question, found, started)))
        except InvalidInput as error:
            problem = Problem(problems.INVALID_REQUEST, str(error), errors=[])
        except Problem as refusal:
            problem = refusal
        return Refused(status=problem.kind.status, problem=problem_document(problem, path="/similar/batch"))

    def _encode_together(self, batch: Batch, live: Generation) -> None:
        """Has the texts of all questions encoded in one call; where that cannot be, each question says so itself."""
        asked = [each for question in batch.questions for each in (*question.anchors, *question.negatives)]
        texts = dict.fromkeys(each.text for each in asked if each.text is not None)
        if texts and (vectors := self._models.texts(live)).missing_for(live) is None:
            vectors.of(list(texts)[:REMEMBERED], live)


def _milliseconds_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
