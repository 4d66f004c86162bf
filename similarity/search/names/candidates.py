"""Candidates of a name that no company has: companies of similar names, and prominent ones that the words may mean."""

from collections.abc import Collection, Iterable

from similarity.company import Company
from similarity.index.attributes import AttributeSchema
from similarity.search.names.comparison import contains_core, cores_of, name_similarity, words_of

MIN_CANDIDATE_SIMILARITY = 0.6
FIRST_WORDS_LIKENESS = 0.9
BEGUN_LIKENESS = 0.89
"""The likeness of a name that begins with what was typed: just below that of a name with these first words."""
MIN_BEGUN_LETTERS = 3


def prominent_first(companies: Iterable[Company], core: str, schema: AttributeSchema) -> list[Company]:
    """Return the prominent companies whose name or description has the words of `core`, the largest first.

    A description tells former names and brands: "google" finds Alphabet, "zara" Inditex. In a description, the words
    must be next to each other. The companies may have been found by other spellings, such as "space x" for "spacex".
    """
    prominent = [each for each in companies if schema.is_prominent(each)]
    telling = [each for each in prominent if _has_words(core, cores_of(each)) or _tells(core, each.description)]
    return sorted(telling, key=lambda each: -(schema.size_of(each) or 0.0))


def is_named_alike(core: str, company: Company) -> bool:
    """Return whether a name or alias of the company has the words of `core`, or is similar."""
    cores = cores_of(company)
    return _has_words(core, cores) or _likeness_of(core, cores) >= MIN_CANDIDATE_SIMILARITY


def most_similar(core: str, companies: Collection[Company], schema: AttributeSchema) -> tuple[Company, ...]:
    """Return the companies with a similar name or alias, most similar first, the larger first of equal ones."""
    likeness = {each.id: _likeness_of(core, cores_of(each)) for each in companies}
    similar = [each for each in companies if likeness[each.id] >= MIN_CANDIDATE_SIMILARITY]
    by_size = sorted(similar, key=lambda each: (-(schema.size_of(each) or 0.0), each.id))
    return tuple(sorted(by_size, key=lambda each: -likeness[each.id]))


def _has_words(core: str, cores: Iterable[str]) -> bool:
    return any(set(core.split()) <= set(each.split()) for each in cores)


def _tells(core: str, description: str) -> bool:
    return contains_core(core, [words_of(description)])


def _likeness_of(core: str, cores: Iterable[str]) -> float:
    return max(_likeness(core, other) for other in cores)


def _likeness(core: str, other: str) -> float:
    """Return the similarity of two cores, or of the first words of the other ("spotfy", Spotify Technology).

    The other may also begin with the core ("starb", Starbucks).
    """
    beginning = " ".join(other.split()[: len(core.split())])
    begun = BEGUN_LIKENESS if len(core) >= MIN_BEGUN_LETTERS and other.startswith(core) else 0.0
    return max(name_similarity(core, other), FIRST_WORDS_LIKENESS * name_similarity(core, beginning), begun)
