"""Resolve references (id, domain, name or alias) to companies."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from similarity.company import EmbeddedCompany
from similarity.index.protocol import CompanyIndex, Generation
from similarity.search.errors import AmbiguousCompany, UnknownCompany
from similarity.search.suggestions import suggest_companies

CANDIDATES_SHOWN = 20
IDS_AT_ONCE = 1_000

Resolved: TypeAlias = EmbeddedCompany | UnknownCompany | AmbiguousCompany
"""The company that matches a reference, or the error."""


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves references among the companies of one `generation`."""

    index: CompanyIndex
    generation: Generation

    def company(self, reference: str) -> EmbeddedCompany:
        """Return the company that matches `reference`. An id takes precedence over domains, names and aliases.

        Raises:
            UnknownCompany: no company matches.
            AmbiguousCompany: several companies match.
        """
        found = self.companies([reference], suggest=1)[reference]
        if not isinstance(found, EmbeddedCompany):
            raise found
        return found

    def companies(self, references: Iterable[str], *, suggest: int) -> dict[str, Resolved]:
        """Return, for each of `references`, the company that matches it or the error.

        A search for similar names is slow: only the first `suggest` errors have suggestions.
        """
        distinct = list(dict.fromkeys(references))
        found: dict[str, Resolved] = {**self._with_ids(distinct)}
        others = [reference for reference in distinct if reference not in found]
        resolved = self.index.resolve_many(self.generation.name, others) if others else {}
        shown = dict.fromkeys(each for ids in resolved.values() for each in ids[:CANDIDATES_SHOWN])
        documents = self._with_ids(list(shown))
        for reference, ids in resolved.items():
            found[reference] = self._resolved(reference, ids, documents, suggest=suggest > 0)
            suggest -= not isinstance(found[reference], EmbeddedCompany)
        return {reference: found[reference] for reference in distinct}

    def _with_ids(self, ids: Sequence[str]) -> dict[str, EmbeddedCompany]:
        found: dict[str, EmbeddedCompany] = {}
        for start in range(0, len(ids), IDS_AT_ONCE):
            found |= self.index.get(self.generation.name, ids[start : start + IDS_AT_ONCE])
        return found

    def _resolved(
        self, reference: str, ids: Sequence[str], documents: Mapping[str, EmbeddedCompany], *, suggest: bool
    ) -> Resolved:
        # A company that was deleted a moment ago has an id but no document.
        known = [documents[each] for each in ids if each in documents]
        if not known:
            near = suggest_companies(self.index, self.generation.name, reference) if suggest else []
            return UnknownCompany(reference, near)
        if len(ids) > 1:
            candidates = [each.company for each in known[:CANDIDATES_SHOWN]]
            return AmbiguousCompany(reference, candidates, count=len(ids))
        return known[0]
