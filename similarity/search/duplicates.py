"""Duplicates: hits that are the same company under another id are merged into the best-ranked one.

Two companies are the same if they share a domain or a description. Hosts of many companies' pages do not count,
nor do descriptions so short that two companies could write the same by chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeAlias

from similarity.company import Company, SimilarCompany

SHARED_HOSTS = frozenset(
    "facebook.com linkedin.com instagram.com twitter.com x.com youtube.com github.com github.io medium.com t.me "
    "tiktok.com linktr.ee sites.google.com wordpress.com wixsite.com blogspot.com weebly.com squarespace.com "
    "crunchbase.com wikipedia.org en.wikipedia.org bloomberg.com etsy.com".split()
)
MIN_TEXT_CHARACTERS = 40

IdentityKey: TypeAlias = tuple[str, str]
"""("domain", domain) or ("text", hash of the description): companies with an equal key are the same company."""


@dataclass(frozen=True, slots=True)
class UniqueHit:
    """A hit that duplicates no better one, and the ids of its own duplicates."""

    hit: SimilarCompany
    duplicates: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MergedHits:
    """The hits without duplicates, best first, and the ids of the duplicates of each given company."""

    unique: list[UniqueHit]
    duplicates_of_given: list[list[str]]


@dataclass(frozen=True, slots=True)
class DuplicateMerger:
    """Merges each added company into an earlier one with an equal key, if there is one."""

    _duplicates: dict[IdentityKey, list[str]] = field(default_factory=dict)

    def add(self, company_id: str, keys: Sequence[IdentityKey]) -> list[str] | None:
        """Return the list that will hold this company's duplicates; None if it is a duplicate itself."""
        known = next((self._duplicates[key] for key in keys if key in self._duplicates), None)
        duplicates = [] if known is None else known
        for key in keys:
            self._duplicates.setdefault(key, duplicates)
        if known is None:
            return duplicates
        known.append(company_id)
        return None

    def add_given(self, keys: Sequence[IdentityKey]) -> list[str]:
        """Return the list that will hold the duplicates of a company that is not a hit."""
        duplicates: list[str] = []
        for key in keys:
            self._duplicates.setdefault(key, duplicates)
        return duplicates


def merge_duplicates(hits: Sequence[SimilarCompany], given: Sequence[Sequence[IdentityKey]] = ()) -> MergedHits:
    """Merge each hit into the given company or the better hit that is the same company.

    `given`: the identity keys of each given company.

    Appending hits does not change the result for the earlier ones.
    """
    merger = DuplicateMerger()
    duplicates_of_given = [merger.add_given(keys) for keys in given]
    unique: list[UniqueHit] = []
    for hit in hits:
        duplicates = merger.add(hit.company.id, identity_keys(hit.company))
        if duplicates is not None:
            unique.append(UniqueHit(hit, duplicates))
    return MergedHits(unique, duplicates_of_given)


def identity_keys(company: Company) -> tuple[IdentityKey, ...]:
    """Return the keys that identify the company: its own domain, and its description if that is long enough."""
    keys: list[IdentityKey] = []
    if company.domain and company.domain not in SHARED_HOSTS:
        keys.append(("domain", company.domain))
    text = company.description.strip().casefold()
    if len(text) >= MIN_TEXT_CHARACTERS:
        keys.append(("text", _digest(text)))
    return tuple(keys)


def _digest(text: str) -> str:
    """Return a short hash of a text, because the texts of many companies take much memory."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
