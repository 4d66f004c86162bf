"""Matches the parsed rows of a list with companies, and returns the response models."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from similarity.company import Company
from similarity.index.protocol import CompanyIndex
from similarity.search.countries import countries_differ
from similarity.search.names.comparison import How
from similarity.search.names.confidence import confidence_of
from similarity.search.names.list_matching import RowMatcher
from similarity.search.names.rows import ListedCompany, Match, is_named, without_ticker
from similarity.search.searcher import retry_if_retired

from ..wire.problem_documents import reference_of
from .match_rows import ListRow, ListRows, without_additions
from .match_schemas import Matched, MatchedRow

CANDIDATES_SHOWN = 5
SECONDS_TO_SEARCH = 20.0


@dataclass(frozen=True, slots=True)
class MatchService:
    """Matches lists with the live generation of `index`. `rows_at_once`: threads that match the rows of one list.

    After SECONDS_TO_SEARCH by `clock`, similar names are no longer searched, and soon nothing is (see `RowMatcher`).
    """

    index: CompanyIndex
    rows_at_once: int = 1
    clock: Callable[[], float] = time.monotonic

    def match(self, listed: ListRows) -> Matched:
        """Return the match of each row, all from one generation."""
        return retry_if_retired(lambda: self._match(listed))

    def _match(self, listed: ListRows) -> Matched:
        generation = self.index.live().name
        deadline = self.clock() + SECONDS_TO_SEARCH
        attributes = self.index.attributes()
        by_id = self.index.get(generation, [row.cells.id for row in listed.rows if row.cells.id])
        matcher = RowMatcher(self.index, generation, attributes, seconds_left=lambda: deadline - self.clock())

        def answer(row: ListRow) -> MatchedRow:
            if row.unreadable:
                return _answer(row, Match(miss=row.unreadable))
            cells, with_id = row.cells, by_id.get(row.cells.id)
            # An id that no company has may be an id in another case, or an alias.
            spelled = "" if with_id or cells.domain else cells.id
            asked = ListedCompany(
                name=without_ticker(cells.name) or spelled, domain=cells.domain, country=cells.country
            )
            match = matcher.match(asked)
            for name in without_additions(asked.name):
                if match.company is None and name != asked.name:
                    match = matcher.match(replace(asked, name=name))
            if spelled and not cells.name and match.company and match.how not in {How.ID, How.ALIAS}:
                miss = f"no company has the id {spelled!r}, but one has such a name; choose it if it is meant"
                match = Match(candidates=(match.company, *match.candidates), miss=miss)
            return _answer(row, _with_id(with_id.company, asked, match) if with_id else match)

        with ThreadPoolExecutor(self.rows_at_once) as pool:
            answers = list(pool.map(answer, listed.rows))
        return Matched(
            rows=answers,
            matched=sum(each.id is not None for each in answers),
            unused_columns=list(listed.unused_columns),
            generation=generation,
        )


def _with_id(company: Company, asked: ListedCompany, match: Match) -> Match:
    """Return the match of a row with the id of `company`; `match` is the match of the row's name and domain.

    Unless `match` is `company`, the row is a miss if `match` is surely another company, or if the row has another name
    or country than `company`: the ids of a list may be row numbers that happen to be ids of the index.
    """
    other = match.company
    is_another = bool(asked.name and not is_named(company, asked)) or countries_differ(company.country, asked.country)
    is_sure = match.how in {How.DOMAIN, How.NAME, How.ALIAS}
    if (other is not None and other.id == company.id) or (
        not is_another and (other is None or (asked.name and not is_sure))
    ):
        return Match(company, How.ID, confidence_of(How.ID, ""))
    if other is None:
        miss = f"the id is that of {company.name!r}, but the row has another name or country; correct one of them"
        return Match(candidates=(company, *match.candidates), miss=miss)
    miss = "the id belongs to one company and the name or domain to another; correct one of them"
    return Match(candidates=(company, other), miss=miss)


def _answer(row: ListRow, match: Match) -> MatchedRow:
    company = None if match.company is None else reference_of(match.company)
    candidates = {each.id: reference_of(each) for each in match.candidates or match.others}
    return MatchedRow(
        row=row.number,
        asked=row.cells,
        id=company.id if company else None,
        company=company,
        confidence=match.confidence,
        how=match.how,
        candidates=list(candidates.values())[:CANDIDATES_SHOWN],
        miss=match.miss or None,
    )
