"""Remembers the names that a write takes from a company, so that a later erasure still looks for them."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.index.ledger import ErasureLedger
from similarity.index.name_hashes import hashes_of, names_of

if TYPE_CHECKING:
    from similarity.ingest.records import Change


def remember_lost_names(
    ledger: ErasureLedger, changes: "Iterable[Change | EmbeddedCompany]", stored: Mapping[str, EmbeddedCompany]
) -> None:
    """Remembers hashes of the names in `stored` that the changes replace or delete. Call it before the write.

    Where no name is lost, the store is not asked.
    """
    lost: dict[str, set[str]] = {}
    for change in changes:
        known = stored.get(change.id)
        if known is not None and change.version > known.version:
            kept = set() if isinstance(change, DeletedCompany) else names_of(change.company)
            lost.setdefault(change.id, set()).update(names_of(known.company) - kept)
    if any(lost.values()):
        key = ledger.key()
        ledger.remember({company_id: hashes_of(key, names) for company_id, names in lost.items() if names})
