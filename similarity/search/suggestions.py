"""Suggestions for a name that no company has: companies that the user may have meant."""

from similarity.company import Company, name_key
from similarity.index.protocol import CompanyIndex
from similarity.search.name_matching import trigram_similarity

MAX_SUGGESTIONS = 5
MIN_PREFIX = 2
# How many names with one prefix are compared, and their least similarity: one of five letters may be wrong.
MAX_COMPARED = 100
MIN_SUGGESTION_SIMILARITY = 0.5


def suggest_companies(index: CompanyIndex, generation: str, reference: str) -> list[Company]:
    """Return up to MAX_SUGGESTIONS companies found by the text, else companies with a similar name.

    Similar names are searched by prefix: first half of the text, then shorter prefixes until a name is similar
    enough. Typing errors in the first letters are rare.
    """
    found_by_text = index.find(generation, reference, limit=MAX_SUGGESTIONS)
    if found_by_text:
        return found_by_text
    typed = name_key(reference)
    length = len(typed) // 2 + 1
    while length >= MIN_PREFIX:
        alike = _spelled_alike(index, generation, typed, prefix=typed[:length])
        if alike:
            return alike
        length = length * 2 // 3
    return []


def _spelled_alike(index: CompanyIndex, generation: str, typed: str, *, prefix: str) -> list[Company]:
    found = [
        (_likeness(company, typed, prefix), company) for company in index.find(generation, prefix, limit=MAX_COMPARED)
    ]
    alike = sorted((each for each in found if each[0] >= MIN_SUGGESTION_SIMILARITY), key=lambda each: -each[0])
    return [company for _, company in alike[:MAX_SUGGESTIONS]]


def _likeness(company: Company, typed: str, prefix: str) -> float:
    names = [name_key(name) for name in (company.name, *company.aliases)]
    return max(
        (trigram_similarity(name[: len(typed) + 1], typed) for name in names if name.startswith(prefix)), default=0.0
    )
