"""The ledger of erasures of an index: hashes of former names, and the state of each erasure.

It belongs to no generation. It holds only ids of companies and hashes (`similarity.index.name_hashes`), no text.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from similarity.errors import IndexUnavailable
from similarity.index.protocol import WriteOutcome, WriteResult

KEY_BYTES = 32
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError)
"""The exceptions of `erasure_of` for an object that is not from `erasure_members`."""

Stored = TypeVar("Stored")

log = logging.getLogger(__name__)


class DamagedErasure(IndexUnavailable):
    """The stored data of one erasure is damaged. Other erasures do not need it."""

    @classmethod
    def of(cls, company_id: str, problem: object) -> "DamagedErasure":
        """Return the error for one company; `problem` describes the damage."""
        reason = "the stored data of this erasure is damaged; restore a backup, or erase the company again"
        return cls(f"the erasure of {company_id!r:.140}: {problem!s:.300}; {reason}", reason=reason)


class ErasureState(StrEnum):
    """The state of an erasure."""

    RUNNING = "running"
    """Accepted, and not complete yet; the next run of the service or of the command continues it."""
    DONE = "done"
    FAILED = "failed"
    """It ended before it was complete; `problem` says why. Erase again."""


class Compaction(StrEnum):
    """The state of removing the data from the disk."""

    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"
    """Not requested by the caller: the text is on the disk until the store rewrites its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRecord:
    """One erasure of the company `id`. `version`: the version of its tombstones, different for each erasure of one id.

    `published`: whether the delete was also sent to the topic of changes. `results`: the result of writing the
    tombstone, by generation. `forgotten`: how many records of the workspace were removed or changed, by kind.
    `problem`: why the erasure is not complete; otherwise empty.
    """

    id: str
    version: int
    requested_at: datetime
    state: ErasureState = ErasureState.RUNNING
    published: bool = False
    results: Mapping[str, WriteResult]
    forgotten: Mapping[str, int]
    compaction: Compaction = Compaction.RUNNING
    problem: str = ""

    @property
    def is_hidden(self) -> bool:
        """Whether searches no longer find the company."""
        return self.state is ErasureState.DONE or (self.state is ErasureState.RUNNING and bool(self.results))


class ErasureLedger(Protocol):
    """The ledger of erasures of one index. Every method raises IndexUnavailable if the store cannot be reached.

    `tests/contract/test_ledger.py` runs the same tests on each store. Every write is durable when it returns, can be
    repeated, and is seen by all later reads.
    """

    def key(self) -> bytes:
        """Return the random secret of this index's hashes, always the same."""

    def remember(self, hashes: Mapping[str, Collection[str]]) -> None:
        """Add hashes of names, by company id."""

    def remembered(self, company_id: str) -> frozenset[str]:
        """Return the stored hashes of a company. Raises DamagedErasure if one is damaged."""

    def forget(self, company_id: str, hashes: Collection[str]) -> None:
        """Remove hashes of a company."""

    def save_erasure(self, record: ErasureRecord) -> None:
        """Store the record of an erasure, replacing an earlier one of the same company."""

    def erasure(self, company_id: str) -> ErasureRecord | None:
        """Return the last erasure of a company; None if there is none. Raises DamagedErasure if it is damaged."""

    def erased(self, company_ids: Collection[str]) -> frozenset[str]:
        """Return those of `company_ids` that have the record of an erasure, whatever its state."""

    def running_erasures(self) -> list[ErasureRecord]:
        """Return the running erasures, by id. A damaged record is skipped, with a line in the log."""

    def purge_erasures(self, *, before: datetime) -> None:
        """Remove the records of completed erasures that were requested before a time; their ids are then gone."""


def erasure_members(record: ErasureRecord) -> dict[str, Any]:
    """Return a record as a JSON object."""
    return {**asdict(record), "requested_at": record.requested_at.isoformat()}


def erasure_of(members: Mapping[str, Any]) -> ErasureRecord:
    """Return the record of an object from `erasure_members`. Raises one of `UNREADABLE` for any other object."""
    results = {
        name: WriteResult(**{**result, "outcome": WriteOutcome(result["outcome"])})
        for name, result in members["results"].items()
    }
    return ErasureRecord(
        **{
            **members,
            "version": int(members["version"]),
            "forgotten": {kind: int(count) for kind, count in members["forgotten"].items()},
            "requested_at": datetime.fromisoformat(members["requested_at"]),
            "state": ErasureState(members["state"]),
            "compaction": Compaction(members["compaction"]),
            "results": results,
        }
    )


def readable_erasures(stored: Iterable[Stored], read: Callable[[Stored], ErasureRecord]) -> Iterator[ErasureRecord]:
    """Yield the records that `read` returns; a DamagedErasure is logged instead."""
    for each in stored:
        try:
            yield read(each)
        except DamagedErasure as error:
            log.error("%s", error)
