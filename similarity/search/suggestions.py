"""Which companies may be meant by a name that nobody goes by: the same for every way of asking."""

from similarity.company import Company, name_key
from similarity.index.protocol import CompanyIndex
from similarity.search.name_matching import alikeness

SUGGESTIONS = 5
SHORTEST_START = 2
# So many with one beginning are compared, and so alike must they be: of five letters one may be wrong.
COMPARED = 100
WORTH_SHOWING = 0.5


def suggest_companies(index: CompanyIndex, generation: str, reference: str) -> list[Company]:
    """Up to SUGGESTIONS companies: found by what was typed, else those whose name begins and is spelled like it.

    The beginning is ever shorter, from half of what was typed, until a name with it is alike: the first letters
    are seldom the wrong ones.
    """
    near = index.find(generation, reference, limit=SUGGESTIONS)
    if near:
        return near
    typed = name_key(reference)
    length = len(typed) // 2 + 1
    while length >= SHORTEST_START:
        alike = _spelled_alike(index, generation, typed, start=typed[:length])
        if alike:
            return alike
        length = length * 2 // 3
    return []


def _spelled_alike(index: CompanyIndex, generation: str, typed: str, *, start: str) -> list[Company]:
    found = [(_likeness(company, typed, start), company) for company in index.find(generation, start, limit=COMPARED)]
    alike = sorted((each for each in found if each[0] >= WORTH_SHOWING), key=lambda each: -each[0])
    return [company for _, company in alike[:SUGGESTIONS]]


def _likeness(company: Company, typed: str, start: str) -> float:
    names = [name_key(name) for name in (company.name, *company.aliases)]
    return max((alikeness(name[: len(typed) + 1], typed) for name in names if name.startswith(start)), default=0.0)
