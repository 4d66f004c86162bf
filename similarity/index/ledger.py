"""The ledger of erasures of an index: hashes of former names, and the state of each erasure.

It belongs to no generation. Of a company it holds only the id and hashes (`similarity.index.name_hashes`), no text.
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
    """One erasure of the company `id`. `version`: of its tombstones; it differs between erasures of one id.

    `results`: the result of writing the tombstone, by generation. `forgotten`: how many records of the workspace were
    removed or changed, by kind. `problem`: why it is not complete; otherwise empty.
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
    """What one index keeps for erasures. Every method raises IndexUnavailable where the store cannot be reached.

    The same tests (`tests/contract/test_ledger.py`) run on each store. Every write is durable when it
    returns, may be repeated, and is seen by every later read.
    """

    def key(self) -> bytes:
        """The random secret of this index's hashes; made once, by whoever asks first."""

    def remember(self, hashes: Mapping[str, Collection[str]]) -> None:
        """Adds hashes of names, by company id."""

    def remembered(self, company_id: str) -> frozenset[str]:
        """The hashes that were remembered of a company and not forgotten. DamagedErasure if one is damaged."""

    def forget(self, company_id: str, hashes: Collection[str]) -> None:
        """Removes hashes of a company."""

    def save_erasure(self, record: ErasureRecord) -> None:
        """Stores the state of an erasure in place of an earlier one of the same company."""

    def erasure(self, company_id: str) -> ErasureRecord | None:
        """The last erasure of a company; None if there was none. DamagedErasure if its record is damaged."""

    def running_erasures(self) -> list[ErasureRecord]:
        """The erasures in state running, by id. A damaged record is left out, with a line in the log."""

    def purge_erasures(self, *, before: datetime) -> None:
        """Removes the erasures that are done and were asked for before a time: with the tombstones, the ids go too."""


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
