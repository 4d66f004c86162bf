"""Stores hashes of the names that a write or a retirement removes, so that a later erasure can find them."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.errors import UnknownGeneration
from similarity.index.ledger import ErasureLedger
from similarity.index.name_hashes import hashes_of, names_of
from similarity.index.protocol import CompanyIndex

if TYPE_CHECKING:
    from similarity.ingest.records import Change


def remember_changed_names(
    ledger: ErasureLedger, changes: "Iterable[Change | EmbeddedCompany]", stored: Mapping[str, EmbeddedCompany]
) -> None:
    """Store hashes of the names in which the changes differ from `stored` and from each other. Call before the write.

    New names are stored too: another process that has read the company before this write may replace them without
    having seen them. An additional hash does no harm. If no name changes, the ledger is not accessed.
    """
    by_id: dict[str, list[Change | EmbeddedCompany]] = {}
    for change in changes:
        by_id.setdefault(change.id, []).append(change)
    changed: dict[str, set[str]] = {}
    for company_id, group in by_id.items():
        known = stored.get(company_id)
        if known is None and len(group) == 1:
            continue
        versions: list[set[str]] = [
            set() if isinstance(change, DeletedCompany) else names_of(change.company) for change in group
        ]
        if known is not None:
            versions.append(names_of(known.company))
        changed[company_id] = set().union(*versions) - versions[0].intersection(*versions)
    if any(changed.values()):
        key = ledger.key()
        ledger.remember({company_id: hashes_of(key, names) for company_id, names in changed.items() if names})


def remember_names_of_erased(ledger: ErasureLedger, changes: "Iterable[Change | EmbeddedCompany]") -> None:
    """Remember hashes of the names that the changes gave to companies with an erasure. Call it after the write.

    The tombstone of an erasure may replace a write that the erasure has not read. The erasure is recorded before it
    reads names, so either it reads what was written, or its record is found here.
    """
    given: dict[str, set[str]] = {}
    for change in changes:
        if not isinstance(change, DeletedCompany):
            given.setdefault(change.id, set()).update(names_of(change.company))
    if erased := ledger.erased(given):
        key = ledger.key()
        ledger.remember({company_id: hashes_of(key, given[company_id]) for company_id in erased})


def remember_names_only_in(index: CompanyIndex, name: str) -> None:
    """Store hashes of the names that companies have in this generation alone. Call before the generation is retired.

    People may have written such names into notes while the generation was live. Nobody has seen the names of a
    generation that was never live, so it is not read, and does not count as another generation that has a name.
    """
    once_live = [generation.name for generation in index.generations() if generation.promoted_at]
    if name not in once_live:
        return
    once_live.remove(name)
    for batch in index.scan(name):
        names = {document.id: names_of(document.company) for document in batch if isinstance(document, EmbeddedCompany)}
        for other in once_live:
            with suppress(UnknownGeneration):
                for company_id, document in index.get(other, names).items():
                    names[company_id] -= names_of(document.company)
        if any(names.values()):
            key = index.ledger.key()
            index.ledger.remember({company_id: hashes_of(key, lost) for company_id, lost in names.items() if lost})
