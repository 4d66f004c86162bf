"""The order of companies in a search box: exact names first, then names that begin as typed, large companies first."""

from collections.abc import Sequence

from similarity.company import Company, name_key
from similarity.index.attributes import AttributeSchema
from similarity.index.validation import fold

EXACT, PREFIX, WORDS, OTHER = range(4)


def by_prominence(companies: Sequence[Company], query: str, sizes: AttributeSchema) -> list[Company]:
    """Return the companies in the order of a search box.

    1. Companies with exactly this domain, name or alias.
    2. Companies with a name or alias that begins with `query`, the largest first.
    3. Companies with a name or alias that has words with these beginnings, the largest first.
    4. The others.

    Companies that are equal in this order, and companies without a known size, keep their order, which is that of the
    index. Without a declared size, nothing changes.
    """
    if not sizes.size:
        return list(companies)
    key = name_key(query)
    words = fold(query).split()

    def place(company: Company) -> tuple[int, float]:
        kind = _kind(company, key, words)
        size = sizes.size_of(company) if kind in (PREFIX, WORDS) else None
        return kind, float("inf") if size is None else -size

    return sorted(companies, key=place)


def _kind(company: Company, key: str, words: Sequence[str]) -> int:
    names = (company.name, *company.aliases)
    keys = [name_key(name) for name in names]
    if key in (company.domain, *keys):
        return EXACT
    if any(each.startswith(key) for each in keys):
        return PREFIX
    in_names = (fold(name).split() for name in names)
    return WORDS if any(_has_beginnings(held, words) for held in in_names) else OTHER


def _has_beginnings(held: Sequence[str], beginnings: Sequence[str]) -> bool:
    return all(any(word.startswith(beginning) for word in held) for beginning in beginnings)
