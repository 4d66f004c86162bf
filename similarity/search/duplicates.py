"""The same company under several ids: recognised by domain or text, and folded into the best hit.

Hosts where many companies keep a page do not count as a domain, and a text must be so long that two companies
would not write the same by chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from similarity.company import Company, SimilarCompany

SHARED_HOSTS = frozenset(
    "facebook.com linkedin.com instagram.com twitter.com x.com youtube.com github.com github.io medium.com t.me "
    "tiktok.com linktr.ee sites.google.com wordpress.com wixsite.com blogspot.com weebly.com squarespace.com "
    "crunchbase.com wikipedia.org en.wikipedia.org bloomberg.com etsy.com".split()
)
SHORTEST_TEXT = 40

Mark: TypeAlias = tuple[str, str]
"""A domain or a text that only one company has."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A hit that stays, and the ids of its duplicates."""

    hit: SimilarCompany
    duplicates: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Folded:
    """The hits that stay, best first, and the ids of the duplicates of each given company."""

    kept: list[Kept]
    of_given: list[list[str]]


@dataclass(frozen=True, slots=True)
class Folding:
    """Folds companies into earlier ones with a common mark, one by one."""

    _duplicates: dict[Mark, list[str]] = field(default_factory=dict)

    def add(self, company_id: str, marks: Sequence[Mark]) -> list[str] | None:
        """Return the list that will hold this company's duplicates; None if it is a duplicate itself."""
        known = next((self._duplicates[mark] for mark in marks if mark in self._duplicates), None)
        duplicates = [] if known is None else known
        for mark in marks:
            self._duplicates.setdefault(mark, duplicates)
        if known is None:
            return duplicates
        known.append(company_id)
        return None

    def add_given(self, marks: Sequence[Mark]) -> list[str]:
        """Return the list that will hold the duplicates of a company that is no hit itself."""
        duplicates: list[str] = []
        for mark in marks:
            self._duplicates.setdefault(mark, duplicates)
        return duplicates


def fold(hits: Sequence[SimilarCompany], given: Sequence[Company] = ()) -> Folded:
    """Fold each hit that is the same company as a given one, or as a better hit, into that.

    More hits at the end change nothing about those before.
    """
    folding = Folding()
    of_given = [folding.add_given(marks_of(company)) for company in given]
    kept: list[Kept] = []
    for hit in hits:
        duplicates = folding.add(hit.company.id, marks_of(hit.company))
        if duplicates is not None:
            kept.append(Kept(hit, duplicates))
    return Folded(kept, of_given)


def marks_of(company: Company) -> tuple[Mark, ...]:
    """Return what no other company has: its domain and its description."""
    marks: list[Mark] = []
    if company.domain and company.domain not in SHARED_HOSTS:
        marks.append(("domain", company.domain))
    text = company.description.strip().casefold()
    if len(text) >= SHORTEST_TEXT:
        marks.append(("text", text))
    return tuple(marks)
