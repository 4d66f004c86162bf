"""The same company under several ids: told by its domain or by its text, and folded into one place.

Only what cannot be two companies is folded. Hosts where many keep a page are no domain of anybody's,
and a text must be long enough that two companies would not write the same by chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from similarity.company import Company, SimilarCompany

SHARED_HOSTS = frozenset(
    "facebook.com linkedin.com instagram.com twitter.com x.com youtube.com github.com github.io medium.com t.me "
    "tiktok.com linktr.ee sites.google.com wordpress.com wixsite.com blogspot.com weebly.com squarespace.com "
    "crunchbase.com wikipedia.org en.wikipedia.org bloomberg.com etsy.com".split()
)
SHORTEST_TEXT = 40


@dataclass(frozen=True, slots=True)
class Kept:
    """A hit that stays, and the ids of those that were folded into it."""

    hit: SimilarCompany
    duplicates: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Folded:
    """The hits that stay, best first, and for each given company the ids of the hits that are the same."""

    kept: list[Kept]
    of_given: list[list[str]]


def fold(hits: Sequence[SimilarCompany], given: Sequence[Company] = ()) -> Folded:
    """Folds each hit that is the same company as a given one, or as a better hit, into that.

    Looks at each hit once, in order: more hits at the end change nothing about those before.
    """
    of_given: list[list[str]] = [[] for _ in given]
    kept: list[Kept] = []
    places: dict[tuple[str, str], list[str]] = {}
    for company, duplicates in zip(given, of_given, strict=True):
        for mark in _marks(company):
            places.setdefault(mark, duplicates)
    for hit in hits:
        marks = _marks(hit.company)
        place = next((places[mark] for mark in marks if mark in places), None)
        if place is None:
            kept.append(Kept(hit))
            place = kept[-1].duplicates
        else:
            place.append(hit.company.id)
        for mark in marks:
            places.setdefault(mark, place)
    return Folded(kept, of_given)


def _marks(company: Company) -> list[tuple[str, str]]:
    """What no other company has."""
    marks = []
    if company.domain and company.domain not in SHARED_HOSTS:
        marks.append(("domain", company.domain))
    text = company.description.strip().casefold()
    if len(text) >= SHORTEST_TEXT:
        marks.append(("text", text))
    return marks
