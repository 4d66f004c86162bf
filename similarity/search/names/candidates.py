"""Candidates of a name that no company has: companies of similar names, and prominent ones that the words may mean."""

from collections.abc import Callable, Collection, Iterable, Mapping

from similarity.company import Company
from similarity.index.attributes import AttributeSchema
from similarity.preparation.masking import GROUP_WORDS
from similarity.search.countries import is_same_country
from similarity.search.names.comparison import (
    MIN_JOINED_LETTERS,
    contains_core,
    core_of,
    cores_of,
    domain_of,
    extends_core,
    name_similarity,
    words_of,
)
from similarity.search.names.confidence import RARE_AT_START
from similarity.search.names.rows import ListedCompany, Match
from similarity.search.names.words import names_with

MAX_BY_WORDS = 3
MIN_CANDIDATE_SIMILARITY = 0.6
FIRST_WORDS_LIKENESS = 0.9
BEGUN_LIKENESS = 0.89
"""The likeness of a name that begins with what was typed: just below that of a name with these first words."""
MIN_BEGUN_LETTERS = 3


def prominent_first(companies: Iterable[Company], core: str, schema: AttributeSchema) -> list[Company]:
    """Return the prominent companies whose name, description or website has the words of `core`, the largest first.

    A description has former names and brands: "google" finds Alphabet, "zara" finds Inditex. A website has them too:
    Saudi Arabian Oil has aramco.com. The companies may have been found by other spellings, such as "space x" for
    "spacex".
    """
    prominent = [each for each in companies if schema.is_prominent(each)]
    telling = [
        each
        for each in prominent
        if _has_words(core, cores_of(each)) or _tells(core, each.description) or _is_website_of(core, each.domain)
    ]
    return largest_first(sorted(telling, key=lambda each: -_likeness_of(core, cores_of(each))), schema)


def largest_first(companies: Iterable[Company], schema: AttributeSchema) -> list[Company]:
    """Return the companies by size, the largest first. An unknown size counts as 0; equal sizes keep their order."""
    return sorted(companies, key=lambda each: -(schema.size_of(each) or 0.0))


def no_match(
    core: str, companies: Collection[Company], schema: AttributeSchema, *, further: Iterable[Company] = ()
) -> Match:
    """Return the match of a name that no company has.

    Its candidates are companies whose names begin with the words, the first of `prominent_first`, `further`, then those
    of `companies` with similar names.
    """
    by_words = prominent_first(companies, core, schema)[:MAX_BY_WORDS]
    begun = largest_first((each for each in companies if extends_core(core, cores_of(each))), schema)[:MAX_BY_WORDS]
    first = (*begun, *by_words, *further)
    candidates = tuple({each.id: each for each in (*first, *most_similar(core, companies, schema))}.values())
    if by_words and not is_named_alike(core, candidates[0]):
        reason = f"no company has that name; the description or website of {candidates[0].name!r} mentions it"
        return Match(candidates=candidates, miss=reason, is_described=True)
    if candidates:
        return Match(candidates=candidates, miss=f"no company has that name; the nearest is {candidates[0].name!r}")
    return Match(miss="no company has that name or a similar one")


def unknown_domain(website: str, find: Callable[[str], Mapping[str, Company]], schema: AttributeSchema) -> Match:
    """Return the miss of a website that no company has; `find` returns companies with words in their names, by id."""
    domain = domain_of(website)
    if not domain:
        return Match(miss=f"{website!a} is not a website such as 'example.com'")
    website_name = domain.partition(".")[0]
    candidates = most_similar(website_name, find(website_name).values(), schema)
    return Match(candidates=candidates, miss=f"no company has the domain {domain}")


def contradicted(row: ListedCompany, company: Company, found: Collection[Company], schema: AttributeSchema) -> Match:
    """Return the miss of a row whose name is a name of `company`, which is in another country."""
    similar = most_similar(core_of(row.name), found, schema)
    same_country = [each for each in similar if is_same_country(each.country, row.country)]
    problem = f"{company.name!r} is in {company.country} and the row in {row.country!r}"
    return Match(candidates=(*same_country, company), miss=f"{problem}; choose one, or give its domain")


def is_named_alike(core: str, company: Company) -> bool:
    """Return whether a name or alias of the company has the words of `core`, or is similar."""
    cores = cores_of(company)
    return _has_words(core, cores) or _likeness_of(core, cores) >= MIN_CANDIDATE_SIMILARITY


def most_similar(core: str, companies: Collection[Company], schema: AttributeSchema) -> tuple[Company, ...]:
    """Return the companies with a similar name or alias, most similar first, the larger first of equal ones."""
    likeness = {each.id: _likeness_of(core, cores_of(each)) for each in companies}
    similar = [each for each in companies if likeness[each.id] >= MIN_CANDIDATE_SIMILARITY]
    by_size = largest_first(sorted(similar, key=lambda each: each.id), schema)
    return tuple(sorted(by_size, key=lambda each: -likeness[each.id]))


def _has_words(core: str, cores: Iterable[str]) -> bool:
    return any(set(core.split()) <= set(each.split()) for each in cores)


def _tells(core: str, description: str) -> bool:
    """Return whether a description has the words of `core` next to each other, or joined in one word.

    One word must have a capital letter there, because many names are also ordinary words: the text of a company that
    makes grab cranes does not mention Grab.
    """
    joined = core.replace(" ", "")
    capitalised = " ".join(word for word in description.split() if not word.islower())
    is_told = contains_core(joined, [words_of(capitalised)])
    return is_told or (joined != core and contains_core(core, [words_of(description)]))


def _is_website_of(core: str, domain: str) -> bool:
    """Return whether the first label of a domain begins with `core`, or is a word of `core` that few names have."""
    label, joined = domain.partition(".")[0].replace("-", ""), core.replace(" ", "")
    if min(len(label), len(joined)) < MIN_JOINED_LETTERS:
        return False
    return label.startswith(joined) or (label in core.split() and names_with(label) < RARE_AT_START)


def _likeness_of(core: str, cores: Iterable[str]) -> float:
    return max(_likeness(core, other) for other in cores)


def _likeness(core: str, other: str) -> float:
    """Return the similarity of `core` to `other`, or to its first words ("spotfy" is like Spotify Technology).

    `other` may also begin with `core` ("starb", Starbucks), or be `core` joined with a word such as "group" ("citi",
    Citigroup, but not CITIC).
    """
    if other in {f"{core}{word}" for word in GROUP_WORDS}:
        return FIRST_WORDS_LIKENESS
    beginning = " ".join(other.split()[: len(core.split())])
    begun = BEGUN_LIKENESS if len(core) >= MIN_BEGUN_LETTERS and other.startswith(core) else 0.0
    return max(name_similarity(core, other), FIRST_WORDS_LIKENESS * name_similarity(core, beginning), begun)
