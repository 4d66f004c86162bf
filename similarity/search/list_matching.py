"""Matching rows of a list (names and websites) with the companies of an index.

The surest evidence decides: website, then name or alias, then id, then the name's core, then names of
the same words, names that begin alike, and names with one typing error. If several companies fit equally
well, none is chosen: the row is a miss with its candidates, because a wrong match costs the user of the
list more than a missing one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from similarity.company import Company, name_key
from similarity.index.protocol import CompanyIndex
from similarity.search.match_confidence import confidence_of
from similarity.search.name_matching import (
    How,
    alikeness,
    begins,
    core_of,
    cores_of,
    domain_of,
    goes_by,
    has_the_words_of,
    is_mistyped,
)

FOUND_AT_ONCE = 20
WORTH_SHOWING = 0.4
WORDS_LEFT_OUT = 4
TOO_LATE = "not searched for similar names, because the list took too long; send the rest of it again"
WITHOUT_SPACES = re.compile(r"([a-z])([A-Z])")

# What a core may have in common with those of a company, the surest first.
COMPARISONS: tuple[tuple[How, Callable[[str, Sequence[str]], bool], str], ...] = (
    (How.LEGAL_FORM, lambda core, cores: core in cores, "go by, but for the legal form,"),
    (How.WORDS, lambda core, cores: any(has_the_words_of(core, each) for each in cores), "have names of the words of"),
    (How.PREFIX, begins, "have names that begin with"),
    (How.SPELLING, lambda core, cores: any(is_mistyped(core, each) for each in cores), "have names spelled nearly"),
)


@dataclass(frozen=True, slots=True)
class ListedCompany:
    """A row of a list: a company by name, website, or both; `country` decides between companies of one name."""

    name: str = ""
    domain: str = ""
    country: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """The company of a row and how it was matched; or None, `miss` with the reason, and the candidates.

    `confidence` is the measured share of matches of this kind that are right (`match_confidence`).
    """

    company: Company | None = None
    how: How | None = None
    confidence: float | None = None
    candidates: tuple[Company, ...] = ()
    miss: str = ""


@dataclass(frozen=True, slots=True)
class RowMatcher:
    """Matches rows with one generation; safe to share between threads. `has_time` is asked before searching."""

    index: CompanyIndex
    generation: str
    has_time: Callable[[], bool] = lambda: True

    def match(self, row: ListedCompany) -> Match:
        """Return the company that `row` means, or why none was chosen."""
        found = self._match(row)
        if found.how is None:
            return found
        return replace(found, confidence=confidence_of(found.how, core_of(row.name)))

    def _match(self, row: ListedCompany) -> Match:
        if not row.name and not row.domain:
            return Match(miss="the row holds neither a name nor a domain")
        by_domain = self._by_domain(row)
        by_name = self._by_name(row) if row.name else None
        if by_domain and by_name and _disagree(by_domain, by_name):
            both = tuple(each.company for each in (by_domain, by_name) if each.company)
            return Match(candidates=both, miss="the domain is one company's and the name is another's")
        found = by_domain or by_name or self._by_id(row)
        if found is not None:
            return found
        if not self.has_time():
            return Match(miss=TOO_LATE)
        return self._by_likeness(row) if row.name else self._unknown_domain(row.domain)

    def _by_domain(self, row: ListedCompany) -> Match | None:
        domain = domain_of(row.domain)
        found = [company for company in self._going_by(domain) if company.domain == domain] if domain else []
        if len(found) < 2:
            return Match(found[0], How.DOMAIN) if found else None
        core = core_of(row.name)
        named = [company for company in found if row.name and core in cores_of(company)]
        return _only_one(named or _of_country(found, row), How.DOMAIN, f"have the domain {domain}")

    def _unknown_domain(self, website: str) -> Match:
        domain = domain_of(website)
        if not domain:
            return Match(miss=f"{website!a} is no website such as 'example.com'")
        label = domain.partition(".")[0]
        near = _miss(label, self.index.find(self.generation, label, limit=FOUND_AT_ONCE)).candidates
        return Match(candidates=near, miss=f"no company has the domain {domain}")

    def _by_name(self, row: ListedCompany) -> Match | None:
        found = [(company, goes_by(company, row.name)) for company in self._going_by(row.name)]
        for how in (How.NAME, How.ALIAS):
            if companies := [company for company, by in found if by is how]:
                return _only_one(_of_country(companies, row), how, f"go by {row.name!r}")
        # An index also finds a website that was written where a name belongs.
        companies = [company for company, by in found if by is None]
        return _only_one(companies, How.DOMAIN, f"have the domain {row.name}") if companies else None

    def _by_id(self, row: ListedCompany) -> Match | None:
        company = self.index.get(self.generation, [row.name]).get(row.name) if row.name else None
        return Match(company.company, How.ID) if company else None

    def _going_by(self, name: str) -> list[Company]:
        """The companies with this domain, else this name or alias. The space keeps ids out: they are no names."""
        ids = self.index.resolve(self.generation, f" {name}")
        found = self.index.get(self.generation, ids[:FOUND_AT_ONCE])
        return [found[each].company for each in ids if each in found]

    def _by_likeness(self, row: ListedCompany) -> Match:
        core = core_of(row.name)
        seen: dict[str, Company] = {}
        for query in _queries(row.name, core):
            if not self.has_time():
                break
            found = self.index.find(self.generation, query, limit=FOUND_AT_ONCE)
            seen |= {company.id: company for company in found}
            if match := _compared(core, seen.values(), row):
                return match
        return _miss(core, seen.values())


def _compared(core: str, companies: Iterable[Company], row: ListedCompany) -> Match | None:
    """The company that a name clearly means among those that were found, or that several fit; None if none does."""
    with_cores = [(company, cores_of(company)) for company in companies]
    for how, fits, what in COMPARISONS:
        if fitting := [company for company, cores in with_cores if fits(core, cores)]:
            return _only_one(_of_country(fitting, row), how, f"{what} {row.name!r}")
    return None


def _miss(core: str, companies: Iterable[Company]) -> Match:
    near = tuple(company for score, company in _ranked(core, companies) if score >= WORTH_SHOWING)
    if near:
        return Match(candidates=near, miss=f"no company goes by that name; the nearest is {near[0].name!r}")
    return Match(miss="no company goes by that name or one like it")


def _ranked(core: str, companies: Iterable[Company]) -> list[tuple[float, Company]]:
    scored = [(max(alikeness(core, each) for each in cores_of(company)), company) for company in companies]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].id))


def _only_one(companies: Sequence[Company], how: How, what: str) -> Match:
    if len(companies) == 1:
        return Match(companies[0], how)
    count = f"{len(companies)}" if len(companies) < FOUND_AT_ONCE else f"{FOUND_AT_ONCE} or more"
    return Match(candidates=tuple(companies), miss=f"{count} companies {what}; choose one, or say its domain")


def _of_country(companies: Sequence[Company], row: ListedCompany) -> Sequence[Company]:
    """Those of the row's country, if there are any."""
    country = name_key(row.country)
    return [each for each in companies if country and name_key(each.country) == country] or companies


def _disagree(by_domain: Match, by_name: Match) -> bool:
    return bool(by_domain.company and by_name.company) and by_domain.company != by_name.company


def _queries(name: str, core: str) -> Iterator[str]:
    """What to look for, so that the company is found although a word of the name is written otherwise."""
    yield core
    if name_key(name) != core:
        yield name
    words = core.split()
    if len(words) == 1 and (apart := WITHOUT_SPACES.sub(r"\1 \2", name)) != name:
        yield apart
    if len(words) == 1:
        yield core[: max(3, len(core) // 2 + 1)]
        return
    for left_out in sorted(words, key=len, reverse=True)[:WORDS_LEFT_OUT]:
        yield " ".join(word for word in words if word != left_out)
