"""Matching of names and websites, as people write them, with the companies of an index.

The most precise evidence decides: website, then name or alias, then id, then the core of the name (without its legal
form), then the same words, a common beginning, and a typing error. If several companies fit equally well, none is
chosen and all are candidates, because a wrong match costs the user more than a missing one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from similarity.company import Company
from similarity.index.attributes import AttributeSchema
from similarity.index.protocol import CompanyIndex
from similarity.search.countries import countries_differ, country_code, is_same_country
from similarity.search.duplicates import WIDELY_SHARED, Identity, widely_shared_domains
from similarity.search.names.candidates import contradicted, largest_first, most_similar, no_match, unknown_domain
from similarity.search.names.comparison import (
    How,
    contains_core,
    core_of,
    cores_of,
    differs_by_typo,
    domain_of,
    exact_match,
    extends_core,
    has_initials,
    has_legal_form,
    has_same_words,
    is_core,
    is_joined,
    is_short,
)
from similarity.search.names.confidence import confidence_of, is_sure_part
from similarity.search.names.index_queries import (
    has_exchange,
    likely_listings,
    listed_as,
    other_classes,
    possible_ids,
    queries,
    shorter_queries,
    similar_tickers,
    split_queries,
    with_id_in_capitals,
    with_ids,
    with_website_name,
    with_words,
)
from similarity.search.names.namesakes import (
    as_large,
    begun_by,
    differ,
    has_only_country_after,
    is_bare,
    is_larger,
    is_unlikely,
    larger_meant,
    largest_or_only,
)
from similarity.search.names.rows import (
    MAX_FOUND,
    ListedCompany,
    Match,
    contested,
    has_another_website,
    is_named,
    not_as_id,
    of_country,
    only_a_part,
    only_websites,
    part_of_a_group,
    several,
    with_another_website,
    with_country,
    without_page,
    without_pages,
)

MAX_MENTIONING = 200
"""The most companies that are read because their text has the words of a name; the index returns short texts first."""
ENOUGH_CANDIDATES = 20
"""Shorter queries run until this number of candidates is found."""
SECONDS_FOR_EXACT_NAMES = 5.0
"""Further seconds in which websites, names and ids are looked up after the time for similar names is over."""
OUT_OF_TIME = "similar names were not searched, because the list took too long; send the rows with this message again"


@dataclass(frozen=True, slots=True)
class RowMatcher:
    """Matches rows with the companies of one generation. Thread-safe.

    `seconds_left`: returns the time that is left to search similar names. SECONDS_FOR_EXACT_NAMES later, nothing is
    searched. `schema`: the attributes of the index.

    `as_typed`: whether a person types one name and sees the company at once. Then "tsmc" also matches the domain
    tsmc.com, a part of a name matches a prominent company, and the largest of several companies is chosen. In a list
    these matches are wrong too often, because nobody checks each of them.
    """

    index: CompanyIndex
    generation: str
    schema: AttributeSchema = field(default_factory=AttributeSchema)
    as_typed: bool = False
    seconds_left: Callable[[], float] = lambda: inf

    def match(self, row: ListedCompany) -> Match:
        """Return the company that matches `row`, or the reason why no company was chosen.

        The whole name is tried before the name and a country after it: "Nestlé (Malaysia)" is a company.
        """
        match = self._match_as_written(row := without_page(row))
        other = with_country(row) if match.company is None else None
        read = self._match_as_written(other) if other else match
        return read if read.company or read.candidates else match

    def _match_as_written(self, row: ListedCompany) -> Match:
        if self.seconds_left() <= -SECONDS_FOR_EXACT_NAMES:
            return Match(miss=OUT_OF_TIME)
        match = self._match(row)
        if match.company is None or match.how is None:
            return self._with_large(match, core_of(row.name))
        if match.how is not How.DOMAIN and countries_differ(row.country, match.company.country):
            return contradicted(row, match.company, self._find(core_of(row.name)).values(), self.schema)
        if match.how is not How.DOMAIN and has_another_website(row, match.company):
            return with_another_website(match.company)
        larger = self.larger_meant(row.name, match.company, match.how) if self.seconds_left() > 0 else ()
        if larger and not self.as_typed:
            return contested(row, match.company, larger)
        return replace(match, confidence=confidence_of(match.how, core_of(row.name)), others=(*match.others, *larger))

    def _with_large(self, match: Match, core: str) -> Match:
        """Return a miss among several companies with the large ones whose names begin with `core`."""
        if not core or not match.is_contested or self.seconds_left() <= 0:
            return match
        large = begun_by(core, self._find(core).values(), self.schema)
        return replace(match, candidates=tuple({each.id: each for each in (*match.candidates, *large)}.values()))

    def larger_meant(self, name: str, company: Company, how: How) -> tuple[Company, ...]:
        """Return the larger companies that `name` may mean instead of `company` (see `namesakes.larger_meant`)."""
        likely = with_website_name(self.index, self.generation, core_of(name)) if how is How.ID else ()
        if is_bare(company, self.schema):
            likely = (*likely, *likely_listings(self.index, self.generation, name, self.schema))
        return larger_meant(name, company, how, self._find, self.schema, likely=likely)

    def _match(self, row: ListedCompany) -> Match:
        if not row.name and not row.domain:
            return Match(miss="the row has neither a name nor a domain; give one of them")
        by_domain = self._by_domain(row)
        by_name = self._by_name(row) if row.name else None
        if by_domain and by_domain.company and by_name is None and row.name and not is_named(by_domain.company, row):
            by_name = self._by_id(row) or (self._by_similar_name(row) if self.seconds_left() > 0 else None)
        pair = [match.company for match in (by_domain, by_name) if match and match.company]
        if len(pair) == 2 and differ(self.index, self.generation, *pair):
            reason = "the domain belongs to one company and the name to another; correct one of them"
            return Match(candidates=tuple(pair), miss=reason)
        by_id = self._by_id(row) if row.name.isupper() and not (by_domain or self.as_typed) else None
        both = [match.company for match in (by_id, by_name) if match and match.company]
        if len(both) == 2 and differ(self.index, self.generation, *both):  # COIN is the id of Coinbase, and a name
            return self._choose(both, row, How.ID, f"have the id or the name {row.name!r}")
        exact = by_domain or by_name or self._by_id(row)
        if exact is not None:
            return exact
        if self.seconds_left() <= 0:
            return Match(miss=OUT_OF_TIME)
        return self._by_similar_name(row) if row.name else unknown_domain(row.domain, self._find, self.schema)

    def _by_domain(self, row: ListedCompany) -> Match | None:
        domain = domain_of(row.domain)
        companies = [company for company in self._with_name(row.domain) if company.domain == domain] if domain else []
        if len(companies) < 2:
            return Match(companies[0], How.DOMAIN) if companies else None
        core = core_of(row.name)
        same_core = [company for company in companies if row.name and core in cores_of(company)]
        if len(companies) >= WIDELY_SHARED and not same_core:
            return None if row.name else several(companies, f"have the domain {domain}; give the name")
        return self._choose(same_core or companies, row, How.DOMAIN, f"have the domain {domain}")

    def _by_name(self, row: ListedCompany) -> Match | None:
        found = [(company, exact_match(company, row.name)) for company in self._with_name(row.name)]
        for how in (How.NAME, How.ALIAS):
            if companies := [company for company, found_how in found if found_how is how]:
                return self._choose(companies, row, how, f"have the name {row.name!r}")
        # `_with_name` also finds domains: a company without this name or alias has `row.name` as its domain.
        companies = [company for company, found_how in found if found_how is None]
        return self._choose(companies, row, How.DOMAIN, f"have the domain {row.name}") if companies else None

    def _by_id(self, row: ListedCompany) -> Match | None:
        stored = self.index.get(self.generation, [row.name]).get(row.name) if row.name else None
        return Match(stored.company, How.ID) if stored else None

    def _with_name(self, name: str) -> list[Company]:
        """Return the companies with the website `name`; if there are none, those with this name or alias."""
        ids = self.index.resolve(self.generation, not_as_id(name))[:MAX_FOUND]
        return without_pages(with_ids(self.index, self.generation, ids), name)

    def _by_similar_name(self, row: ListedCompany) -> Match:
        core = core_of(row.name)
        found: dict[str, Company] = {}
        for query in queries(row.name, core):
            found |= self._find(query)
        has_more = len(found) >= MAX_FOUND
        # In a list, a name with a legal form has the company's own spaces: CellSource Co Ltd is not Cell Source, Inc.
        may_be_split = self.as_typed or not has_legal_form(row.name)
        if may_be_split and not any(core in cores_of(company) for company in found.values()):
            split = (company for query in split_queries(core) for company in self._find(query).values())
            found |= {each.id: each for each in split if is_joined(core, cores_of(each))}
        cores = {company_id: cores_of(company) for company_id, company in found.items()}
        for how, fits, verb in (
            (How.LEGAL_FORM, is_core, "have, apart from the legal form, the name"),
            (How.WORDS, has_same_words, "have a name with the words of"),
        ):
            if fitting := [company for company_id, company in found.items() if fits(core, cores[company_id])]:
                longer = [
                    each
                    for each in found.values()
                    if (contains_core if self._is_prominent(each) else extends_core)(core, cores[each.id])
                ]
                return self._choose_or_longer(fitting, longer, row, how, f"{verb} {row.name!r}")
        if match_by_short_name := self._by_short_name(row, core, found, cores):
            return match_by_short_name
        tickers = largest_first(similar_tickers(self.index, self.generation, row.name), self.schema)
        if tickers or self.seconds_left() <= 0:
            return no_match(core, () if tickers else found.values(), self.schema, further=tickers)
        words = " ".join(word for word in core.split() if word != "and")  # most names have "&" instead
        similar = self.index.find_misspelled(self.generation, words, limit=MAX_FOUND)
        misspelled = [each for each in similar if differs_by_typo(row.name, each, prominent=self._is_prominent(each))]
        if misspelled:  # "Goog" is one letter from Gogo, and the id of Alphabet
            misspelled += with_id_in_capitals(self.index, self.generation, row.name)
            return self._choose(misspelled, row, How.SPELLING, f"have a name spelled almost like {row.name!r}")
        found |= {company.id: company for company in similar}
        by_website = with_website_name(self.index, self.generation, core)
        if by_website:
            return only_websites(by_website, most_similar(core, found.values(), self.schema))
        for query in shorter_queries(core):
            if len(found) < ENOUGH_CANDIDATES:
                found |= self._find(query)
        if has_more:
            found |= {each.id: each for each in self.index.find(self.generation, core, limit=MAX_MENTIONING)}
        further = [
            *with_id_in_capitals(self.index, self.generation, row.name),
            *other_classes(self.index, self.generation, row.name),
            *largest_first(listed_as(self.index, self.generation, row.name), self.schema),
        ]
        return no_match(core, found.values(), self.schema, further=further)

    def _find(self, query: str) -> dict[str, Company]:
        return with_words(self.index, self.generation, query)

    def _by_short_name(
        self, row: ListedCompany, core: str, found: dict[str, Company], cores: dict[str, list[str]]
    ) -> Match | None:
        """Return the match of a part of a company's name, of the name of its website, its id or ticker, or None.

        `found`: companies found by words of the name. In a list, "Cash" is not tried as an id.
        """
        fitting: dict[str, tuple[Company, How]] = {}
        possible = [] if country_code(core) else found.values()  # "Hong Kong" alone is a place
        for company in possible:
            prominent = self._is_prominent(company)
            if countries_differ(row.country, company.country):
                continue
            if extends_core(core, cores[company.id]) and (prominent or not is_short(core)):
                fitting[company.id] = company, How.PREFIX
            elif prominent and contains_core(core, cores[company.id]):
                fitting[company.id] = company, How.PART
        if self.as_typed:
            by_website = with_website_name(self.index, self.generation, core)
            likely = (each for each in by_website if not is_unlikely(core, each, found, self.schema))
            fitting |= {company.id: (company, How.WEBSITE_NAME) for company in likely}
        for company in with_ids(
            self.index, self.generation, possible_ids(row.name) if self.as_typed or not row.name.istitle() else ()
        ):
            if "&" not in row.name or has_initials(core, cores_of(company)):  # "M&S" does not mean the id MS
                fitting[company.id] = company, How.ID
        if not fitting:
            return self._by_ticker(row) if self.as_typed else None
        companies = [company for company, _ in fitting.values()]
        match = self._choose(companies, row, How.SIZE, f"may be meant by {row.name!r}")
        if match.company is None:
            return match
        how = fitting[match.company.id][1]
        is_local = has_only_country_after(core, match.company) and not self.schema.is_prominent(match.company)
        is_abroad = is_local and not is_same_country(match.company.country, row.country)
        if how in (How.PREFIX, How.WEBSITE_NAME) and is_abroad:
            return part_of_a_group(row, match.company, companies)
        if how in (How.PREFIX, How.PART) and not is_sure_part(how, core, cores[match.company.id]):
            return only_a_part(row, match.company, companies)
        named = (each for each in found.values() if contains_core(core, cores[each.id]) or each.id in fitting)
        others = as_large(named, match.company, core, self.schema) if self.as_typed else ()
        return replace(match, how=how if len(companies) == 1 else How.SIZE, others=others)

    def _by_ticker(self, row: ListedCompany) -> Match | None:
        """Return the match of a ticker without its exchange; None if no company has it, or none is sure enough.

        Companies on different exchanges may have the same ticker of letters, so only a prominent company is chosen.
        Measured with the American tickers of 15,485 companies, 0.8 to 0.93 of the prominent ones were right, and 0.43
        to 0.65 of the others.
        """
        companies = [] if has_exchange(row.name) else listed_as(self.index, self.generation, row.name)
        if not companies:
            return None
        match = self._choose(companies, row, How.ID, f"have the ticker {row.name!r}")
        is_sure = row.name.strip().isdigit()
        if is_sure or match.company is None:
            return match if is_sure or any(map(self._is_prominent, companies)) else None
        return replace(match, how=How.SIZE) if self._is_prominent(match.company) else None

    def _choose(self, companies: Sequence[Company], row: ListedCompany, how: How, predicate: str) -> Match:
        """Return the match with the only one of `companies`; if some are in the row's country, only these count.

        Of several, the clearly largest is chosen if `as_typed`; `predicate` completes "<count> companies ...".
        """
        companies = of_country(companies, row)
        if len(companies) == 1:
            return Match(companies[0], how)
        if self.as_typed:
            shared = widely_shared_domains(self.index, self.generation, map(Identity.of, companies))
            if largest := largest_or_only(core_of(row.name), companies, self.schema, widely_shared=shared):
                return Match(largest, How.SIZE)
        advice = "choose one" if how is How.DOMAIN else "choose one, or give its domain"
        return several(companies, f"{predicate}; {advice}")

    def _choose_or_longer(
        self, companies: Sequence[Company], longer: Sequence[Company], row: ListedCompany, how: How, predicate: str
    ) -> Match:
        """Return the match with one of `companies`, unless the row may mean a larger one of `longer`.

        `longer`: companies whose names are longer and begin with the row's name; prominent ones may only contain it.
        """
        match = self._choose(companies, row, how, predicate)
        is_word = " " not in row.name.strip() and not has_legal_form(row.name)  # "Dai-ichi" is one, too
        if match.company is None or (match.how is How.SIZE and is_word):
            wider = self._choose([*companies, *longer], row, how, predicate)
            if wider.company or match.company is None:
                return wider
        here = [each for each in longer if not countries_differ(row.country, each.country)]
        if is_word and self.schema.is_prominent(match.company):
            return replace(match, others=as_large([*companies, *here], match.company, core_of(row.name), self.schema))
        if is_word:
            here += likely_listings(self.index, self.generation, row.name, self.schema)
        larger = [each for each in here if is_larger(each, match.company, self.schema)]
        is_weak = is_word or (self.as_typed and is_bare(match.company, self.schema))
        if not larger or self.schema.is_prominent(match.company) or not is_weak:
            return match
        return contested(row, match.company, larger)

    def _is_prominent(self, company: Company) -> bool:
        """Return whether `company` is prominent; False unless `as_typed`."""
        return self.as_typed and self.schema.is_prominent(company)
