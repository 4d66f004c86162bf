"""Match the rows of a list (names and websites) with the companies of an index.

The most precise evidence decides: website, then name or alias, then id, then the name's core, then the same
words, a common beginning, and one typing error. If several companies fit equally well, the row is a miss with
these candidates, because a wrong match costs the user of the list more than a missing one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from similarity.company import Company, name_key
from similarity.index.protocol import CompanyIndex
from similarity.search.match_confidence import confidence_of
from similarity.search.name_matching import (
    How,
    core_of,
    cores_of,
    differs_by_one_typo,
    domain_of,
    exact_match,
    extends_core,
    has_same_words,
    trigram_similarity,
)

MAX_FOUND = 20
MIN_CANDIDATE_SIMILARITY = 0.4
MAX_DROPPED_WORDS = 4
OUT_OF_TIME = "not searched for similar names, because the list took too long; send the remaining rows again"
WITHOUT_SPACES = re.compile(r"([a-z])([A-Z])")

# Comparisons of a core with the cores of a company, the most precise first, each with a phrase for messages.
COMPARISONS: tuple[tuple[How, Callable[[str, Sequence[str]], bool], str], ...] = (
    (How.LEGAL_FORM, lambda core, cores: core in cores, "are named, ignoring the legal form,"),
    (How.WORDS, lambda core, cores: any(has_same_words(core, each) for each in cores), "have names of the words of"),
    (How.PREFIX, extends_core, "have names that begin with"),
    (
        How.SPELLING,
        lambda core, cores: any(differs_by_one_typo(core, each) for each in cores),
        "have names spelled nearly",
    ),
)


@dataclass(frozen=True, slots=True)
class ListedCompany:
    """A row of a list: a company's name, website, or both; `country` decides between companies of one name."""

    name: str = ""
    domain: str = ""
    country: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """The company of a row and how it was matched. If `company` is None, `miss` is the reason.

    `confidence`: the measured share of correct matches of this kind (`match_confidence`).
    """

    company: Company | None = None
    how: How | None = None
    confidence: float | None = None
    candidates: tuple[Company, ...] = ()
    miss: str = ""


@dataclass(frozen=True, slots=True)
class RowMatcher:
    """Matches rows with one generation. Thread-safe. It searches for similar names only while `has_time()` is true."""

    index: CompanyIndex
    generation: str
    has_time: Callable[[], bool] = lambda: True

    def match(self, row: ListedCompany) -> Match:
        """Return the company that matches `row`, or the reason why no company was chosen."""
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
            return Match(miss=OUT_OF_TIME)
        return self._by_likeness(row) if row.name else self._unknown_domain(row.domain)

    def _by_domain(self, row: ListedCompany) -> Match | None:
        domain = domain_of(row.domain)
        found = [company for company in self._named(domain) if company.domain == domain] if domain else []
        if len(found) < 2:
            return Match(found[0], How.DOMAIN) if found else None
        core = core_of(row.name)
        named = [company for company in found if row.name and core in cores_of(company)]
        return _only_one(named or _of_country(found, row), How.DOMAIN, f"have the domain {domain}")

    def _unknown_domain(self, website: str) -> Match:
        domain = domain_of(website)
        if not domain:
            return Match(miss=f"{website!a} is not a website such as 'example.com'")
        label = domain.partition(".")[0]
        near = _miss(label, self.index.find(self.generation, label, limit=MAX_FOUND)).candidates
        return Match(candidates=near, miss=f"no company has the domain {domain}")

    def _by_name(self, row: ListedCompany) -> Match | None:
        found = [(company, exact_match(company, row.name)) for company in self._named(row.name)]
        for how in (How.NAME, How.ALIAS):
            if companies := [company for company, by in found if by is how]:
                return _only_one(_of_country(companies, row), how, f"have the name {row.name!r}")
        # The index also resolves a website in the column of names.
        companies = [company for company, by in found if by is None]
        return _only_one(companies, How.DOMAIN, f"have the domain {row.name}") if companies else None

    def _by_id(self, row: ListedCompany) -> Match | None:
        company = self.index.get(self.generation, [row.name]).get(row.name) if row.name else None
        return Match(company.company, How.ID) if company else None

    def _named(self, name: str) -> list[Company]:
        """Return the companies with this domain, else this name or alias. The space keeps ids from matching."""
        ids = self.index.resolve(self.generation, f" {name}")
        found = self.index.get(self.generation, ids[:MAX_FOUND])
        return [found[each].company for each in ids if each in found]

    def _by_likeness(self, row: ListedCompany) -> Match:
        core = core_of(row.name)
        seen: dict[str, Company] = {}
        for query in _queries(row.name, core):
            if not self.has_time():
                break
            found = self.index.find(self.generation, query, limit=MAX_FOUND)
            seen |= {company.id: company for company in found}
            if match := _compared(core, seen.values(), row):
                return match
        return _miss(core, seen.values())


def _compared(core: str, companies: Iterable[Company], row: ListedCompany) -> Match | None:
    """Return the company that fits a name best, or a miss if several do; None if no company fits."""
    with_cores = [(company, cores_of(company)) for company in companies]
    for how, fits, what in COMPARISONS:
        if fitting := [company for company, cores in with_cores if fits(core, cores)]:
            return _only_one(_of_country(fitting, row), how, f"{what} {row.name!r}")
    return None


def _miss(core: str, companies: Iterable[Company]) -> Match:
    near = tuple(company for score, company in _ranked(core, companies) if score >= MIN_CANDIDATE_SIMILARITY)
    if near:
        return Match(candidates=near, miss=f"no company has that name; the most similar name is {near[0].name!r}")
    return Match(miss="no company has that name or a similar one")


def _ranked(core: str, companies: Iterable[Company]) -> list[tuple[float, Company]]:
    scored = [(max(trigram_similarity(core, each) for each in cores_of(company)), company) for company in companies]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].id))


def _only_one(companies: Sequence[Company], how: How, what: str) -> Match:
    if len(companies) == 1:
        return Match(companies[0], how)
    count = f"{len(companies)}" if len(companies) < MAX_FOUND else f"{MAX_FOUND} or more"
    return Match(candidates=tuple(companies), miss=f"{count} companies {what}; choose one, or give its domain")


def _of_country(companies: Sequence[Company], row: ListedCompany) -> Sequence[Company]:
    """Return the companies of the row's country; all of them if there are none."""
    country = name_key(row.country)
    return [each for each in companies if country and name_key(each.country) == country] or companies


def _disagree(by_domain: Match, by_name: Match) -> bool:
    return bool(by_domain.company and by_name.company) and by_domain.company != by_name.company


def _queries(name: str, core: str) -> Iterator[str]:
    """Yield search queries that find the company even if one word of its name is written differently."""
    yield core
    if name_key(name) != core:
        yield name
    words = core.split()
    if len(words) == 1 and (apart := WITHOUT_SPACES.sub(r"\1 \2", name)) != name:
        yield apart
    if len(words) == 1:
        yield core[: max(3, len(core) // 2 + 1)]
        return
    for left_out in sorted(words, key=len, reverse=True)[:MAX_DROPPED_WORDS]:
        yield " ".join(word for word in words if word != left_out)
