"""Duplicates: hits that are the same company under another id are merged into the best-ranked one.

Two companies are the same if they share a domain or a description. Domains that host the pages of many companies do
not count, and descriptions that two companies could have by chance, because they are short, do not count either. A
domain that many companies have is likely wrong in the data: it counts only if the cores of their names are equal too.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

from similarity.company import SHARED_HOSTS, Company, SimilarCompany
from similarity.index.protocol import CompanyIndex
from similarity.search.names.comparison import core_of

WIDELY_SHARED = 20
"""A domain that at least this number of companies have identifies none of them.

Of 46,616 real companies, 270 and 82 unrelated ones have the two most frequent domains. The next two domains are those
of two groups of banks, with 12 and 10 companies.
"""
MIN_TEXT_CHARACTERS = 40

IdentityKey: TypeAlias = tuple[str, str]
"""("domain", domain) or ("text", hash of the description): companies with an equal key are the same company.

For a widely shared domain, the core of the name follows the domain.
"""


class Identity(NamedTuple):
    """The properties that identify a company: its own domain, its name, and a hash of a long enough description.

    `domain` and `text` are "" if it has none.
    """

    domain: str
    name: str
    text: str

    @classmethod
    def of(cls, company: Company) -> "Identity":
        """Return the identity of a company."""
        text = company.description.strip().casefold()
        return cls(
            domain="" if company.domain in SHARED_HOSTS else company.domain,
            name=company.name,
            text=_digest(text) if len(text) >= MIN_TEXT_CHARACTERS else "",
        )

    def keys(self, widely_shared: Collection[str] = ()) -> tuple[IdentityKey, ...]:
        """Return the keys; the key of a domain in `widely_shared` also has the core of the name."""
        keys: list[IdentityKey] = []
        if self.domain:
            is_shared = self.domain in widely_shared
            keys.append(key_of_shared_domain(self.domain, self.name) if is_shared else ("domain", self.domain))
        if self.text:
            keys.append(("text", self.text))
        return tuple(keys)


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


def merge_duplicates(
    hits: Sequence[tuple[SimilarCompany, Identity]],
    given: Sequence[Identity] = (),
    *,
    widely_shared: Collection[str] = (),
) -> MergedHits:
    """Merge each hit into the given company or the better hit that is the same company.

    `hits`: each with its identity. `widely_shared`: see `widely_shared_domains`. Appending hits does not change the
    result for the earlier ones.
    """
    merger = DuplicateMerger()
    duplicates_of_given = [merger.add_given(each.keys(widely_shared)) for each in given]
    unique: list[UniqueHit] = []
    for hit, identity in hits:
        duplicates = merger.add(hit.company.id, identity.keys(widely_shared))
        if duplicates is not None:
            unique.append(UniqueHit(hit, duplicates))
    return MergedHits(unique, duplicates_of_given)


def key_of_shared_domain(domain: str, name: str) -> IdentityKey:
    """Return the key that identifies the company of this name among the many that have the domain."""
    return "domain", f"{domain} {core_of(name)}"


def widely_shared_domains(index: CompanyIndex, generation: str, identities: Iterable[Identity]) -> frozenset[str]:
    """Return the domains of `identities` that at least WIDELY_SHARED companies of the index have.

    A domain is left out if its companies among `identities` all have the same core: it then makes no difference.
    """
    names: dict[str, set[str]] = {}
    for each in identities:
        if each.domain:
            names.setdefault(each.domain, set()).add(each.name)
    unlike = [domain for domain, held in names.items() if len(held) > 1 and len(set(map(core_of, held))) > 1]
    # With a leading space, the index resolves the domain even if it is also an id.
    ids_of = index.resolve_many(generation, [f" {domain}" for domain in unlike]) if unlike else {}
    return frozenset(domain.strip() for domain, ids in ids_of.items() if len(ids) >= WIDELY_SHARED)


def _digest(text: str) -> str:
    """Return a short hash of a text, because the texts of many companies take much memory."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
