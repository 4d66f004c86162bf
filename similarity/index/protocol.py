"""The protocol `CompanyIndex`, which every store implements. `tests/contract/` runs the same tests on each store.

A **generation** is one complete copy of the corpus, embedded by one encoder. At most one is live.

    create_generation -> building -- register_candidate -> candidate -- promote -> live
    live -- (another is promoted) -> previous -- rollback -> live        any but live -- retire -> gone
    candidate -- withdraw_candidate -> building

Writers write every change to all `write_targets()`: candidate, live and previous, so that no change is missing
after a rollback. A reader calls `live()` once per request and passes that generation to every call of the request.

A writer holds a **lease** and acknowledges the `revision()` of the generations it writes to, so that a re-embed
knows when all writers write to its candidate. A re-embed holds a lease of its own: `promote` refuses a lease that
another process has taken meanwhile.

Writing is idempotent: a document is applied only if its version is higher than the stored one, so late, repeated
and replayed changes have no effect. A delete is a document too (`DeletedCompany`).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from similarity.index.attributes import AttributeSchema
from similarity.index.filters import FieldFilter
from similarity.model.calibration import Calibration
from similarity.model.ranker import ENGLISH, Ranker, ranker_of

if TYPE_CHECKING:
    from similarity.index.ledger import ErasureLedger

EXAMPLE_IDS = 3
NEARER_COUNTED = 1_100
"""How many nearer companies every store counts; it may count no further (`CompanyIndex.count_nearer`)."""
MAX_FIELD_VALUES = 1_000
ROLLBACK_SECONDS = 10.0
"""How long a rollback waits for writes in flight."""


class GenerationState(StrEnum):
    """The state of a generation; see the diagram in the module's docstring."""

    BUILDING = "building"
    CANDIDATE = "candidate"
    LIVE = "live"
    PREVIOUS = "previous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One complete copy of the corpus. `name`: `[a-z0-9-]{1,64}`. `dimension`: the length of its vectors.

    `calibration` and `ranker` are from the bundle. `promotion` is higher for those that went live later; 0: never live.
    """

    name: str
    encoder_id: str
    bundle_id: str
    dimension: int
    created_at: datetime
    state: GenerationState = GenerationState.BUILDING
    calibration: Calibration | None = None
    promoted_at: datetime | None = None
    promotion: int = 0
    ranker: Ranker | None = None

    @property
    def second_stage(self) -> Ranker | None:
        """The ranker or, without one, the ranker of the calibration (`ranker_of`); None if there is neither."""
        return self.ranker or (ranker_of(self.calibration, self.encoder_id) if self.calibration else None)

    @property
    def languages(self) -> tuple[str, ...]:
        """ISO 639 codes of the languages that the encoder reads; English without a ranker."""
        return self.ranker.languages if self.ranker else ENGLISH


class WriteOutcome(StrEnum):
    """The outcome of writing one document."""

    APPLIED = "applied"
    """It is now the stored document."""
    UNCHANGED = "unchanged"
    """The same version with the same content is stored (an earlier attempt succeeded), or a load changes nothing."""
    SUPERSEDED = "superseded"
    """A newer version is stored; this one changed nothing."""
    REJECTED = "rejected"
    """It cannot be stored; `reason` says why (same version with other content, wrong vector)."""
    FAILED = "failed"
    """The store did not accept it in time; `reason` says why. It may or may not be stored: send it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """The result of writing one document.

    `version`: the version that is stored now, which is the document's own or the newer one that superseded it; None if
    the document is invalid or the store did not answer.
    """

    id: str
    outcome: WriteOutcome
    reason: str = ""
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentVersion:
    """The stored version of a document."""

    id: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The exclusive right of `holder` to the task `name`, until `expires_at`.

    `fence`: a number that increases with every lease, so that an expired holder differs from its successor.
    `acknowledged`: the revision of the generations that the holder has read.
    """

    name: str
    holder: str
    fence: int
    expires_at: datetime
    acknowledged: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarCompanies:
    """The neighbours, best first (ties by id). `approximate` is False if the search was exact."""

    hits: tuple[SimilarCompany, ...]
    approximate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStats:
    """Counts of one generation. `companies` excludes tombstones; `last_version` includes them.

    `languages`: companies by the language of their description, the most frequent first. `unread`: those whose text is
    certainly in a language that the generation's encoder does not read. `without_vector`: companies whose description
    has too few words to rank by. `unread_ids`, `without_vector_ids`: the first EXAMPLE_IDS of these companies, by id.
    """

    companies: int
    deleted: int
    last_version: int
    unread: int = 0
    without_vector: int = 0
    unread_ids: tuple[str, ...] = ()
    without_vector_ids: tuple[str, ...] = ()
    languages: Mapping[str, int] = field(default_factory=dict)


class CompanyIndex(Protocol):
    """A store of companies in generations.

    Methods with a generation raise UnknownGeneration if it does not exist or was retired. Every method raises
    IndexUnavailable if the store cannot be reached.
    """

    @property
    def location(self) -> str:
        """The path of the index's file, or its name in a cluster. By default its bundles are stored next to it."""

    def create_generation(self, generation: Generation) -> None:
        """Add an empty generation in state building. Raises GenerationConflict if the name is taken."""

    def generations(self) -> list[Generation]:
        """Return all generations, in the order in which they were added."""

    def live(self) -> Generation:
        """Return the live generation. Raises NoLiveGeneration if there is none yet."""

    def write_targets(self) -> list[Generation]:
        """Return the generations to which every change must be written (candidate, live, previous), oldest first."""

    def register_candidate(self, name: str) -> None:
        """building -> candidate: writers now write to it too. Raises GenerationConflict in any other state."""

    def withdraw_candidate(self, name: str) -> None:
        """candidate -> building: writers no longer write to it. Raises GenerationConflict in any other state."""

    def promote(self, name: str, *, lease: Lease | None = None) -> None:
        """candidate -> live and live -> previous, in one step. Raises GenerationConflict in any other state.

        Raises LeaseLost if `lease` is given and is not held; this is checked in the same step.
        """

    def rollback(self, *, force: bool = False, wait: float = ROLLBACK_SECONDS) -> Generation:
        """Make the most recent previous generation live again, and the live one previous, in one step.

        A second call therefore goes forward again; `similarity.generations.promotion.rollback` refuses that.

        Raises GenerationConflict if there is no previous one, or if it still lacks changes of the live one after
        `wait` seconds (unless `force`): a batch in flight may be in only one of the two.
        """

    def retire(self, name: str) -> None:
        """Remove a generation with all its documents. Raises GenerationConflict if it is live."""

    def retired_bundles(self) -> frozenset[str]:
        """Return the ids of the bundles of all generations that were live and then retired."""

    @property
    def ledger(self) -> "ErasureLedger":
        """The ledger of erasures; it belongs to no generation."""

    def attributes(self) -> AttributeSchema:
        """Return the declared types of attributes, and which attribute is the size; without any, an empty schema."""

    def declare(self, schema: AttributeSchema) -> None:
        """Update the declarations of the index with those of `schema` (see `AttributeSchema.updated`)."""

    def revision(self) -> int:
        """Return a number that increases with every change of the generations (create, register, promote, retire ...).

        Call it before `write_targets()`: the targets are then at least as new.
        """

    def take_lease(self, name: str, *, holder: str, seconds: float) -> Lease:
        """Take the lease `name` if it is free, expired, or already held by `holder`.

        Names and holders are 1-128 of `[A-Za-z0-9._:-]`. Raises LeaseHeld if another holder has it.
        """

    def renew_lease(self, lease: Lease, *, seconds: float, acknowledged: int | None = None) -> Lease:
        """Extend a lease to `seconds` from now. Raises LeaseLost if another holder took it, or it was released.

        An expired lease that nobody has taken can still be renewed.
        """

    def release_lease(self, lease: Lease) -> None:
        """Release a lease. Does nothing if it is not held."""

    def leases(self) -> list[Lease]:
        """Return the leases that have not expired, by name."""

    def stats(self, generation: str) -> GenerationStats:
        """Return the counts of one generation, including all acknowledged writes; searches then see these too."""

    def upsert(self, generation: str, documents: Sequence[EmbeddedCompany | DeletedCompany]) -> list[WriteResult]:
        """Write complete documents durably; return one result per document, in order.

        A document is applied only if its version is higher than the stored one. Applied documents survive a crash.
        Raises EncoderMismatch, before any write, if a document's `encoder_id` is not that of the generation.
        """

    def get(self, generation: str, ids: Collection[str]) -> dict[str, EmbeddedCompany]:
        """Return the stored companies among `ids`, by id, without deleted and unknown ones."""

    def stored_versions(self, generation: str, ids: Collection[str]) -> dict[str, int]:
        """Return the stored version of each of `ids`, tombstones included, without unknown ids."""

    def resolve(self, generation: str, reference: str) -> list[str]:
        """Return the sorted ids of the companies whose id, else domain, else name or alias equals `reference`.

        Only the first of these kinds with a match is used, and MAX_RESOLVED ids. Names are compared by `name_key`.
        """

    def resolve_many(self, generation: str, references: Collection[str]) -> dict[str, list[str]]:
        """Return the result of `resolve` for each of `references`, in a few requests however many they are."""

    def find(self, generation: str, query: str, *, limit: int = 10) -> list[Company]:
        """Return companies found by domain, by prefix of name or alias, then by words; best matches first.

        The last word may be unfinished, unless a blank follows it. Any text is allowed; there is no query syntax.
        """

    def find_misspelled(self, generation: str, query: str, *, limit: int = 10) -> list[Company]:
        """Return companies with a name or alias that has the words of `query`; best matches first.

        A word of at least 4 letters that is in no text of the index counts as misspelled: one letter may differ (added,
        dropped, changed or swapped), or two in a word of at least 9. One of several words may be missing.
        """

    def similar(
        self,
        generation: str,
        vector: Vector,
        *,
        k: int,
        filters: Sequence[FieldFilter] = (),
        exclude: Collection[str] = (),
    ) -> SimilarCompanies:
        """Return the k companies with the highest cosine to the unit `vector` that pass all filters, without `exclude`.

        Companies without a vector are never among them (`EmbeddedCompany.has_vector`). Scores are exact cosines, equal
        between stores within 1e-4.

        Raises:
            InvalidInput: k is below 1, the vector is no unit vector of the dimension, or the companies have more
                characters in all than `validation.MAX_CHARACTERS_FOUND`.
        """

    def count_nearer(
        self,
        generation: str,
        vector: Vector,
        *,
        score: float,
        filters: Sequence[FieldFilter] = (),
        exclude: Collection[str] = (),
    ) -> int | None:
        """Return how many companies have a cosine above `score` to the unit `vector`, and pass all filters.

        None if there are at least NEARER_COUNTED and the store counts no further. The count is as exact as `similar`.
        """

    def field_values(self, generation: str, field: str, among: Collection[str] = ()) -> list[str]:
        """Return the values that companies have in a filter field, as `validation.filter_key`, the most frequent first.

        `among`: values as in a filter; return only these. At most MAX_FIELD_VALUES are returned.
        """

    def scan(
        self, generation: str, *, after: str = "", batch_size: int = 1000
    ) -> Iterator[list[EmbeddedCompany | DeletedCompany]]:
        """Yield all documents, tombstones included, by ascending id after `after`, in batches."""

    def versions(
        self, generation: str, *, after: str = "", batch_size: int = 10_000
    ) -> Iterator[list[DocumentVersion]]:
        """Yield the versions of the documents that `scan` yields. It is faster, for comparing generations."""

    def compact(self, generation: str) -> bool:
        """Remove replaced and deleted documents from the disk; may take long. Used by erasures, and before serving.

        Returns False if the documents stay for now, because a copy of the store is unavailable.
        """

    def purge_deleted(self, generation: str, *, before: datetime) -> int:
        """Remove the tombstones of deletes before a time; return how many.

        Keep them longer than the message log's retention, or a replay revives what was deleted.
        """

    def close(self) -> None:
        """Release files and connections."""
