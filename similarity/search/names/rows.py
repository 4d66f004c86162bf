"""The rows of a list of companies, and their matches."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from similarity.company import MAX_NAME_CHARACTERS, SHARED_HOSTS, Company
from similarity.search.countries import country_code, is_same_country
from similarity.search.names.comparison import (
    How,
    contains_core,
    core_of,
    cores_of,
    domain_of,
    extends_core,
    has_initials,
    has_legal_form,
    name_similarity,
)

MAX_FOUND = 50
"""The most companies that one query finds."""
MIN_HOST_LETTERS = 4
LIKE_NAME = 0.85
"""If a row's name is at least this similar to a name of its website's company, no other company is searched."""
NAMED_IN_PATH = re.compile(r"/(?:company|companies|organization|wiki|app|products|startups?)/([^/?#]+)")
OF_HANDLE = re.compile(
    r"(?:https?://)?(?:www\.|m\.)?(?:twitter|x|facebook|instagram|tiktok)\.com/"
    r"(?!(?:home|search|explore|i|p|intent|share|sharer|hashtag|pages|groups|profile\.php|login)(?:[/?#]|$))"
    r"@?([\w.-]+)/?(?:[?#].*)?",
    re.IGNORECASE,
)
TICKER = re.compile(r"\([A-Z][A-Za-z ]{1,19}: ?([A-Z0-9][A-Z0-9.-]{0,9})\)$")
"""A ticker after a name, as news articles write it: (NASDAQ: PEP)."""
BARE_TICKER = re.compile(r"\(([A-Z0-9][A-Z0-9.-]{0,9})\)$")
"""A ticker without its exchange: (PEP). It may also be a part of the name: Equinix, Inc. (REIT)."""
HOME = re.compile(r"(?:https?://)?[^/?#@]+/?(?:[?#].*)?", re.IGNORECASE)
"""The address of a website, not of a page on it."""
WITH_COUNTRY = re.compile(r"(.*\S)\s*(?:,([^,]+)|\(([^()]+)\))")


@dataclass(frozen=True, slots=True)
class ListedCompany:
    """A row of a list: the name or the website of a company, or both.

    `country` is used to choose between several companies with the same name.
    """

    name: str = ""
    domain: str = ""
    country: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """The company of a row and how it was matched. If `company` is None, `miss` is the reason.

    `confidence`: the measured share of correct matches of this kind (`confidence_of`). `candidates`: companies that
    the row may mean, best first. `others`: companies, as large or larger, that it may mean instead of `company`.
    `is_contested`: whether several companies fit equally well. `is_described`: whether only the description or website
    of the first candidate, and not its name, is like the row's name.
    """

    company: Company | None = None
    how: How | None = None
    confidence: float | None = None
    candidates: tuple[Company, ...] = ()
    others: tuple[Company, ...] = ()
    miss: str = ""
    is_contested: bool = False
    is_described: bool = False


def with_country(row: ListedCompany) -> ListedCompany | None:
    """Return the row with the country split off from the name, where it is in brackets or after the last comma.

    None if there is no such country, or if the row has one already. A legal form is no country, although "SA" is Saudi
    Arabia.

    >>> with_country(ListedCompany("Nike (United States)"))
    ListedCompany(name='Nike', domain='', country='United States')
    """
    found = WITH_COUNTRY.fullmatch(row.name.strip()) if len(row.name) <= MAX_NAME_CHARACTERS else None
    country = (found[2] or found[3]).strip() if found else ""
    if found is None or row.country or not country_code(country) or core_of(row.name) == core_of(found[1]):
        return None
    return replace(row, name=found[1], country=country)


def without_ticker(name: str) -> str:
    """Return a name without the ticker in brackets after it; a name that is only a ticker is returned unchanged."""
    return TICKER.sub("", name).strip() or name


def with_ticker(name: str) -> tuple[str, str]:
    """Return a name without the ticker in brackets at its end, and the ticker; it may lack the exchange.

    The ticker is empty if there is none. A country, such as (UK), is not taken for one.

    >>> with_ticker("NIKE, Inc. (NYSE: NKE)"), with_ticker("PepsiCo Inc. (PEP)")
    (('NIKE, Inc.', 'NKE'), ('PepsiCo Inc.', 'PEP'))
    """
    name = name.strip()
    found = TICKER.search(name) or BARE_TICKER.search(name)
    plain = name[: found.start()].strip() if found and not country_code(found[1]) else ""
    return (plain, found[1]) if found and plain else (name, "")


def without_pages(companies: Sequence[Company], website: str) -> list[Company]:
    """Return the companies without those whose domain is a shared host that `website` does not mean.

    A shared host has the name of its owner: etsy.com is Etsy's, etsy.com/shop/knits is not. A start-up with a page of
    facebook.com is not Facebook.
    """
    host = domain_of(website)
    if host not in SHARED_HOSTS:
        return list(companies)
    is_home = HOME.fullmatch(website.strip()) is not None
    return [each for each in companies if each.domain != host or (is_home and _is_named_like_host(each, host))]


def _is_named_like_host(company: Company, host: str) -> bool:
    labels = host.split(".")[:-1]
    names = [core.replace(" ", "") for core in cores_of(company)]
    return any(
        name in {label, host.replace(".", "")} or (len(label) >= MIN_HOST_LETTERS and name.startswith(label))
        for name in names
        for label in labels
    )


def page_name(text: str) -> str:
    """Return the name in the address of a page about a company on a shared host; empty for any other text.

    >>> page_name("https://www.linkedin.com/company/hugo-boss/about/")
    'hugo boss'
    """
    domain = domain_of(text)
    named = OF_HANDLE.fullmatch(text.strip()) or NAMED_IN_PATH.search(text)
    if named is None or SHARED_HOSTS.isdisjoint({domain, domain.partition(".")[2]}):
        return ""
    name = " ".join(re.sub("[-_]", " ", unquote(named[1])).split())
    return "" if name.isdecimal() else name


def without_page(row: ListedCompany) -> ListedCompany:
    """Return the row without the address of a page on a shared host; the name in it replaces a missing name."""
    page = page_name(row.domain or row.name)
    return replace(row, name=(row.domain and row.name) or page, domain="") if page else row


def has_another_website(row: ListedCompany, company: Company) -> bool:
    """Return whether a row with a name of one word, without a legal form, has another website than `company`.

    Such a row may well mean a company that is missing: "Bosch" with bosch.com is not Bosch Limited, bosch.in.
    """
    domain = domain_of(row.domain)
    is_word = " " not in core_of(row.name) and not has_legal_form(row.name)
    # "booking.com" alone is both the name and the website of its row.
    is_known = domain not in {"", domain_of(row.name), *SHARED_HOSTS} and company.domain not in {"", domain}
    return is_word and is_known


def contested(row: ListedCompany, company: Company, larger: Sequence[Company]) -> Match:
    """Return the miss of a row that may mean `company` or one of `larger`; companies of its country come first."""
    reason = f"{row.name!r} may also mean another company; choose one, or give its domain"
    by_id = {each.id: each for each in (company, *larger)}
    by_country = sorted(by_id.values(), key=lambda each: not is_same_country(each.country, row.country))
    return Match(candidates=tuple(by_country), miss=reason, is_contested=True)


def several(companies: Sequence[Company], problem: str) -> Match:
    """Return the miss of a row that fits several companies: "<count> companies <problem>"."""
    count = f"{len(companies)}" if len(companies) < MAX_FOUND else f"{MAX_FOUND} or more"
    return Match(candidates=tuple(companies), miss=f"{count} companies {problem}", is_contested=True)


def with_another_website(company: Company) -> Match:
    """Return the miss of a row with a name of `company`, but the website of nobody or another."""
    reason = f"no company has both; {company.name!r} has another website, {company.domain}"
    return Match(candidates=(company,), miss=reason)


def only_websites(companies: Sequence[Company], similar: Sequence[Company]) -> Match:
    """Return the miss of a name that only websites have: wrong too often to be chosen without a check by a person."""
    problem = f"no company has that name; {companies[0].name!r} has such a website"
    candidates = tuple({each.id: each for each in (*companies, *similar)}.values())
    return Match(candidates=candidates, miss=f"{problem}: choose it, or give the website", is_described=True)


def only_a_part(row: ListedCompany, company: Company, companies: Sequence[Company]) -> Match:
    """Return the miss of a row that is too small a part of the name of `company`, one of the fitting `companies`."""
    reason = f"{row.name!r} is only a part of the name of {company.name!r}; give more of the name"
    return Match(candidates=tuple(companies), miss=reason, is_contested=len(companies) > 1)


def part_of_a_group(row: ListedCompany, company: Company, companies: Sequence[Company]) -> Match:
    """Return the miss of a row that may mean the group of `company`, one of the fitting `companies`."""
    problem = f"{row.name!r} may mean the group of {company.name!r}, which is not here under that name"
    reason = f"{problem}; choose {company.id} if it is meant, or add the group"
    return Match(candidates=tuple(companies), miss=reason, is_contested=len(companies) > 1)


def not_as_id(name: str) -> str:
    """Return a reference that the index resolves as a domain, name or alias, but not as an id.

    A leading space has this effect: an id has none, and domains and names are compared without it.
    """
    return f" {name}"


def of_country(companies: Sequence[Company], row: ListedCompany) -> Sequence[Company]:
    """Return the companies of the row's country; if there are none, all companies."""
    return [each for each in companies if is_same_country(each.country, row.country)] or companies


def is_named(company: Company, row: ListedCompany) -> bool:
    """Return whether the row's name is like a name of the company, or is the first part of its website."""
    core = core_of(row.name)
    cores = cores_of(company)
    letters = core.replace(" ", "")
    return (
        letters == company.domain.partition(".")[0].replace("-", "")
        or max(name_similarity(core, each) for each in cores) >= LIKE_NAME
        or extends_core(core, cores)
        or contains_core(core, cores)
        or (" " in core and has_initials(core, cores))
    )
