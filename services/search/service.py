"""What the service answers, without HTTP: questions in, answer models or Problems out.

Each question is answered from one generation: the one that is live when it begins. If that vanishes
on the way (promoted over and retired), the question is asked once more from the start.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from services.search import problems
from services.search.answers import company_members, hits_of, language_warning, model_of, record_of, reference_of
from services.search.problems import Problem
from services.search.schemas import (
    CompanyAnswer,
    FindQuery,
    FoundCompanies,
    Ready,
    SimilarQuery,
    SimilarToCompany,
    SimilarToText,
    TextQuery,
)
from similarity.company import Company, EmbeddedCompany, Vector, name_key
from similarity.errors import UnknownGeneration
from similarity.index.protocol import CompanyIndex, FieldFilter, Generation, SimilarCompanies
from similarity.language import detect_language

CANDIDATES_SHOWN = 20
SUGGESTIONS_SHOWN = 5

Answer = TypeVar("Answer")


class QueryEncoder(Protocol):
    """What free text needs of an encoder; `similarity.encoder.TextEncoder` is one."""

    @property
    def encoder_id(self) -> str: ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, float32 `[len(texts), dimension]`."""


@dataclass(frozen=True, slots=True)
class SearchService:
    """Answers from `index`; free text only with the `encoder` that made the live generation."""

    index: CompanyIndex
    encoder: QueryEncoder | None = None

    def similar_to_company(self, reference: str, query: SimilarQuery) -> SimilarToCompany:
        """The competitors of the company that `reference` names. No model runs.

        Raises:
            Problem: no company, or several, go by that name.
        """
        started = time.perf_counter()

        def answer(live: Generation) -> SimilarToCompany:
            anchor = self._anchor(live, reference)
            found = self._nearest(live, anchor.vector, query, exclude=(anchor.id,))
            return SimilarToCompany(
                **company_members(anchor, reference, live),
                hits=hits_of(found, live.calibration),
                approximate=found.approximate,
                took_ms=_milliseconds_since(started),
            )

        return self._from_live(answer)

    def similar_to_text(self, query: TextQuery) -> SimilarToText:
        """The companies nearest to a description in free words.

        Raises:
            Problem: the encoder of the live generation is not loaded.
        """
        started = time.perf_counter()

        def answer(live: Generation) -> SimilarToText:
            found = self._nearest(live, self._vector(live, query.text), query, exclude=())
            language = detect_language(query.text)
            return SimilarToText(
                text=query.text,
                language=language,
                warning=language_warning("text", language),
                hits=hits_of(found, live.calibration),
                generation=live.name,
                model=model_of(live),
                approximate=found.approximate,
                took_ms=_milliseconds_since(started),
            )

        return self._from_live(answer)

    def company(self, reference: str) -> CompanyAnswer:
        """The company that `reference` (id, domain, name or alias) names.

        Raises:
            Problem: no company, or several, go by that name.
        """
        return self._from_live(
            lambda live: CompanyAnswer(**company_members(self._anchor(live, reference), reference, live))
        )

    def find(self, query: FindQuery) -> FoundCompanies:
        """Companies for a search box; a blank query finds none."""

        def answer(live: Generation) -> FoundCompanies:
            found = self.index.find(live.name, query.q, limit=query.limit) if query.q.strip() else []
            return FoundCompanies(query=query.q, companies=[record_of(each) for each in found], generation=live.name)

        return self._from_live(answer)

    def ready(self) -> Ready:
        """What this process would answer from. Raises what the index raises where it would not."""

        def answer(live: Generation) -> Ready:
            reason = self._no_free_text(live)
            return Ready(
                generation=live.name,
                model=model_of(live),
                companies=self.index.stats(live.name).companies,
                loaded_encoder_id=self.encoder.encoder_id if self.encoder else None,
                free_text=reason is None,
                free_text_reason=reason,
            )

        return self._from_live(answer)

    def _from_live(self, answer: Callable[[Generation], Answer]) -> Answer:
        try:
            return answer(self.index.live())
        except UnknownGeneration:
            return answer(self.index.live())

    def _anchor(self, live: Generation, reference: str) -> EmbeddedCompany:
        by_id = self.index.get(live.name, [reference])
        if reference in by_id:
            return by_id[reference]
        ids = self.index.resolve(live.name, reference)
        found = self.index.get(live.name, ids[:CANDIDATES_SHOWN])
        if not found:
            raise self._unknown(live, reference)
        if len(ids) > 1:
            raise Problem(
                problems.CONTESTED_NAME,
                f"{len(ids)} companies go by {reference!r}; ask again with the id of one of the candidates",
                candidates=[reference_of(found[each].company) for each in ids if each in found],
            )
        return found[ids[0]]

    def _unknown(self, live: Generation, reference: str) -> Problem:
        near = self._alike(live, reference)
        hint = f"; did you mean {near[0].name} ({near[0].id})?" if near else ""
        return Problem(
            problems.UNKNOWN_COMPANY,
            f"no company has the id, domain, name or alias {reference!r}{hint}",
            suggestions=[reference_of(company) for company in near],
        )

    def _alike(self, live: Generation, reference: str) -> list[Company]:
        """Companies that may be meant: found by what was typed, else those whose name starts with its first half."""
        near = self.index.find(live.name, reference, limit=SUGGESTIONS_SHOWN)
        if near:
            return near
        half = name_key(reference[: max(3, len(reference) // 2 + 1)])
        return [
            company
            for company in self.index.find(live.name, half, limit=SUGGESTIONS_SHOWN)
            if any(name_key(name).startswith(half) for name in (company.name, *company.aliases))
        ]

    def _nearest(
        self, live: Generation, vector: Vector, query: SimilarQuery, *, exclude: tuple[str, ...]
    ) -> SimilarCompanies:
        return self.index.similar(live.name, vector, k=query.k, filters=_filters(query), exclude=exclude)

    def _vector(self, live: Generation, text: str) -> Vector:
        reason = self._no_free_text(live)
        if reason is not None or self.encoder is None:
            raise Problem(problems.ENCODER_NOT_LOADED, reason or "")
        vector: Vector = self.encoder.encode([text])[0]
        return vector

    def _no_free_text(self, live: Generation) -> str | None:
        """Why free text cannot be answered; None if it can."""
        if self.encoder is None:
            return (
                f"no model bundle is loaded; start the service with the one of encoder {live.encoder_id} "
                "(--bundle FOLDER or SIMILARITY_BUNDLE)"
            )
        if self.encoder.encoder_id != live.encoder_id:
            return (
                f"the live generation was made with encoder {live.encoder_id}, but encoder {self.encoder.encoder_id} "
                "is loaded; start the service with the generation's own bundle (--bundle FOLDER or SIMILARITY_BUNDLE)"
            )
        return None


def _filters(query: SimilarQuery) -> list[FieldFilter]:
    chosen = {"country": query.country, "industry": query.industry}
    given = {field: tuple(value for value in values if value.strip()) for field, values in chosen.items()}
    return [FieldFilter(field=field, any_of=values) for field, values in given.items() if values]


def _milliseconds_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
