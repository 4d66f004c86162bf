"""Erasing one company: from every generation at once, and from the disk."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from similarity.company import Company, DeletedCompany, check_stored_id, version_of
from similarity.errors import NoLiveGeneration, UnknownGeneration
from similarity.index.protocol import CompanyIndex, WriteResult
from similarity.writers import Writer


def erase(index: CompanyIndex, company_id: str, *, now: datetime, compact: bool = True) -> dict[str, WriteResult]:
    """Replaces a company by a tombstone in every generation, building ones too; the result of each by name.

    A deleted document is not gone from the disk until its store has rewritten the files. With
    `compact` every generation is compacted for that, which may take long; without, the content stays
    on disk until the store does it by itself. Either way no search finds it once this returns.

    What stays, on purpose: a tombstone in each generation, that is the id and the time of the erasure.
    Without it an older message that is replayed, or a backfill, would bring the company back. Once the
    message log holds nothing so old any more, `purge_deleted` removes that too. An id that is itself
    personal data should be a pseudonym.

    What is not reached from here:
    - Backups and snapshots: let them expire, or restore, erase again and make them anew. After a
      restore, erase again.
    - The message log: send a delete for the id, so that compaction drops the older messages, or wait
      for its retention. A *newer* message or row about the company brings it back: stop its source.
    - What people added about it (feedback, saved lists): `Workspace.forget_company` with its `own_names`.
    - Files made from the index or for it (exports, rejects files, training pairs): delete them.

    A result of APPLIED or UNCHANGED is an erasure. SUPERSEDED: a newer document was there or was
    written meanwhile; look whether it is a tombstone, and otherwise stop the source and erase again.
    REJECTED or FAILED: its `reason` says why; erase again. An unknown id gets a tombstone all the same.

    Raises:
        InvalidCompany: the id is not one that a company can have.
    """
    check_stored_id(company_id)
    # As a writer: a re-embed that begins meanwhile copies nothing until the tombstones are written.
    with Writer(index):
        names = [generation.name for generation in index.generations()]
        results = _write_tombstones(index, names, company_id, now=now)
    for name in results:
        with suppress(UnknownGeneration):
            if compact:
                index.compact(name)
            else:
                index.stats(name)  # searches must not show the company any more, and they see what was counted
    return results


def own_names(index: CompanyIndex, company_id: str) -> set[str]:
    """The domain, name and aliases that mean this company alone: what else somebody may have written it by.

    Ask before the erasure, for `Workspace.forget_company`.
    """
    known: list[Company] = []
    for generation in index.generations():
        with suppress(UnknownGeneration):
            known += [each.company for each in index.get(generation.name, [company_id]).values()]
    named = {name for company in known for name in (company.domain, company.name, *company.aliases) if name}
    with suppress(NoLiveGeneration, UnknownGeneration):
        live = index.live().name
        return {name for name in named if set(index.resolve(live, name)) <= {company_id}}
    return named


def _write_tombstones(
    index: CompanyIndex, names: Sequence[str], company_id: str, *, now: datetime
) -> dict[str, WriteResult]:
    # An event time may lie up to five minutes ahead of the clock, and the tombstone must be above it.
    version = max(version_of(now, now=now, deleted=True), 1 + _newest_version(index, names, company_id))
    tombstone = DeletedCompany(id=company_id, version=version)
    results: dict[str, WriteResult] = {}
    for name in names:
        with suppress(UnknownGeneration):  # retired meanwhile, and its documents with it
            [results[name]] = index.upsert(name, [tombstone])
    return results


def _newest_version(index: CompanyIndex, names: Sequence[str], company_id: str) -> int:
    versions = [0]
    for name in names:
        with suppress(UnknownGeneration):
            versions += (document.version for document in index.get(name, [company_id]).values())
    return max(versions)
