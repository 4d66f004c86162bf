"""Search for the competitors of a company or of a free-text description.

The library, the command line and the service all use this module.

    searcher = Searcher(index, encoders)
    for hit in searcher.search("nike").hits:
        print(hit.rank, hit.company.name, hit.probability)

Each query reads one generation: the live generation or, for a later page, the generation of the previous page. If
the generation is retired while the query runs, the query is run once more.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from similarity.company import Company
from similarity.errors import InvalidInput, UnknownGeneration
from similarity.index.attributes import AttributeSchema
from similarity.index.protocol import CompanyIndex, Generation
from similarity.model.encoder_protocol import Encoder
from similarity.search.errors import EncoderNotLoaded, NotCalibrated, RankingExpired
from similarity.search.explanations.explanation import ExplainingPhrase, facts_of, shared_facts
from similarity.search.explanations.segments import Segment
from similarity.search.location import Location, place_of
from similarity.search.names.namesakes import namesake_warning
from similarity.search.names.resolver import FoundCompany, Resolver
from similarity.search.names.suggestions import suggested_companies
from similarity.search.queries.country_filters import with_countries
from similarity.search.queries.encoders import QueryEncoders
from similarity.search.queries.level_filters import with_levels
from similarity.search.queries.question import Anchor, Question
from similarity.search.queries.resolution import (
    MAX_SIMILAR_NAMES,
    ResolvedAnchor,
    ResolvedQuestion,
    require_vector,
    resolve_question,
)
from similarity.search.queries.text_vectors import TEXT_CACHE_SIZE
from similarity.search.ranking import Ranking, RankingOrError, hit_of
from similarity.search.ranking_page import PageBuilder, PageRequest, Position, RankedHit
from similarity.search.ranking_warnings import ranking_warnings
from similarity.search.readability import language_warning
from similarity.search.reranking.rank import Rank
from similarity.search.reranking.scores import RankedAnchor

MAX_BATCH_CHARACTERS = 100_000_000
"""The rankings of a batch are in memory together. Once their companies exceed this size, no further query is run."""
TOO_LONG = InvalidInput(
    "the rankings before this one are too long in total; send the queries in several batches, or use a smaller k"
)

T = TypeVar("T")


class Searcher:
    """Searches `index` for competitors and companies. Thread-safe. The caller closes the index.

    `encoders`: encoders by id. The encoder of the live generation encodes free texts and explains hits by phrases;
    queries that need neither run without it.
    """

    def __init__(self, index: CompanyIndex, encoders: Mapping[str, Encoder] | QueryEncoders | None = None) -> None:
        self.index = index
        self.encoders = encoders if isinstance(encoders, QueryEncoders) else QueryEncoders(encoders or {})

    def live(self) -> Generation:
        """Return the live generation; its encoder is loaded in the background.

        Raises:
            NoLiveGeneration: the index has no live generation yet.
        """
        live = self.index.live()
        self.encoders.load_in_background(live)
        return live

    def search(self, question: Question | str | int, *, after: Position | None = None) -> Ranking:
        """Return the ranking for `question`: a Question, or the id, domain, name or alias of the only anchor.

        `after`: the `next` of the previous page of the same query; None for the first page.

        Raises:
            UnknownCompany, AmbiguousCompany, TooFewWords: no anchor could be resolved, or a text has too few words.
            EncoderNotLoaded: the query has free text or a segment, but the generation's encoder is not available.
            NotCalibrated: `min_probability` is given, and the generation has no probabilities.
            RankingExpired: the generation of the previous page was retired.
            InvalidInput: a company is both anchor and negative, the vectors of anchors and negatives cancel out, or a
                segment or a level in a filter does not exist.
        """
        query = question if isinstance(question, Question) else Question(anchors=[Anchor(company=str(question))])

        def run_once() -> Ranking:
            return self._ranking(query, self._generation_of(after) if after else self.live(), after)

        return retry_if_retired(run_once)

    def search_all(
        self, questions: Sequence[Question], *, before_each: Callable[[], None] = lambda: None
    ) -> tuple[Generation, list[RankingOrError]]:
        """Return the live generation, and for each query its ranking or the error that `search` raises.

        Queries after MAX_BATCH_CHARACTERS of rankings are not run: their error is TOO_LONG. `before_each` may raise.
        """

        def run_once() -> tuple[Generation, list[RankingOrError]]:
            live = self.live()
            self._encode_together(questions, live)
            max_similar_names = max(MAX_SIMILAR_NAMES // max(len(questions), 1), 1)
            rankings: list[RankingOrError] = []
            characters = 0
            for question in questions:
                if characters > MAX_BATCH_CHARACTERS:
                    rankings.append(TOO_LONG)
                    continue
                before_each()
                ranking = self._ranking_or_error(question, live, max_similar_names)
                rankings.append(ranking)
                if isinstance(ranking, Ranking):
                    characters += sum(hit.company.characters() for hit in ranking.hits)
            return live, rankings

        return retry_if_retired(run_once)

    def locate(self, question: Question, reference: str) -> Location:
        """Return the place of the company `reference` in the ranking for `question`, and why it is there.

        Raises:
            UnknownCompany, AmbiguousCompany: `reference` cannot be resolved, or none of the anchors can.
            TooFewWords: the description of the company has too few words to rank it by, or as `search`.
            EncoderNotLoaded, NotCalibrated, InvalidInput: as `search`.
        """

        def run_once() -> Location:
            live = self.live()
            found = Resolver(self.index, live, question.exact).company(reference)
            require_vector(found.document)
            resolved = self._resolved(question, live, MAX_SIMILAR_NAMES)
            request = self._page_request(question, resolved, live, None)
            company = found.document.company
            place = place_of(self.index, request, resolved, found.document)
            unread = language_warning("description", company.description, found.document.language, live.languages)
            if resolved.language_warnings or unread:
                place = replace(place, probability=None)
            phrases, warnings = self._phrases(resolved, [company], live)
            namesakes = (namesake_warning(reference, company, found.others),) if found.others else ()
            return Location(
                generation=live,
                found=found,
                place=place,
                shared=shared_facts(facts_of([_company_or_text(anchor) for anchor in resolved.anchors]), company),
                moved=PageBuilder(self.index, request).facts_of(company),
                phrases=phrases[0] if phrases else None,
                warnings=(*namesakes, *resolved.namesake_warnings, *resolved.language_warnings, *warnings),
            )

        return retry_if_retired(run_once)

    def company(self, reference: str, *, exact: bool = False) -> tuple[FoundCompany, Generation]:
        """Return the company that `reference` resolves to (see `Resolver`), and the generation it was read from.

        Raises:
            UnknownCompany, AmbiguousCompany: no company matches `reference`, or several companies match it.
        """

        def run_once() -> tuple[FoundCompany, Generation]:
            live = self.live()
            return Resolver(self.index, live, exact).company(reference), live

        return retry_if_retired(run_once)

    def segments(self, reference: str, *, exact: bool = False) -> tuple[FoundCompany, tuple[Segment, ...], Generation]:
        """Return the company that `reference` resolves to, and the segments of its description, if it has any.

        Raises:
            UnknownCompany, AmbiguousCompany: as `company`.
            EncoderNotLoaded: the encoder of the live generation is not available.
        """

        def run_once() -> tuple[FoundCompany, tuple[Segment, ...], Generation]:
            live = self.live()
            found = Resolver(self.index, live, exact).company(reference)
            return found, self._segments([found.document.company], live)[0], live

        return retry_if_retired(run_once)

    def find(self, query: str, *, limit: int = 10) -> tuple[list[Company], Generation]:
        """Return the `suggested_companies` of a query, and their generation."""

        def run_once() -> tuple[list[Company], Generation]:
            live = self.live()
            return suggested_companies(self.index, live, query, limit=limit), live

        return retry_if_retired(run_once)

    def _ranking(
        self,
        question: Question,
        generation: Generation,
        after: Position | None = None,
        *,
        max_similar_names: int = MAX_SIMILAR_NAMES,
    ) -> Ranking:
        resolved = self._resolved(question, generation, max_similar_names)
        request = self._page_request(question, resolved, generation, after)
        page = PageBuilder(self.index, request).page()
        explained = page.hits[: question.explain]
        found, warnings = self._phrases(resolved, [ranked.hit.company for ranked in explained], generation)
        phrases = {ranked.rank: of_hit for ranked, of_hit in zip(explained, found, strict=bool(found))}
        facts = facts_of([_company_or_text(anchor) for anchor in resolved.anchors])
        duplicates = iter(page.query_duplicates)  # of the anchors, then of the negatives
        anchors = _with_duplicates(resolved.anchors, duplicates)
        negatives = _with_duplicates(resolved.negatives, duplicates)
        return Ranking(
            generation=generation,
            anchors=anchors,
            negatives=negatives,
            unresolved=resolved.unresolved,
            hits=tuple(
                hit_of(
                    ranked,
                    shared_facts(facts, ranked.hit.company),
                    phrases.get(ranked.rank),
                    languages=generation.languages,
                    with_probability=not resolved.language_warnings,
                )
                for ranked in page.hits
            ),
            next=_position(page.hits[-1], question, generation) if page.has_next else None,
            warnings=(
                *(() if after else resolved.namesake_warnings),
                *ranking_warnings(self.index, request, page),
                *warnings,
            ),
            approximate=page.approximate,
        )

    def _ranking_or_error(self, question: Question, live: Generation, max_similar_names: int) -> RankingOrError:
        try:
            return self._ranking(question, live, max_similar_names=max_similar_names)
        except (InvalidInput, EncoderNotLoaded) as error:
            return error

    def _resolved(self, question: Question, generation: Generation, max_similar_names: int) -> ResolvedQuestion:
        weights = generation.calibration if question.rank is Rank.COSINE else generation.second_stage
        if question.min_probability is not None and weights is None:
            has_none = f"generation {generation.name} has no probabilities for rank={question.rank}"
            raise NotCalibrated(f"{has_none}; remove min_probability")
        return resolve_question(
            question,
            Resolver(self.index, generation, question.exact),
            lambda texts: self.encoders.text_vectors(generation).encode(texts, generation),
            lambda companies: self._segments(companies, generation),
            max_similar_names=max_similar_names,
        )

    def _page_request(
        self, question: Question, resolved: ResolvedQuestion, generation: Generation, after: Position | None
    ) -> PageRequest:
        return PageRequest(
            generation=generation,
            vector=resolved.vector,
            k=question.k,
            anchors=[_ranked_anchor(each) for each in resolved.anchors],
            negatives=[_ranked_anchor(each) for each in resolved.negatives],
            rank=question.rank,
            query_companies=[document.company for document in resolved.documents],
            excluded=list(resolved.excluded.values()),
            excluded_ids=resolved.excluded_ids,
            filters=with_countries(
                self.index, generation.name, with_levels(self.index, generation.name, question.filters)
            ),
            min_probability=question.min_probability,
            schema=self.index.attributes() if question.rank is Rank.COMPARABLE else AttributeSchema(),
            after=after,
        )

    def _phrases(
        self, resolved: ResolvedQuestion, companies: Sequence[Company], generation: Generation
    ) -> tuple[list[tuple[ExplainingPhrase, ...]], tuple[str, ...]]:
        """Return the phrases that explain each of `companies`; if the encoder is missing, none and a warning."""
        if not companies:
            return [], ()
        explainer = self.encoders.explainer(generation)
        if explainer is None:
            reason = self.encoders.text_vectors(generation).reason_unavailable(generation)
            return [], (f"no phrases were computed: {reason}",)
        anchors = [_company_or_text(anchor) for anchor in resolved.anchors]
        return explainer.phrases(anchors, companies, segments=[anchor.segment for anchor in resolved.anchors]), ()

    def _segments(self, companies: Sequence[Company], generation: Generation) -> list[tuple[Segment, ...]]:
        explainer = self.encoders.explainer(generation)
        if explainer is None:
            raise EncoderNotLoaded(self.encoders.text_vectors(generation).reason_unavailable(generation) or "")
        return explainer.segments(companies)

    def _generation_of(self, position: Position) -> Generation:
        generations = {generation.name: generation for generation in self.index.generations()}
        if position.generation not in generations:
            raise RankingExpired(
                f"generation {position.generation} of the previous page was retired; start again from the first page"
            )
        return generations[position.generation]

    def _encode_together(self, questions: Sequence[Question], live: Generation) -> None:
        """Encode the free texts of all queries in one call, so that the queries find the vectors in the cache.

        If the encoder is missing, does nothing: each query with free text then raises EncoderNotLoaded.
        """
        anchors = (anchor for question in questions for anchor in (*question.anchors, *question.negatives))
        distinct = dict.fromkeys(anchor.text for anchor in anchors if anchor.text is not None)
        texts = list(islice(distinct, TEXT_CACHE_SIZE))
        if texts and (vectors := self.encoders.text_vectors(live)).reason_unavailable(live) is None:
            vectors.encode(texts, live)


def retry_if_retired(run_once: Callable[[], T]) -> T:
    """Return the result of `run_once`; if the generation that it reads is retired during the call, call it again."""
    try:
        return run_once()
    except UnknownGeneration:
        return run_once()


def _with_duplicates(anchors: Sequence[ResolvedAnchor], duplicates: Iterator[list[str]]) -> tuple[ResolvedAnchor, ...]:
    """Return the anchors with their duplicates, which `duplicates` yields for each anchor that is a company."""
    return tuple(
        anchor if anchor.document is None else replace(anchor, duplicates=tuple(next(duplicates))) for anchor in anchors
    )


def _position(last: RankedHit, question: Question, generation: Generation) -> Position:
    return Position(
        generation=generation.name,
        digest=question.digest(),
        score=last.hit.score,
        id=last.hit.company.id,
        rank=last.rank,
    )


def _ranked_anchor(anchor: ResolvedAnchor) -> RankedAnchor:
    return RankedAnchor(
        described=anchor.described, vector=anchor.vector, weight=anchor.weight, language=anchor.language
    )


def _company_or_text(anchor: ResolvedAnchor) -> Company | str:
    return anchor.reference if anchor.document is None else anchor.document.company
