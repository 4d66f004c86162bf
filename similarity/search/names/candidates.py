"""Candidates of a name that no company has: companies of similar names, and prominent ones that the words may mean."""

from collections.abc import Collection, Iterable

from similarity.company import Company
from similarity.index.attributes import AttributeSchema
from similarity.search.names.comparison import cores_of, name_similarity

MIN_CANDIDATE_SIMILARITY = 0.6


def prominent_first(companies: Iterable[Company], schema: AttributeSchema) -> list[Company]:
    """Return the prominent ones of companies that were found by words, the largest first.

    A description tells former names and brands: "google" finds Alphabet, "zara" Inditex.
    """
    prominent = [each for each in companies if schema.is_prominent(each)]
    return sorted(prominent, key=lambda each: -(schema.size_of(each) or 0.0))


def most_similar(core: str, companies: Collection[Company], schema: AttributeSchema) -> tuple[Company, ...]:
    """Return the companies with a similar name or alias, most similar first, the larger first of equal ones."""
    likeness = {each.id: max(_likeness(core, other) for other in cores_of(each)) for each in companies}
    similar = [each for each in companies if likeness[each.id] >= MIN_CANDIDATE_SIMILARITY]
    by_size = sorted(similar, key=lambda each: (-(schema.size_of(each) or 0.0), each.id))
    return tuple(sorted(by_size, key=lambda each: -likeness[each.id]))


def _likeness(core: str, other: str) -> float:
    """Return the similarity of two cores, or of the first words of the other ("spotfy", Spotify Technology)."""
    beginning = " ".join(other.split()[: len(core.split())])
    return max(name_similarity(core, other), 0.9 * name_similarity(core, beginning))
