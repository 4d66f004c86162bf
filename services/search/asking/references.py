"""From what a question calls companies to the companies: by id, domain, name or alias."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.search.asking.answers import reference_of
from services.search.wire import problems
from services.search.wire.problems import Problem
from similarity.company import Company, EmbeddedCompany, name_key
from similarity.index.protocol import CompanyIndex, Generation

CANDIDATES_SHOWN = 20
SUGGESTIONS_SHOWN = 5
IDS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class References:
    """What companies of `generation` are called."""

    index: CompanyIndex
    generation: Generation

    def company(self, reference: str) -> EmbeddedCompany:
        """The company that goes by `reference`. An id wins over the names of others.

        Raises:
            Problem: no company, or several, go by that name.
        """
        by_id = self.index.get(self.generation.name, [reference])
        return by_id[reference] if reference in by_id else self._called(reference, suggest=True)

    def companies(self, references: Iterable[str], *, suggest: int) -> dict[str, EmbeddedCompany | Problem]:
        """The company that goes by each of `references`, or why there is none.

        Looking for what may be meant is costly: only the first `suggest` problems have suggestions.
        """
        distinct = list(dict.fromkeys(references))
        by_id = self._with_ids(distinct)
        found: dict[str, EmbeddedCompany | Problem] = {}
        for reference in distinct:
            try:
                found[reference] = by_id.get(reference) or self._called(reference, suggest=suggest > 0)
            except Problem as problem:
                found[reference] = problem
                suggest -= 1
        return found

    def _with_ids(self, ids: Sequence[str]) -> dict[str, EmbeddedCompany]:
        found: dict[str, EmbeddedCompany] = {}
        for start in range(0, len(ids), IDS_AT_ONCE):
            found |= self.index.get(self.generation.name, ids[start : start + IDS_AT_ONCE])
        return found

    def _called(self, reference: str, *, suggest: bool) -> EmbeddedCompany:
        ids = self.index.resolve(self.generation.name, reference)
        found = self.index.get(self.generation.name, ids[:CANDIDATES_SHOWN]) if ids else {}
        if not found:
            raise self._unknown(reference, suggest=suggest)
        if len(ids) > 1:
            raise Problem(
                problems.CONTESTED_NAME,
                f"{len(ids)} companies go by {reference!r}; ask again with the id of one of the candidates",
                candidates=[reference_of(found[each].company) for each in ids if each in found],
            )
        return found[ids[0]]

    def _unknown(self, reference: str, *, suggest: bool) -> Problem:
        near = self._alike(reference) if suggest else []
        hint = f"; did you mean {near[0].name} ({near[0].id})?" if near else ""
        return Problem(
            problems.UNKNOWN_COMPANY,
            f"no company has the id, domain, name or alias {reference!r}{hint}",
            suggestions=[reference_of(company) for company in near],
        )

    def _alike(self, reference: str) -> list[Company]:
        """Companies that may be meant: found by what was typed, else those whose name starts with its first half."""
        near = self.index.find(self.generation.name, reference, limit=SUGGESTIONS_SHOWN)
        if near:
            return near
        half = name_key(reference[: max(3, len(reference) // 2 + 1)])
        return [
            company
            for company in self.index.find(self.generation.name, half, limit=SUGGESTIONS_SHOWN)
            if any(name_key(name).startswith(half) for name in (company.name, *company.aliases))
        ]
