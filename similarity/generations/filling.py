"""Fills a target generation: documents that it lacks are copied from a source, or embedded with its own encoder.

No state is stored outside the index: missing documents are found by comparing versions. An interrupted run
therefore continues where it stopped, and a run with nothing to do ends at once.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice, takewhile

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.errors import GenerationConflict, InvalidInput
from similarity.index.comparing import lagging
from similarity.index.protocol import CompanyIndex, DocumentVersion, Generation, WriteOutcome
from similarity.ingest.records import Change, VersionedCompany
from similarity.ingest.write_path import Documents, embed_changes
from similarity.model.encoder_protocol import Encoder

CHUNK_DOCUMENTS = 1024
PAGE_DOCUMENTS = 10_000
"""How many missing ids are read at once, so that the streams of versions are open for seconds, not for the run."""
CHUNK_SECONDS = 5.0
MAX_REJECTED = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class IdRange:
    """The ids above `after`, up to and including `until`; an empty text is no limit."""

    after: str = ""
    until: str = ""


ALL_IDS = IdRange()


@dataclass(slots=True)
class Filled:
    """The counts of one pass. `applied`: documents that changed the target. `rejected`: the reasons, by id."""

    documents: int = 0
    applied: int = 0
    failed: int = 0
    encoded: int = 0
    rejected: dict[str, str] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether no document was missing, except those that cannot be stored."""
        return not self.applied and not self.failed


class Pace:
    """Limits a run to `documents_per_second`, on average since its start; None is no limit."""

    def __init__(
        self,
        documents_per_second: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = documents_per_second
        self._clock = clock
        self._sleep = sleep
        self._started = clock()
        self._documents = 0

    @property
    def chunk(self) -> int:
        """The number of documents per write: at most CHUNK_DOCUMENTS, and at most those of CHUNK_SECONDS."""
        return CHUNK_DOCUMENTS if self._rate is None else max(1, min(CHUNK_DOCUMENTS, int(self._rate * CHUNK_SECONDS)))

    def after(self, documents: int) -> None:
        """Wait until the limit allows the next document after these `documents`."""
        if self._rate is None:
            return
        self._documents += documents
        ahead = self._started + self._documents / self._rate - self._clock()
        if ahead > 0:
            self._sleep(ahead)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filler:
    """Fills `target` from `source`. Vectors are copied if both have the same encoder, otherwise made by `encoder`.

    `before_write` is called before each chunk is written, and may raise to stop. `on_documents` is called with the
    number of documents written since the last call.

    Raises:
        InvalidInput: `target` needs another encoder.
    """

    index: CompanyIndex
    source: Generation
    target: Generation
    encoder: Encoder | None
    now: datetime
    pace: Pace = field(default_factory=Pace)
    before_write: Callable[[], object] = lambda: None
    on_documents: Callable[[int], None] = lambda documents: None

    def __post_init__(self) -> None:
        held = self.encoder.encoder_id if self.encoder else "none"
        if not self._copies and held != self.target.encoder_id:
            raise InvalidInput(
                f"the generation needs encoder {self.target.encoder_id}, but {held} was given; pass its bundle"
            )

    @property
    def _copies(self) -> bool:
        return self.source.encoder_id == self.target.encoder_id

    def fill(self, ids: IdRange = ALL_IDS) -> Filled:
        """Write all documents with these ids that the target lacks, once, in the order of ids.

        Raises:
            GenerationConflict: more than a thousand documents were rejected.
        """
        filled = Filled()
        after = ids.after
        while page := self._lacking(after, ids.until):
            for start in range(0, len(page), self.pace.chunk):
                chunk = page[start : start + self.pace.chunk]
                self._write(chunk, filled)
                self.on_documents(len(chunk))
                self.pace.after(len(chunk))
            after = page[-1].id
        return filled

    def _lacking(self, after: str, until: str) -> list[DocumentVersion]:
        lacking = lagging(self.index, ahead=self.source.name, behind=self.target.name, after=after)
        if until:
            lacking = takewhile(lambda document: document.id <= until, lacking)
        return list(islice(lacking, PAGE_DOCUMENTS))

    def _write(self, chunk: Sequence[DocumentVersion], filled: Filled) -> None:
        documents = self._documents(chunk, filled)
        self.before_write()
        filled.documents += len(documents)
        for result in self.index.upsert(self.target.name, documents):
            filled.applied += result.outcome is WriteOutcome.APPLIED
            filled.failed += result.outcome is WriteOutcome.FAILED
            if result.outcome is WriteOutcome.REJECTED:
                filled.rejected[result.id] = result.reason
        if len(filled.rejected) > MAX_REJECTED:
            company_id, reason = next(iter(filled.rejected.items()))
            raise GenerationConflict(
                f"generation {self.target.name} rejects more than {MAX_REJECTED:,} documents; for example "
                f"{company_id!r}: {reason}; remove the cause and run again, or remove the generation with: "
                f"similarity generations retire {self.target.name}"
            )

    def _documents(self, chunk: Sequence[DocumentVersion], filled: Filled) -> Documents:
        stored = self.index.get(self.source.name, [document.id for document in chunk])
        # A document with a version but without content was deleted. If it was deleted just now, the tombstone of
        # that delete is newer than the one made here, and wins.
        found = [stored.get(known.id) or DeletedCompany(id=known.id, version=known.version) for known in chunk]
        if self._copies or self.encoder is None:
            return list(found)
        filled.encoded += len(stored)
        return embed_changes([_as_change(document) for document in found], {}, self.encoder, now=self.now)


def _as_change(document: EmbeddedCompany | DeletedCompany) -> Change:
    if isinstance(document, DeletedCompany):
        return document
    return VersionedCompany(company=document.company, version=document.version)


def id_ranges(index: CompanyIndex, generation: str, *, documents: int) -> list[IdRange]:
    """Return ranges of ids, each with `documents` documents of a generation (the last has fewer), for the workers."""
    ends, seen = [""], 0
    for batch in index.versions(generation):
        for document in batch:
            seen += 1
            if seen % documents == 0:
                ends.append(document.id)
    return [IdRange(after=after, until=until) for after, until in zip(ends, [*ends[1:], ""], strict=True)]
