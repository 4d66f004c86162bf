"""From what a question calls companies to the companies: by id, domain, name or alias."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from services.search.asking.answers import reference_of
from services.search.wire import problems
from services.search.wire.problems import Problem
from similarity.company import EmbeddedCompany
from similarity.index.protocol import CompanyIndex, Generation
from similarity.suggestions import companies_meant

CANDIDATES_SHOWN = 20
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
        found = self.companies([reference], suggest=1)[reference]
        if isinstance(found, Problem):
            raise found
        return found

    def companies(self, references: Iterable[str], *, suggest: int) -> dict[str, EmbeddedCompany | Problem]:
        """The company that goes by each of `references`, or why there is none.

        Looking for what may be meant is costly: only the first `suggest` problems have suggestions.
        """
        distinct = list(dict.fromkeys(references))
        found: dict[str, EmbeddedCompany | Problem] = {**self._with_ids(distinct)}
        others = [reference for reference in distinct if reference not in found]
        resolved = self.index.resolve_many(self.generation.name, others) if others else {}
        bearers = self._with_ids(
            list(dict.fromkeys(each for ids in resolved.values() for each in ids[:CANDIDATES_SHOWN]))
        )
        for reference, ids in resolved.items():
            found[reference] = self._called(reference, ids, bearers, suggest=suggest > 0)
            suggest -= isinstance(found[reference], Problem)
        return {reference: found[reference] for reference in distinct}

    def _with_ids(self, ids: Sequence[str]) -> dict[str, EmbeddedCompany]:
        found: dict[str, EmbeddedCompany] = {}
        for start in range(0, len(ids), IDS_AT_ONCE):
            found |= self.index.get(self.generation.name, ids[start : start + IDS_AT_ONCE])
        return found

    def _called(
        self, reference: str, ids: Sequence[str], bearers: Mapping[str, EmbeddedCompany], *, suggest: bool
    ) -> EmbeddedCompany | Problem:
        """The only one of `bearers` with one of `ids`, or why there is not one."""
        known = [bearers[each] for each in ids if each in bearers]
        if not known:
            return self._unknown(reference, suggest=suggest)
        if len(ids) > 1:
            return Problem(
                problems.CONTESTED_NAME,
                f"{len(ids)} companies go by {reference!r}; ask again with the id of one of the candidates",
                candidates=[reference_of(each.company) for each in known[:CANDIDATES_SHOWN]],
            )
        return known[0]

    def _unknown(self, reference: str, *, suggest: bool) -> Problem:
        near = companies_meant(self.index, self.generation.name, reference) if suggest else []
        hint = f"; did you mean {near[0].name} ({near[0].id})?" if near else ""
        return Problem(
            problems.UNKNOWN_COMPANY,
            f"no company has the id, domain, name or alias {reference!r}{hint}",
            suggestions=[reference_of(company) for company in near],
        )
