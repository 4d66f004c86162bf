"""What an index keeps for erasures, outside its generations: hashes of former names, and each erasure's state.

Nothing here holds a word of a company but its id (`similarity.index.name_hashes`).
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
"""What `erasure_of` raises of an object that `erasure_members` did not make."""

Stored = TypeVar("Stored")

log = logging.getLogger(__name__)


class DamagedErasure(IndexUnavailable):
    """What the index keeps for the erasure of one company is damaged. Other erasures do not need it."""

    @classmethod
    def of(cls, company_id: str, problem: object) -> "DamagedErasure":
        """The error for one company; `problem` is the part that is damaged."""
        reason = "what the index keeps for this erasure is damaged; restore a backup, or erase the company again"
        return cls(f"the erasure of {company_id!r:.140}: {problem!s:.300}; {reason}", reason=reason)


class ErasureState(StrEnum):
    """How far an erasure is."""

    RUNNING = "running"
    """Accepted, and not complete yet; whoever runs the service or the command next goes on with it."""
    DONE = "done"
    FAILED = "failed"
    """It ended incomplete: `problem` says why. Erase again."""


class Compaction(StrEnum):
    """How far the disk is."""

    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"
    """Left to the store, as the caller asked: the words are on the disk until it rewrites its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRecord:
    """One erasure of the company `id`. `version` is that of its tombstones, and tells erasures of one id apart.

    `results`: what became of the tombstone in each generation, by name. `forgotten`: how much was taken
    out of the workspace, by kind. `problem`: why it is not complete; empty if there is no trouble.
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
        """Whether no search finds the company any more."""
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
    """A record as a JSON object."""
    return {**asdict(record), "requested_at": record.requested_at.isoformat()}


def erasure_of(members: Mapping[str, Any]) -> ErasureRecord:
    """The record that `erasure_members` made an object of. One of `UNREADABLE` if it did not."""
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
    """The records that `read` makes of what is stored. For each DamagedErasure, the log gets a line instead."""
    for each in stored:
        try:
            yield read(each)
        except DamagedErasure as error:
            log.error("%s", error)
