"""Match names and websites as people write them with the companies of an index.

The most precise evidence decides: website, then name or alias, then id, then the name's core, then the same words,
a common beginning, and a typing error. If several companies fit equally well, the row is a miss with these candidates,
because a wrong match costs the user more than a missing one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from similarity.company import ID_PATTERN, Company, name_key
from similarity.index.attributes import AttributeSchema
from similarity.index.protocol import CompanyIndex
from similarity.search.match_confidence import confidence_of
from similarity.search.name_matching import (
    How,
    contains_core,
    core_of,
    cores_of,
    differs_by_typo,
    domain_of,
    exact_match,
    extends_core,
    has_same_words,
    is_short,
    name_similarity,
)

MAX_FOUND = 50
MIN_CANDIDATE_SIMILARITY = 0.6
MAX_DROPPED_WORDS = 4
MIN_SEEN = 20
"""Further queries run until this number of candidates is known."""
WITHOUT_SPACES = re.compile(r"([a-z])([A-Z])")
OUT_OF_TIME = "not searched for similar names, because the list took too long; send the remaining rows again"


@dataclass(frozen=True, slots=True)
class ListedCompany:
    """A row of a list: a company's name, website, or both; `country` decides between companies of one name."""

    name: str = ""
    domain: str = ""
    country: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """The company of a row and how it was matched. If `company` is None, `miss` is the reason.

    `confidence`: the measured share of correct matches of this kind (`match_confidence`). `candidates`: companies that
    may be meant, best first. `is_contested`: several of them fit equally well.
    """

    company: Company | None = None
    how: How | None = None
    confidence: float | None = None
    candidates: tuple[Company, ...] = ()
    miss: str = ""
    is_contested: bool = False


@dataclass(frozen=True, slots=True)
class RowMatcher:
    """Matches rows with one generation. Thread-safe. It searches for similar names only while `has_time()` is true.

    `sizes`: for names that somebody types who sees the answer at once. Then the name of a website and one word of a
    prominent company's name match too, and the largest of several companies is chosen. None for lists of names, where
    these would be wrong too often.
    """

    index: CompanyIndex
    generation: str
    sizes: AttributeSchema | None = None
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
        return self._only_one(named or found, row, How.DOMAIN, f"have the domain {domain}")

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
                return self._only_one(companies, row, how, f"have the name {row.name!r}")
        # The index also resolves a website in the column of names.
        companies = [company for company, by in found if by is None]
        return self._only_one(companies, row, How.DOMAIN, f"have the domain {row.name}") if companies else None

    def _by_id(self, row: ListedCompany) -> Match | None:
        company = self.index.get(self.generation, [row.name]).get(row.name) if row.name else None
        return Match(company.company, How.ID) if company else None

    def _named(self, name: str) -> list[Company]:
        """Return the companies with this domain, else this name or alias. The space keeps ids from matching."""
        return self._with_ids(self.index.resolve(self.generation, f" {name}")[:MAX_FOUND])

    def _with_ids(self, ids: Sequence[str]) -> list[Company]:
        found = self.index.get(self.generation, ids)
        return [found[each].company for each in ids if each in found]

    def _by_likeness(self, row: ListedCompany) -> Match:
        core = core_of(row.name)
        seen: dict[str, Company] = {}
        for query in _queries(row.name, core):
            seen |= {company.id: company for company in self.index.find(self.generation, query, limit=MAX_FOUND)}
        cored = {company_id: cores_of(company) for company_id, company in seen.items()}
        for how, fits, what in (
            (How.LEGAL_FORM, _is_core, "are named, ignoring the legal form,"),
            (How.WORDS, _has_words, "have names of the words of"),
        ):
            if fitting := [company for company_id, company in seen.items() if fits(core, cored[company_id])]:
                one = self._only_one(fitting, row, how, f"{what} {row.name!r}")
                if one.is_contested:  # several small companies share the name: a prominent one may begin with it
                    more = [company for company_id, company in seen.items() if extends_core(core, cored[company_id])]
                    one = self._only_one([*fitting, *more], row, how, f"{what} {row.name!r}")
                return one
        if match := self._abbreviated(row, core, seen, cored):
            return match
        if not self.has_time():
            return _miss(core, seen.values())
        words = " ".join(word for word in core.split() if word != "and")  # "&" in most names
        near = self.index.find_misspelled(self.generation, words, limit=MAX_FOUND)
        misspelled = [each for each in near if differs_by_typo(row.name, each, prominent=self._is_prominent(each))]
        if misspelled:
            return self._only_one(misspelled, row, How.SPELLING, f"have names spelled nearly {row.name!r}")
        seen |= {company.id: company for company in near}
        for query in _shorter_queries(core):
            if len(seen) < MIN_SEEN:
                seen |= {company.id: company for company in self.index.find(self.generation, query, limit=MAX_FOUND)}
        return _miss(core, seen.values())

    def _abbreviated(
        self, row: ListedCompany, core: str, seen: dict[str, Company], cored: dict[str, list[str]]
    ) -> Match | None:
        """Return the company that goes by an abbreviation: its id, its website's name, or a part of its name."""
        fitting: dict[str, tuple[Company, How]] = {}
        for company_id, company in seen.items():
            prominent = self._is_prominent(company)
            if extends_core(core, cored[company_id]) and (prominent or not is_short(core)):
                fitting[company_id] = company, How.PREFIX
            elif prominent and contains_core(core, cored[company_id]):
                fitting[company_id] = company, How.PART
        if self.sizes is not None:
            for company in self._with_website_name(core):
                fitting[company.id] = company, How.WEBSITE_NAME
        for company in self._with_ids(_other_cases(row.name)):
            fitting[company.id] = company, How.ID
        if not fitting:
            return None
        if len(fitting) == 1:
            ((company, how),) = fitting.values()
            return Match(company, how)
        companies = [company for company, _ in fitting.values()]
        return self._only_one(companies, row, How.SIZE, f"go by {row.name!r}")

    def _with_website_name(self, core: str) -> list[Company]:
        words = core.split()
        domains = dict.fromkeys(f"{separator.join(words)}.com" for separator in ("", "-"))
        found = self.index.resolve_many(self.generation, [f" {domain}" for domain in domains]) if words else {}
        companies = self._with_ids([each for ids in found.values() for each in ids[:MAX_FOUND]])
        return [company for company in companies if company.domain in domains]

    def _only_one(self, companies: Sequence[Company], row: ListedCompany, how: How, what: str) -> Match:
        companies = _of_country(companies, row)
        if len(companies) == 1:
            return Match(companies[0], how)
        if self.sizes is not None and (largest := largest_of(companies, self.sizes)):
            return Match(largest, How.SIZE)
        count = f"{len(companies)}" if len(companies) < MAX_FOUND else f"{MAX_FOUND} or more"
        message = f"{count} companies {what}; choose one, or give its domain"
        return Match(candidates=tuple(companies), miss=message, is_contested=True)

    def _is_prominent(self, company: Company) -> bool:
        return self.sizes is not None and self.sizes.is_prominent(company)


def largest_of(companies: Sequence[Company], sizes: AttributeSchema) -> Company | None:
    """Return the company that is at least one step larger than all others; None if there is none."""
    by_size = sorted(((sizes.size_of(each) or 0.0, each.id, each) for each in companies), reverse=True)
    (first, _, largest), (second, _, _) = by_size[:2]
    return largest if first >= second + 1 else None


def _is_core(core: str, cores: Sequence[str]) -> bool:
    return core in cores


def _has_words(core: str, cores: Sequence[str]) -> bool:
    return any(has_same_words(core, each) for each in cores)


def _miss(core: str, companies: Iterable[Company]) -> Match:
    near = tuple(company for score, company in _ranked(core, companies) if score >= MIN_CANDIDATE_SIMILARITY)
    if near:
        return Match(candidates=near, miss=f"no company has that name; the most similar name is {near[0].name!r}")
    return Match(miss="no company has that name or a similar one")


def _ranked(core: str, companies: Iterable[Company]) -> list[tuple[float, Company]]:
    scored = [(max(name_similarity(core, each) for each in cores_of(company)), company) for company in companies]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1].id))


def _of_country(companies: Sequence[Company], row: ListedCompany) -> Sequence[Company]:
    """Return the companies of the row's country; all of them if there are none."""
    country = name_key(row.country)
    return [each for each in companies if country and name_key(each.country) == country] or companies


def _disagree(by_domain: Match, by_name: Match) -> bool:
    return bool(by_domain.company and by_name.company) and by_domain.company != by_name.company


def _other_cases(name: str) -> list[str]:
    """Return the ids that `name` may be, in one case and without signs: most ids are tickers or words."""
    typed = name.strip()
    plain = "".join(letter for letter in typed if letter.isalnum())
    return [each for each in {typed.upper(), typed.lower(), plain.upper()} if ID_PATTERN.fullmatch(each)]


def _queries(name: str, core: str) -> Iterator[str]:
    """Yield the queries for companies with the words of a name, with spaces or without."""
    yield core
    if name_key(name) != core:
        yield name
    if " " in core:
        yield core.replace(" ", "")
    elif (apart := WITHOUT_SPACES.sub(r"\1 \2", name)) != name:
        yield apart


def _shorter_queries(core: str) -> Iterator[str]:
    """Yield queries for candidates: all words but one of a name, or the beginning of its only word."""
    words = core.split()
    if len(words) == 1:
        yield core[: max(3, len(core) // 2 + 1)]
        return
    for left_out in sorted(words, key=len, reverse=True)[:MAX_DROPPED_WORDS]:
        yield " ".join(word for word in words if word != left_out)
