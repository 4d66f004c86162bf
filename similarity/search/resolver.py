"""Resolve references to companies: ids, domains, names and aliases, exactly or as people type them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from similarity.company import Company, EmbeddedCompany
from similarity.index.protocol import CompanyIndex, Generation
from similarity.search.errors import AmbiguousCompany, UnknownCompany
from similarity.search.list_matching import ListedCompany, Match, RowMatcher, largest_of
from similarity.search.match_confidence import confidence_of
from similarity.search.name_matching import How

CANDIDATES_SHOWN = 20
SUGGESTIONS_SHOWN = 5
IDS_AT_ONCE = 1_000
BEGINNINGS = (3, 2)
MIN_CONFIDENCE = 0.75
"""A match of lower confidence is only suggested."""


@dataclass(frozen=True, slots=True)
class FoundCompany:
    """The company that a reference resolves to.

    `confidence`: measured share of correct answers for this kind of match (`match_confidence`); 1 for an id, and for a
    domain, name or alias that only this company has.
    """

    document: EmbeddedCompany
    confidence: float = 1.0


Resolved: TypeAlias = FoundCompany | UnknownCompany | AmbiguousCompany
"""The company that a reference resolves to, or the error."""


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves references among the companies of one `generation`.

    An id takes precedence over domains, names and aliases. If none of these equals the reference, the most similar name
    decides (`list_matching`), unless `exact`.
    """

    index: CompanyIndex
    generation: Generation
    exact: bool = False

    def company(self, reference: str) -> FoundCompany:
        """Return the company that `reference` resolves to.

        Raises:
            UnknownCompany: no company matches.
            AmbiguousCompany: several companies match equally well.
        """
        found = self.companies([reference], similar=1)[reference]
        if not isinstance(found, FoundCompany):
            raise found
        return found

    def companies(self, references: Iterable[str], *, similar: int) -> dict[str, Resolved]:
        """Return, for each of `references`, the company or the error.

        The search for similar names is slow: only the first `similar` references without an exact match have one.
        """
        distinct = list(dict.fromkeys(references))
        documents = self._with_ids(distinct)
        found: dict[str, Resolved] = {each: FoundCompany(document) for each, document in documents.items()}
        others = [reference for reference in distinct if reference not in found]
        ids_of = self.index.resolve_many(self.generation.name, others) if others else {}
        documents = self._with_ids([each for ids in ids_of.values() if len(ids) == 1 for each in ids])
        for reference, ids in ids_of.items():
            # A company that was deleted a moment ago has an id but no document.
            if len(ids) == 1 and ids[0] in documents:
                found[reference] = FoundCompany(documents[ids[0]])
            elif similar > 0:
                similar -= 1
                found[reference] = self._similar(reference, ids, suggest_any=len(distinct) == 1)
            else:
                found[reference] = self._error(reference, ids, Match())
        return {reference: found[reference] for reference in distinct}

    def _similar(self, reference: str, ids: Sequence[str], *, suggest_any: bool) -> Resolved:
        """Return the company with the most similar name; if `ids` are several exact matches, the largest of them."""
        sizes = self.index.attributes()
        if len(ids) > 1:
            named = self._companies(ids[:CANDIDATES_SHOWN])
            largest = largest_of(named, sizes) if len(named) > 1 and not self.exact else None
            match = Match(largest, How.SIZE, confidence_of(How.SIZE, reference), tuple(named), is_contested=True)
        else:
            match = RowMatcher(self.index, self.generation.name, sizes).match(ListedCompany(name=reference))
        if match.company is not None and (match.confidence or 0.0) >= MIN_CONFIDENCE and not self.exact:
            documents = self._with_ids([match.company.id])
            if match.company.id in documents:
                return FoundCompany(documents[match.company.id], match.confidence or 0.0)
        error = self._error(reference, ids, match)
        if suggest_any and isinstance(error, UnknownCompany) and not error.suggestions:
            return UnknownCompany(reference, self._with_beginning(reference), are_similar=False)
        return error

    def _error(self, reference: str, ids: Sequence[str], match: Match) -> UnknownCompany | AmbiguousCompany:
        if len(ids) > 1 or (match.is_contested and not self.exact):
            candidates = match.candidates or self._companies(ids[:CANDIDATES_SHOWN])
            return AmbiguousCompany(reference, candidates[:CANDIDATES_SHOWN], count=max(len(ids), len(candidates)))
        near = [match.company] if match.company else list(match.candidates)
        return UnknownCompany(reference, near[:SUGGESTIONS_SHOWN])

    def _with_beginning(self, reference: str) -> list[Company]:
        """Return companies found by the text, or by its beginning: something to go on from, however unlike."""
        for length in (len(reference), len(reference) // 2, *BEGINNINGS):
            if found := self.index.find(self.generation.name, reference[:length], limit=SUGGESTIONS_SHOWN):
                return found
        return []

    def _companies(self, ids: Sequence[str]) -> list[Company]:
        documents = self._with_ids(ids)
        return [documents[each].company for each in ids if each in documents]

    def _with_ids(self, ids: Sequence[str]) -> dict[str, EmbeddedCompany]:
        found: dict[str, EmbeddedCompany] = {}
        for start in range(0, len(ids), IDS_AT_ONCE):
            found |= self.index.get(self.generation.name, ids[start : start + IDS_AT_ONCE])
        return found
