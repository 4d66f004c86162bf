"""Changes that were received before an erasure of their company, and are written after it."""

from collections.abc import Sequence
from contextlib import suppress

from similarity.company import lowest_version_at, utc_now
from similarity.index.ledger import DamagedErasure, ErasureLedger
from similarity.ingest.records import Change


def received_before_erasure(ledger: ErasureLedger, changes: Sequence[Change]) -> frozenset[int]:
    """Return the positions of the changes that were received before an erasure of their company was requested.

    With a higher version, such a change would bring the company back after its erasure has ended. The request may be in
    the future, if the clock was ahead then; it decides nothing.
    """
    requested: dict[str, int] = {}
    for company_id in ledger.erased({change.id for change in changes}):
        with suppress(DamagedErasure):
            if record := ledger.erasure(company_id):
                requested[company_id] = lowest_version_at(record.requested_at)
    now = lowest_version_at(utc_now())
    return frozenset(
        position for position, change in enumerate(changes) if change.version <= requested.get(change.id, -1) <= now
    )
