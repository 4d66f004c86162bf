"""Competitors of companies and descriptions: the one search behind library, command line and service.

    searcher = Searcher(index, encoders)
    for hit in searcher.search("nike").hits:
        print(hit.rank, hit.company.name, hit.probability)

Each question is answered from one generation: the live one, or that of the page before. If it vanishes
meanwhile (another was promoted and it was retired), the question is answered once more from the start.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import NamedTuple, TypeAlias, TypeVar

from similarity.company import Company, EmbeddedCompany
from similarity.errors import InvalidInput, UnknownGeneration
from similarity.index.protocol import CompanyIndex, Generation
from similarity.model.encoder_protocol import Encoder
from similarity.search.errors import EncoderNotLoaded, NotCalibrated, RankingExpired
from similarity.search.explanation import CarryingPhrase, SharedFact, facts_of, shared_facts
from similarity.search.query_encoders import QueryEncoders
from similarity.search.question import Anchor, Question
from similarity.search.ranking import Page, PageRequest, Position, Ranked, Ranker
from similarity.search.resolution import ResolvedAnchor, ResolvedQuestion, Unresolved, resolve_question
from similarity.search.resolver import Resolver
from similarity.search.text_vectors import REMEMBERED

Answer = TypeVar("Answer")


class Hit(NamedTuple):
    """A competitor.

    `score` is the cosine to the query. `probability`, by the cosine to the nearest anchor, is None without a
    calibration. `duplicates` are ids of the same company further down. `phrases` carry the match, strongest
    first; None where they were not looked for.
    """

    rank: int
    company: Company
    score: float
    probability: float | None
    version: int
    embedded_at: datetime
    language: str
    duplicates: tuple[str, ...] = ()
    shared: tuple[SharedFact, ...] = ()
    phrases: tuple[CarryingPhrase, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The hits of a question, best first, all from one `generation`.

    `unresolved` are references that name no company, or several; the rest of the question was answered.
    `next` is where the following page begins, None on the last one. `warnings` say what could not be done.
    """

    generation: Generation
    anchors: tuple[ResolvedAnchor, ...]
    negatives: tuple[ResolvedAnchor, ...]
    unresolved: tuple[Unresolved, ...]
    hits: tuple[Hit, ...]
    next: Position | None
    warnings: tuple[str, ...]
    approximate: bool


RankingOrError: TypeAlias = Ranking | InvalidInput | EncoderNotLoaded


class Searcher:
    """Searches `index`. Free texts and phrases need the live generation's encoder among `encoders` (by id).

    Thread-safe. The index stays the caller's to close.
    """

    def __init__(self, index: CompanyIndex, encoders: Mapping[str, Encoder] | QueryEncoders | None = None) -> None:
        self.index = index
        self.encoders = encoders if isinstance(encoders, QueryEncoders) else QueryEncoders(encoders or {})

    def live(self) -> Generation:
        """Return the live generation. Its encoder begins to be opened in the background.

        Raises:
            NoLiveGeneration: there is none yet.
        """
        live = self.index.live()
        self.encoders.notice(live)
        return live

    def search(self, question: Question | str, *, after: Position | None = None) -> Ranking:
        """Return the competitors that `question` asks for; a str is a company's id, domain, name or alias.

        `after` is `next` of the page before, to the same question.

        Raises:
            UnknownCompany, AmbiguousCompany: no anchor names one company.
            EncoderNotLoaded: the question has free text, and the generation's encoder is not among the encoders.
            NotCalibrated: `min_probability` is given, and the generation has no calibration.
            RankingExpired: the generation of the page before was retired.
            InvalidInput: anchors and negatives contradict each other.
        """
        asked = Question(anchors=[Anchor(company=question)]) if isinstance(question, str) else question

        def answer() -> Ranking:
            return self._ranking(asked, self._generation_of(after) if after else self.live(), after)

        return retry_if_retired(answer)

    def search_all(self, questions: Sequence[Question]) -> tuple[Generation, list[RankingOrError]]:
        """Return the generation that answered, and for each question its ranking or the error that `search` raises."""

        def answer() -> tuple[Generation, list[RankingOrError]]:
            live = self.live()
            self._encode_together(questions, live)
            return live, [self._ranking_or_error(question, live) for question in questions]

        return retry_if_retired(answer)

    def company(self, reference: str) -> tuple[EmbeddedCompany, Generation]:
        """Return the company that goes by `reference` (id, domain, name or alias), and the generation it is from.

        Raises:
            UnknownCompany, AmbiguousCompany: no company, or several, go by it.
        """

        def answer() -> tuple[EmbeddedCompany, Generation]:
            live = self.live()
            return Resolver(self.index, live).company(reference), live

        return retry_if_retired(answer)

    def find(self, query: str, *, limit: int = 10) -> tuple[list[Company], Generation]:
        """Return companies for a search box, and the generation they are from; a blank query finds none."""

        def answer() -> tuple[list[Company], Generation]:
            live = self.live()
            return self.index.find(live.name, query, limit=limit) if query.strip() else [], live

        return retry_if_retired(answer)

    def _ranking(self, question: Question, generation: Generation, after: Position | None = None) -> Ranking:
        if question.min_probability is not None and generation.calibration is None:
            raise NotCalibrated(f"generation {generation.name} has no calibration; leave min_probability out")
        resolved = resolve_question(
            question,
            Resolver(self.index, generation),
            lambda texts: self.encoders.texts(generation).of(texts, generation),
        )
        page = Ranker(self.index, _page_request(question, resolved, generation, after)).page()
        phrases, warnings = self._phrases(question, resolved, page, generation)
        described = [_described(anchor) for anchor in resolved.anchors]
        facts = facts_of(described)
        duplicates = iter(page.of_named)
        anchors, negatives = (
            tuple(
                each if each.document is None else replace(each, duplicates=tuple(next(duplicates))) for each in group
            )
            for group in (resolved.anchors, resolved.negatives)
        )
        return Ranking(
            generation=generation,
            anchors=anchors,
            negatives=negatives,
            unresolved=resolved.unresolved,
            hits=tuple(
                _hit(ranked, shared_facts(facts, ranked.hit.company), phrases.get(ranked.rank)) for ranked in page.hits
            ),
            next=_position(page.hits[-1], question, generation) if page.more else None,
            warnings=warnings,
            approximate=page.approximate,
        )

    def _ranking_or_error(self, question: Question, live: Generation) -> RankingOrError:
        try:
            return self._ranking(question, live)
        except (InvalidInput, EncoderNotLoaded) as error:
            return error

    def _phrases(
        self, question: Question, resolved: ResolvedQuestion, page: Page, generation: Generation
    ) -> tuple[dict[int, tuple[CarryingPhrase, ...]], tuple[str, ...]]:
        """The phrases of the first `question.explain` hits by rank; a warning where the encoder is not loaded."""
        first = page.hits[: question.explain]
        if not first:
            return {}, ()
        explainer = self.encoders.explainer(generation)
        if explainer is None:
            reason = self.encoders.texts(generation).missing_for(generation)
            return {}, (f"the phrases that carry the matches were not looked for: {reason}",)
        described = [_described(anchor) for anchor in resolved.anchors]
        phrases = explainer.phrases(described, [ranked.hit.company for ranked in first])
        return {ranked.rank: of_hit for ranked, of_hit in zip(first, phrases, strict=True)}, ()

    def _generation_of(self, position: Position) -> Generation:
        found = next((each for each in self.index.generations() if each.name == position.generation), None)
        if found is None:
            raise RankingExpired(
                f"generation {position.generation}, which the page before came from, was retired; ask again from the "
                "first page"
            )
        return found

    def _encode_together(self, questions: Sequence[Question], live: Generation) -> None:
        """Encode the texts of all questions in one call; if the encoder is not loaded, each question says so itself."""
        anchors = (each for question in questions for each in (*question.anchors, *question.negatives))
        texts = list(islice(dict.fromkeys(each.text for each in anchors if each.text is not None), REMEMBERED))
        if texts and (vectors := self.encoders.texts(live)).missing_for(live) is None:
            vectors.of(texts, live)


def retry_if_retired(answer: Callable[[], Answer]) -> Answer:
    """Return `answer()`; call it once more if the generation it began with was retired meanwhile."""
    try:
        return answer()
    except UnknownGeneration:
        return answer()


def _page_request(
    question: Question, resolved: ResolvedQuestion, generation: Generation, after: Position | None
) -> PageRequest:
    return PageRequest(
        generation=generation,
        vector=resolved.vector,
        k=question.k,
        named=[document.company for document in resolved.documents],
        left_out=[document.company for document in resolved.excluded],
        positives=[] if resolved.has_one_anchor else [each.vector for each in resolved.anchors],
        filters=question.filters,
        exclude=resolved.excluded_ids,
        words=resolved.words if question.hybrid else "",
        min_probability=question.min_probability,
        after=after,
    )


def _hit(ranked: Ranked, shared: tuple[SharedFact, ...], phrases: tuple[CarryingPhrase, ...] | None) -> Hit:
    hit = ranked.hit
    return Hit(
        rank=ranked.rank,
        company=hit.company,
        score=hit.score,
        probability=ranked.probability,
        version=hit.version,
        embedded_at=hit.embedded_at,
        language=hit.language,
        duplicates=tuple(ranked.duplicates),
        shared=shared,
        phrases=phrases,
    )


def _position(last: Ranked, question: Question, generation: Generation) -> Position:
    return Position(
        generation=generation.name,
        digest=question.digest(),
        score=last.hit.score,
        id=last.hit.company.id,
        rank=last.rank,
    )


def _described(anchor: ResolvedAnchor) -> Company | str:
    return anchor.reference if anchor.document is None else anchor.document.company
