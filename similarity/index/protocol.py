"""The contract every company index keeps. The same tests (`tests/contract/`) run on each store.

A **generation** is one complete copy of the corpus, embedded by one encoder. Exactly one is live.

    create_generation -> building -- register_candidate -> candidate -- promote -> live
    live -- (another is promoted) -> previous -- rollback -> live        any but live -- retire -> gone

Writers write every change to all `write_targets()`: candidate, live and previous, so that a
rollback is never stale. A reader asks for the `live()` generation once per request and names it in
every call of that request.

A writer holds a **lease** and acknowledges the `revision()` of the generations it writes to, so that
whoever fills a new candidate knows when the last writer has begun to write to it too. A re-embed
holds a lease of its own: `promote` refuses one that another process has taken over meanwhile.

Writing is idempotent: a document is applied only if its version is higher than the stored one, so
late, repeated and replayed changes alter nothing. A delete is a document too (`DeletedCompany`).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from similarity.company import (
    Company,
    DeletedCompany,
    EmbeddedCompany,
    SimilarCompany,
    Vector,
)
from similarity.index.filters import FieldFilter
from similarity.model.calibration import Calibration

if TYPE_CHECKING:
    from similarity.index.ledger import ErasureLedger

ROLLBACK_SECONDS = 10.0
"""How long a rollback waits for writes that are under way."""


class GenerationState(StrEnum):
    """Where a generation is in its life; see the module's drawing."""

    BUILDING = "building"
    CANDIDATE = "candidate"
    LIVE = "live"
    PREVIOUS = "previous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One complete copy of the corpus. `name` is `[a-z0-9-]{1,64}`; `dimension` is of its vectors."""

    name: str
    encoder_id: str
    bundle_id: str
    dimension: int
    created_at: datetime
    state: GenerationState = GenerationState.BUILDING
    calibration: Calibration | None = None
    promoted_at: datetime | None = None


class WriteOutcome(StrEnum):
    """What became of one document of a bulk write."""

    APPLIED = "applied"
    """It is now the stored document."""
    UNCHANGED = "unchanged"
    """The same version with the same content was there already: an earlier attempt succeeded."""
    SUPERSEDED = "superseded"
    """A newer version is stored; this one changed nothing."""
    REJECTED = "rejected"
    """It cannot be stored; `reason` says why (same version with other content, wrong vector)."""
    FAILED = "failed"
    """The store did not take it in time; `reason` says why. It may be there or not: send it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """The outcome for one document, in the order given.

    `version` is the version that is stored now: the document's own, or the newer one that superseded it.
    None where the document cannot be stored, or the store did not answer.
    """

    id: str
    outcome: WriteOutcome
    reason: str = ""
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentVersion:
    """Which version of a document is stored."""

    id: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right of `holder` to do what `name` stands for, until `expires_at`.

    `fence` is higher for every lease that is taken: a holder that slept past its end is told apart
    from the one that took over. `acknowledged` is the revision its holder has taken note of.
    """

    name: str
    holder: str
    fence: int
    expires_at: datetime
    acknowledged: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarCompanies:
    """The neighbours, best first (ties by id). `approximate` is False where the search was exact."""

    hits: tuple[SimilarCompany, ...]
    approximate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStats:
    """Counts of one generation. `companies` excludes tombstones; `last_version` covers them.

    `not_english` counts the companies whose text is in another language for certain.
    """

    companies: int
    deleted: int
    last_version: int
    not_english: int = 0


class CompanyIndex(Protocol):
    """A store of companies in generations.

    Methods that name a generation raise UnknownGeneration where it does not exist (any more).
    Every method raises IndexUnavailable where the store cannot be reached.
    """

    @property
    def location(self) -> str:
        """What the index is called: its file's path, or its name in a cluster. Its bundles lie beside it by default."""

    def create_generation(self, generation: Generation) -> None:
        """Adds an empty generation in state building. GenerationConflict if the name is taken."""

    def generations(self) -> list[Generation]:
        """All generations, oldest first."""

    def live(self) -> Generation:
        """The live generation. NoLiveGeneration if there is none yet."""

    def write_targets(self) -> list[Generation]:
        """The generations every change must be written to: candidate, live and previous."""

    def register_candidate(self, name: str) -> None:
        """building -> candidate: from now on writers write to it too. GenerationConflict otherwise."""

    def promote(self, name: str, *, lease: Lease | None = None) -> None:
        """candidate -> live, and the live one -> previous, in one step. GenerationConflict otherwise.

        With a `lease`, only while that lease is held (LeaseLost), decided in the same step.
        """

    def rollback(self, *, force: bool = False, wait: float = ROLLBACK_SECONDS) -> Generation:
        """The last live generation becomes live again, and the live one previous, in one step.

        GenerationConflict if there is no previous one, or if it still lacks changes of the live one after
        `wait` seconds (unless `force`): a write that is under way may be in one of the two only.
        """

    def retire(self, name: str) -> None:
        """Removes a generation with all its documents. GenerationConflict if it is live."""

    @property
    def ledger(self) -> "ErasureLedger":
        """What erasures need to know; it belongs to no generation."""

    def revision(self) -> int:
        """A number that grows with every change of the generations (created, registered, promoted, retired ...).

        Read it before `write_targets()`: the targets are then at least as new.
        """

    def take_lease(self, name: str, *, holder: str, seconds: float) -> Lease:
        """Takes the lease called `name`, if it is free, expired, or the holder's already.

        Names and holders are 1-128 of `[A-Za-z0-9._:-]`. LeaseHeld if another holder has it.
        """

    def renew_lease(self, lease: Lease, *, seconds: float, acknowledged: int | None = None) -> Lease:
        """Holds on to a lease for so many seconds from now. LeaseLost if another holder took it, or it was released.

        An expired lease that nobody took can still be renewed.
        """

    def release_lease(self, lease: Lease) -> None:
        """Gives a lease back. Nothing happens if it is not held any more."""

    def leases(self) -> list[Lease]:
        """The leases that have not expired, by name."""

    def stats(self, generation: str) -> GenerationStats:
        """Counts of one generation, with every write that was acknowledged; searches see these from then on."""

    def upsert(self, generation: str, documents: Sequence[EmbeddedCompany | DeletedCompany]) -> list[WriteResult]:
        """Writes whole documents durably; one result per document, in order.

        Applied only above the stored version. When this returns, applied documents survive a crash.
        EncoderMismatch, before any write, if a document's `encoder_id` is not the generation's.
        """

    def get(self, generation: str, ids: Collection[str]) -> dict[str, EmbeddedCompany]:
        """The stored companies among `ids`, by id; deleted and unknown ones are left out."""

    def stored_versions(self, generation: str, ids: Collection[str]) -> dict[str, int]:
        """The stored version of each of `ids`, tombstones included; unknown ids are left out."""

    def resolve(self, generation: str, reference: str) -> list[str]:
        """Ids of the companies whose id, else domain, else name or alias equals `reference`, sorted.

        The first of these kinds that matches anything decides; names compare by `name_key`.
        """

    def resolve_many(self, generation: str, references: Collection[str]) -> dict[str, list[str]]:
        """What `resolve` says of each of `references`, in a few requests however many they are."""

    def find(self, generation: str, query: str, *, limit: int = 10) -> list[Company]:
        """Companies for a search box: by domain, by prefix of name or alias, then by words.

        Better matches first. Any text is allowed; there is no query syntax.
        """

    def similar(
        self,
        generation: str,
        vector: Vector,
        *,
        k: int,
        filters: Sequence[FieldFilter] = (),
        exclude: Collection[str] = (),
        words: str = "",
    ) -> SimilarCompanies:
        """The k companies of highest cosine to the unit `vector`, under all filters, without `exclude`.

        With `words`, hybrid: companies whose words match best are ranked too (by BM25), and the two
        rankings are fused (`index.fusion`); the order is then the fused one. Scores are exact cosines
        in either case, equal between stores within 1e-4.
        """

    def scan(
        self, generation: str, *, after: str = "", batch_size: int = 1000
    ) -> Iterator[list[EmbeddedCompany | DeletedCompany]]:
        """All documents, tombstones included, by ascending id after `after`, in batches."""

    def versions(
        self, generation: str, *, after: str = "", batch_size: int = 10_000
    ) -> Iterator[list[DocumentVersion]]:
        """The stored version of every document, tombstones included, by ascending id after `after`, in batches.

        What `scan` reads, without the documents: to compare generations.
        """

    def compact(self, generation: str) -> bool:
        """Removes what was replaced or deleted from the disk too; may take long. For erasure, and before serving.

        False if it stays for now, because a copy of the store is away.
        """

    def purge_deleted(self, generation: str, *, before: datetime) -> int:
        """Forgets tombstones of deletes before a time; returns how many.

        Keep them longer than the message log's retention, or a replay revives what was deleted.
        """

    def close(self) -> None:
        """Releases files and connections."""
