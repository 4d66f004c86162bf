"""Resolution of references (ids, domains, names, aliases) to companies, exactly or as people type them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias

from similarity.company import SHARED_HOSTS, Company, EmbeddedCompany
from similarity.index.attributes import AttributeSchema
from similarity.index.protocol import CompanyIndex, Generation
from similarity.search.duplicates import WIDELY_SHARED, Identity, widely_shared_domains
from similarity.search.errors import AmbiguousCompany, UnknownCompany
from similarity.search.names.candidates import largest_first
from similarity.search.names.comparison import (
    How,
    core_of,
    cores_of,
    domain_of,
    exact_match,
    is_domain,
)
from similarity.search.names.confidence import confidence_of
from similarity.search.names.index_queries import likely_listings, listed_as, with_words
from similarity.search.names.list_matching import RowMatcher
from similarity.search.names.namesakes import choose_namesake, has_namesakes, is_bare, largest_or_only
from similarity.search.names.rows import (
    MAX_FOUND,
    ListedCompany,
    Match,
    not_as_id,
    page_name,
    with_ticker,
    without_pages,
)

CANDIDATES_SHOWN = 20
MAX_LISTED, CANDIDATES_OF_MANY = 50, 2
"""Of how many ambiguous references in one query CANDIDATES_SHOWN companies are read; of further ones, how many are."""
NO_DESCRIPTION = "—"
SUGGESTIONS_SHOWN = 5
BEGUN_ALIKE_SHOWN = 3
MIN_BEGINNING, MAX_BEGINNING = 2, 40
IDS_PER_REQUEST = 1_000
IDS_PER_SHORTENED_REQUEST = 50
"""A description may take 800 kB, and all descriptions of one request are in memory together."""
WITH_ID = re.compile(r"(.*\S)\s*\(([^()]+)\)")
"""A company as messages and suggestions name it: NIKE, Inc. (NKE)."""
TYPED_ID = re.compile("[A-Za-z-]+")
MIN_CONFIDENCE = 0.75
"""A match with a lower confidence is only suggested."""


@dataclass(frozen=True, slots=True)
class FoundCompany:
    """The company that a reference resolves to.

    `confidence`: measured share of correct matches of this kind (`confidence_of`). It is 1 for an id, and for a
    domain, name or alias that only this company has. `others`: companies that the reference may also mean.
    """

    document: EmbeddedCompany
    confidence: float = 1.0
    others: tuple[Company, ...] = ()


Resolved: TypeAlias = FoundCompany | UnknownCompany | AmbiguousCompany
"""The company that a reference resolves to, or the reason why there is none."""


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves references to companies of one `generation`.

    An id takes precedence over domains, names and aliases. If the reference equals none of these, the company with the
    most similar name is chosen (`list_matching`). If `exact` is true, similar names are only suggested.

    `shorten`: returns the part of a company to keep. It is called while companies are read, a few at a time: in queries
    that name thousands of companies, whole descriptions would take gigabytes (`without_description`). Use it only with
    `exact`, because the choice among namesakes needs descriptions.
    """

    index: CompanyIndex
    generation: Generation
    exact: bool = False
    shorten: Callable[[Company], Company] | None = None

    def company(self, reference: str) -> FoundCompany:
        """Return the company that `reference` resolves to.

        Raises:
            UnknownCompany: no company matches.
            AmbiguousCompany: several companies match equally well.
        """
        found = self.companies([reference], max_similar_searches=1)[reference]
        if not isinstance(found, FoundCompany):
            raise found
        return found

    def companies(self, references: Iterable[str], *, max_similar_searches: int) -> dict[str, Resolved]:
        """Return the company or the error for each of `references`.

        Similar names, and then namesakes of exact names, are searched for at most `max_similar_searches` references,
        because such a search is slow; larger companies that an id also names have an equal limit of their own. The
        address of a page about a company on a shared host stands for the name in it (`page_name`), unless `exact`.
        """
        distinct = list(dict.fromkeys(references))
        if pages := {} if self.exact else {each: not_as_id(name) for each in distinct if (name := page_name(each))}:
            names = [pages.get(each, each) for each in distinct]
            by_name = self.companies(names, max_similar_searches=max_similar_searches)
            return {each: by_name[pages.get(each, each)] for each in distinct}
        by_id = self.stored(distinct)
        resolved: dict[str, Resolved] = {company_id: FoundCompany(stored) for company_id, stored in by_id.items()}
        for company_id, stored in islice(by_id.items(), max_similar_searches):
            resolved[company_id] = FoundCompany(stored, others=self._named_like_id(stored.company))
        not_ids = [reference for reference in distinct if reference not in resolved]
        ids_of = self.index.resolve_many(self.generation.name, not_ids) if not_ids else {}
        ids_of |= self._of_shared_hosts(ids_of)
        ids_of |= self._ids_beside_names([reference for reference, ids in ids_of.items() if not ids])
        by_id = self.stored([company_id for ids in ids_of.values() if len(ids) == 1 for company_id in ids])
        candidates: dict[tuple[str, ...], tuple[Company, ...]] = {}
        searches = 0
        for reference, ids in sorted(ids_of.items(), key=lambda item: len(item[1]) == 1):
            # The company may have been deleted after `resolve_many`, so its id may be missing from `by_id`.
            if len(ids) == 1 and ids[0] in by_id:
                is_checked = searches < max_similar_searches and self._is_name(reference, by_id[ids[0]].company)
                searches += is_checked
                found = self._of_name(reference, [by_id[ids[0]].company]) if is_checked else None
                resolved[reference] = found or FoundCompany(by_id[ids[0]])
            elif searches < max_similar_searches:
                searches += 1
                resolved[reference] = self._most_similar(reference, ids, is_alone=len(distinct) == 1)
            else:
                # A thousand references may be pages of one website: its companies are read once. Or each may be a name
                # of many companies with long attributes: few of them are read, and what errors show is kept.
                shown = tuple(ids[: CANDIDATES_SHOWN if len(candidates) < MAX_LISTED else CANDIDATES_OF_MANY])
                candidates[shown] = candidates.get(shown) or tuple(map(identity_only, self._companies(shown)))
                resolved[reference] = self._error(reference, ids, Match(candidates=candidates[shown]))
        return {reference: resolved[reference] for reference in distinct}

    def with_ids(self, ids: Iterable[str]) -> dict[str, Resolved]:
        """Return the company with each of `ids`, or the error that there is none."""
        distinct = list(dict.fromkeys(ids))
        stored = self.stored(distinct)
        return {each: FoundCompany(stored[each]) if each in stored else UnknownCompany(each) for each in distinct}

    def deleted(self, ids: Sequence[str]) -> set[str]:
        """Return those of `ids` that deleted companies had."""
        return set(self.index.stored_versions(self.generation.name, ids)) - self.stored(ids).keys()

    def _ids_beside_names(self, references: Sequence[str]) -> dict[str, list[str]]:
        """Return the id in each reference "NAME (ID)" whose NAME, but for its legal form, is that of this company."""
        written = {each: found for each in references if (found := WITH_ID.fullmatch(each.strip()))}
        by_id = self.stored(list({found[2] for found in written.values()}))
        fitting = {
            reference: (not_as_id(found[1]), found[2])
            for reference, found in written.items()
            if found[2] in by_id and core_of(found[1]) in cores_of(by_id[found[2]].company)
        }
        # EQT AB (EQT) is not EQT Corporation, whose id is EQT.
        names = [name for name, _ in fitting.values()]
        named = self.index.resolve_many(self.generation.name, names) if names else {}
        return {reference: [each] for reference, (name, each) in fitting.items() if each in (named[name] or [each])}

    def _of_shared_hosts(self, ids_of: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Return the ids of each reference on a shared host without the companies that only have a page there."""
        hosts = {each: host for each, ids in ids_of.items() if ids and (host := domain_of(each)) in SHARED_HOSTS}
        one_of_each = {host: reference for reference, host in hosts.items()}  # all have the same ids
        found = {host: self._companies(ids_of[each][:CANDIDATES_SHOWN]) for host, each in one_of_each.items()}
        return {each: [company.id for company in without_pages(found[host], each)] for each, host in hosts.items()}

    def _beside_ticker(self, reference: str, name: str, ticker: str) -> Resolved:
        """Return the company of a reference "NAME (TICKER)": that of the name, unless another has the ticker as its id.

        Ids may have an exchange: Airbus SE (AIR) is AIR.DE, although AIR is another company.
        """
        spelled = not_as_id(name)
        named = self.companies([spelled], max_similar_searches=1)[spelled]
        is_found = isinstance(named, FoundCompany)
        meant = (named.document.company,) if isinstance(named, FoundCompany) else possible(named)
        listed = [each for each in meant if re.split("[.-]", each.id)[0] == ticker or each.id == ticker]
        if isinstance(named, FoundCompany) and listed:
            return named
        if len(listed) == 1 and not self.exact and (stored := self.stored([listed[0].id])):
            return FoundCompany(stored[listed[0].id], confidence_of(How.ID, ticker))
        other = [document.company for document in self.stored([ticker]).values()]
        if isinstance(named, FoundCompany) and not other and not self.exact:
            elsewhere = listed_as(self.index, self.generation.name, ticker)  # Siemens Energy (SIE): SIE.DE is Siemens
            prominent = filter(self.index.attributes().is_prominent, elsewhere)
            return replace(named, others=tuple({each.id: each for each in (*named.others, *prominent)}.values()))
        by_id = {each.id: each for each in ((*meant, *other) if is_found else (*other, *meant))}
        return self._error(reference, (), Match(candidates=(*by_id.values(),), is_contested=bool(is_found and other)))

    def _named_like_id(self, company: Company) -> tuple[Company, ...]:
        """Return larger companies that the id of `company` names: HP is the id of Helmerich & Payne."""
        if self.exact or not TYPED_ID.fullmatch(company.id):
            return ()
        schema = self.index.attributes()
        if not schema.size or (schema.is_prominent(company) and core_of(company.id) in cores_of(company)):
            return ()
        return self._matcher(schema).larger_meant(company.id, company, How.ID)

    def _is_name(self, reference: str, company: Company) -> bool:
        """Return whether `reference` is exactly a name of `company`, but may also mean a namesake."""
        is_open = has_namesakes(reference) or is_bare(company, self.index.attributes())
        return not self.exact and is_open and exact_match(company, reference) is not None

    def _of_name(self, reference: str, exact: Sequence[Company]) -> Resolved | None:
        """Return the company or error for `reference`, a name of the companies `exact`; None if it has been deleted."""
        schema = self.index.attributes()
        found = list(with_words(self.index, self.generation.name, core_of(reference)).values())
        shared = widely_shared_domains(self.index, self.generation.name, map(Identity.of, (*exact, *found)))
        is_unsure = all(is_bare(each, schema) for each in exact)
        likely = likely_listings(self.index, self.generation.name, reference, schema) if is_unsure else ()
        choice = choose_namesake(reference, exact, found, schema, likely=likely, widely_shared=shared)
        if choice.company is None:
            return self._error(reference, (), Match(candidates=choice.others, is_contested=True))
        stored = self.stored([choice.company.id]).get(choice.company.id)
        if stored is None:
            return None
        how = How.NAME if len(exact) == 1 and choice.company == exact[0] else How.SIZE
        is_certain = how is How.NAME and not choice.others
        return FoundCompany(stored, 1.0 if is_certain else confidence_of(how, core_of(reference)), choice.others)

    def _most_similar(self, reference: str, ids: Sequence[str], *, is_alone: bool) -> Resolved:
        """Return the company with the most similar name, or the largest of several exact matches `ids`.

        Without a similar name, names that begin alike are suggested if the reference `is_alone` in its query.
        """
        schema = self.index.attributes()
        if len(ids) > 1:
            same_name = self._companies(ids[:CANDIDATES_SHOWN])
            if same_name and self._is_name(reference, same_name[0]) and (found := self._of_name(reference, same_name)):
                return found
            # A website that many companies have is likely wrong, so it does not mean the largest of them.
            is_shared = len(ids) >= WIDELY_SHARED and all(each.domain == domain_of(reference) for each in same_name)
            largest = None if self.exact or is_shared else largest_or_only(core_of(reference), same_name, schema)
            match = Match(largest, How.SIZE, confidence_of(How.SIZE, reference), tuple(same_name), is_contested=True)
        else:
            match = self._match(reference, schema)
            name, ticker = with_ticker(reference)
            if ticker and match.company is None and "(" not in name:
                return self._beside_ticker(reference, name, ticker)
        if match.company is not None and (match.confidence or 0.0) >= MIN_CONFIDENCE and not self.exact:
            by_id = self.stored([match.company.id])
            if match.company.id in by_id:
                return FoundCompany(by_id[match.company.id], match.confidence or 0.0, match.others)
        error = self._error(reference, ids, match)
        if self.exact or isinstance(error, AmbiguousCompany):
            return error
        is_ticker = reference.isupper() and error.suggestions  # VOW3.DE
        if is_domain(reference) and not is_ticker:  # a website that no company has: search the name in it
            named = self._match(domain_of(reference).partition(".")[0], schema)
            error = self._unknown(reference, named) if named.company or named.candidates else error
        if error.suggestions:
            return error
        begun_alike = self._begun_alike(core_of(reference), schema) if is_alone else ()
        return UnknownCompany(reference, self._shortened(begun_alike), is_unlike_all=True)

    def _match(self, name: str, schema: AttributeSchema) -> Match:
        return self._matcher(schema).match(ListedCompany(name=name))

    def _matcher(self, schema: AttributeSchema) -> RowMatcher:
        return RowMatcher(self.index, self.generation.name, schema, as_typed=True)

    def _begun_alike(self, core: str, schema: AttributeSchema) -> list[Company]:
        """Return the companies whose names share the longest beginning with `core`, the largest first."""
        for letters in range(min(len(core) - 1, MAX_BEGINNING), MIN_BEGINNING - 1, -1):
            found = self.index.find(self.generation.name, core[:letters], limit=MAX_FOUND)
            begun = [each for each in found if core_of(each.name).startswith(core[:letters])]
            if begun:
                return largest_first(begun, schema)[:BEGUN_ALIKE_SHOWN]
        return []

    def _error(self, reference: str, ids: Sequence[str], match: Match) -> UnknownCompany | AmbiguousCompany:
        """Return the error for a reference with the exact matches `ids` and the similar names in `match`."""
        if len(ids) > 1 or (match.is_contested and not self.exact):
            candidates = list({each.id: each for each in match.candidates}.values())
            candidates = candidates or self._companies(ids[:CANDIDATES_SHOWN])
            count = max(len(ids), len(candidates))
            return AmbiguousCompany(reference, self._shortened(candidates[:CANDIDATES_SHOWN]), count=count, ids=ids)
        return self._unknown(reference, match)

    def _unknown(self, reference: str, match: Match) -> UnknownCompany:
        suggestions = [match.company] if match.company else list(match.candidates)
        return UnknownCompany(
            reference, self._shortened(suggestions[:SUGGESTIONS_SHOWN]), is_described=match.is_described
        )

    def _shortened(self, companies: Sequence[Company]) -> Sequence[Company]:
        return companies if self.shorten is None else [self.shorten(each) for each in companies]

    def _companies(self, ids: Sequence[str]) -> list[Company]:
        by_id = self.stored(ids)
        return [by_id[company_id].company for company_id in ids if company_id in by_id]

    def stored(self, ids: Sequence[str]) -> dict[str, EmbeddedCompany]:
        """Return the stored companies among `ids`, by id."""
        by_id: dict[str, EmbeddedCompany] = {}
        size = IDS_PER_REQUEST if self.shorten is None else IDS_PER_SHORTENED_REQUEST
        for start in range(0, len(ids), size):
            documents = self.index.get(self.generation.name, ids[start : start + size])
            if self.shorten is not None:
                documents = {
                    each: replace(document, company=self.shorten(document.company))
                    for each, document in documents.items()
                }
            by_id |= documents
        return by_id


def possible(error: UnknownCompany | AmbiguousCompany) -> tuple[Company, ...]:
    """Return the companies that a reference may mean, best first."""
    return error.candidates if isinstance(error, AmbiguousCompany) else error.suggestions


def identity_only(company: Company) -> Company:
    """Return the company with its id, name, domain and country only."""
    return Company(
        id=company.id,
        name=company.name,
        description=NO_DESCRIPTION,
        domain=company.domain,
        country=company.country,
    )


def without_description(company: Company) -> Company:
    """Return the company with a placeholder for its description, which a company cannot lack."""
    return replace(company, description=NO_DESCRIPTION)
