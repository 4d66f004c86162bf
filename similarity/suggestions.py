"""Which companies may be meant by a name that nobody goes by: the same for every way of asking."""

from similarity.company import Company, name_key
from similarity.index.protocol import CompanyIndex

SUGGESTIONS = 5
SHORTEST_START = 3


def companies_meant(index: CompanyIndex, generation: str, reference: str) -> list[Company]:
    """Up to SUGGESTIONS companies: found by what was typed, else those with a name that starts with its first half."""
    near = index.find(generation, reference, limit=SUGGESTIONS)
    if near:
        return near
    half = name_key(reference[: max(SHORTEST_START, len(reference) // 2 + 1)])
    return [
        company
        for company in index.find(generation, half, limit=SUGGESTIONS)
        if any(name_key(name).startswith(half) for name in (company.name, *company.aliases))
    ]
