"""The companies in a search box: exact ids and names first, then names that begin as typed, large companies first."""

from collections.abc import Sequence

from similarity.company import Company, name_key
from similarity.index.attributes import AttributeSchema
from similarity.index.protocol import CompanyIndex, Generation
from similarity.index.validation import fold
from similarity.preparation.masking import GROUP_WORDS
from similarity.search.errors import UnknownCompany
from similarity.search.names.candidates import largest_first
from similarity.search.names.index_queries import listed_as, possible_ids
from similarity.search.names.resolver import FoundCompany, Resolver, possible

FOUND_TO_ORDER = 200
"""This number of companies is read in the order of the index; the best of them are shown."""
MAX_LIKELY = 3
EXACT, PREFIX, WORDS, OTHER = range(4)


def suggested_companies(index: CompanyIndex, live: Generation, query: str, *, limit: int) -> list[Company]:
    """Return up to `limit` companies whose id, name, alias, domain or words match, as a search box shows them.

    The company that a `Resolver` opens is the first, and then the one with the id `query`, ignoring case; the others
    are in the order of `by_prominence`. The suffix of an exchange may be missing if `query` is a number, or if no name
    or word matches: DELTA.BK is not the first for "delta". If no company is opened, and no name is `query` or begins
    so, companies that may be meant, and names with a typing error, are searched. If `query` is blank, no company is
    found.
    """
    if not query.strip():
        return []
    generation = live.name
    opened = Resolver(index, live).companies([query], max_similar_searches=1)[query]
    by_id = index.get(generation, possible_ids(query))
    first = {opened.document.id: opened.document.company} if isinstance(opened, FoundCompany) else {}
    first |= {company_id: stored.company for company_id, stored in by_id.items()}
    schema = index.attributes()
    found = index.find(generation, query, limit=max(limit, FOUND_TO_ORDER))
    if not found or query.strip().isdigit():
        listed = largest_first(listed_as(index, generation, query), schema)
        first |= {company.id: company for company in listed}
    kinds = {_kind(company, name_key(query), ()) for company in found}
    if not first and EXACT not in kinds and not isinstance(opened, FoundCompany):
        is_unlike_all = isinstance(opened, UnknownCompany) and opened.is_unlike_all
        if PREFIX not in kinds and not is_unlike_all:  # words of descriptions are nearer than names that begin alike
            first |= {company.id: company for company in possible(opened)[:MAX_LIKELY]}
        found = found or index.find_misspelled(generation, query, limit=limit)
    others = [company for company in by_prominence(found, query, schema) if company.id not in first]
    return [*first.values(), *others][:limit]


def by_prominence(companies: Sequence[Company], query: str, schema: AttributeSchema) -> list[Company]:
    """Return the companies in the order of a search box.

    1. Companies with exactly this domain, name or alias.
    2. Companies with a name or alias that begins with `query`, the largest first. Among equally large ones, a name in
       which a word such as "group" is joined to `query` is first: Citigroup is before CITIC for "citi".
    3. Companies with a name or alias whose words begin with the words of `query`, the largest first.
    4. The others.

    In 2 and 3, companies without a known size are last. Companies that are equal in this order keep the order of the
    index. If no size is declared, all companies keep it.
    """
    if not schema.size:
        return list(companies)
    key = name_key(query)
    words = fold(query).split()

    groups = tuple(f"{key}{word}" for word in GROUP_WORDS)

    def place(company: Company) -> tuple[int, float, bool]:
        kind = _kind(company, key, words)
        size = schema.size_of(company) if kind in (PREFIX, WORDS) else None
        is_group = kind == PREFIX and any(name_key(name).startswith(groups) for name in company.compared_names())
        return kind, float("inf") if size is None else -size, not is_group

    return sorted(companies, key=place)


def _kind(company: Company, key: str, words: Sequence[str]) -> int:
    names = company.compared_names()
    keys = [name_key(name) for name in names]
    if key in (company.domain, *keys):
        return EXACT
    if any(each.startswith(key) for each in keys):
        return PREFIX
    in_names = (fold(name).split() for name in names)
    return WORDS if any(_has_beginnings(held, words) for held in in_names) else OTHER


def _has_beginnings(held: Sequence[str], beginnings: Sequence[str]) -> bool:
    return all(any(word.startswith(beginning) for word in held) for beginning in beginnings)
