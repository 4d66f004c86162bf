"""Changes that were received before an erasure of their company, and are written after it."""

from collections.abc import Sequence
from contextlib import suppress

from similarity.company import lowest_version_at, utc_now
from similarity.index.ledger import DamagedErasure, ErasureLedger
from similarity.ingest.records import Change


def received_before_erasure(ledger: ErasureLedger, changes: Sequence[Change]) -> frozenset[int]:
    """Return the positions of the changes whose version is not later than a request to erase their company.

    The version of an untimed change is the time of its receipt. If such a change were written with a higher version, it
    would bring the company back after its erasure has ended. A request in the future (the clock was ahead) is ignored.
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
