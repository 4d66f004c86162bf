"""Erasing one company: from every generation, from what people added about it, and from the disk.

    accept   names -> a delete in the message log -> ledger -> tombstones: no search finds it any more
    finish   tombstones, if a crash left any out -> workspace -> files rewritten -> names forgotten

The service accepts an erasure in a request and finishes it in the background; the command does both.
Every step may be repeated. The ledger (`index.ledger`) holds what is running, and hashes of all names
that the company has or had: an erasure that a crash or an absent store cut short is finished later.

What stays, on purpose: a tombstone in each generation and the record of the erasure, that is the id and
times. Without a tombstone an older message that is replayed, or a backfill, would bring the company back.
Once the message log holds nothing so old any more, `purge_deleted` removes it. An id that is itself
personal data should be a pseudonym.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial

from similarity.company import DeletedCompany, EmbeddedCompany, check_stored_id, utc_now, version_of
from similarity.errors import IndexUnavailable, NoLiveGeneration, SimilarityError, UnknownGeneration
from similarity.feedback.protocol import Workspace
from similarity.index.ledger import Compaction, DamagedErasure, ErasureRecord, ErasureState
from similarity.index.name_hashes import CompanyNames, hashes_of, names_of
from similarity.index.protocol import CompanyIndex, WriteOutcome, WriteResult
from similarity.ingest.writer_leases import WriterLease

NOT_TAKEN = "not every generation took the deletion: stop whatever writes the company, then erase it again"
WRITTEN_AGAIN = "the company was written again while it was erased: stop whatever writes it, then erase it again"
STORE_AWAY = "a store does not answer or cannot be rewritten just now; it is tried again"
FAULT = "a fault of the software, whose log holds the trace; erase again once that is mended"

BACKUPS = "Backups and snapshots hold it until they expire. After a restore, erase again."
TOPIC = "Older messages about it stay in Kafka until the topic is compacted or its retention ends."
NO_TOPIC = "If a message log or a file feeds the index, it may bring the company back: send a delete there too."
FILES = "Dead letters, rejects, exports and training pairs are files of their own: delete what they hold of it."
OTHERS = "Records of other companies may mention it: in descriptions, tags, attributes and aliases."
PROCESSES = (
    "Other processes hold it in memory until they end, and copies of the files that they made (replicas, write-ahead "
    "logs shipped elsewhere) until these are deleted. On Elasticsearch, a node that is down keeps it until it is back."
)
TEXTS = (
    "Notes, texts and names of lists were searched for whole names. A nickname or a misspelt name stays, and so does a "
    "name that is one letter, a short number or an ordinary word such as Energy. Ids of events and names of users were "
    "not searched."
)


def remaining(record: ErasureRecord) -> list[str]:
    """What an erasure does not reach, and what to do there."""
    return [BACKUPS, TOPIC if record.published else NO_TOPIC, FILES, PROCESSES, OTHERS, TEXTS]


@dataclass(frozen=True, slots=True)
class Eraser:
    """Erases from `index` and `workspace`. `publish` sends a delete to the message log that feeds the index."""

    index: CompanyIndex
    workspace: Workspace | None = None
    publish: Callable[[DeletedCompany], None] | None = None
    clock: Callable[[], datetime] = utc_now

    def accept(self, company_id: str) -> ErasureRecord:
        """Makes the company a tombstone in every generation, building ones too; an unknown one as well.

        The erasure is on record before the first tombstone is written: `finish` completes it, also after an
        error here. The returned record is failed if a generation holds something newer, or does not take it.

        Raises:
            InvalidCompany: the id is not one that a company can have.
            IndexUnavailable: the store does not answer; it may be on record or not.
        """
        check_stored_id(company_id)
        ledger, now, known = self.index.ledger, self.clock(), self._known(company_id)
        # An event time may lie up to five minutes ahead of the clock, and the tombstone must be above it.
        version = max([version_of(now, now=now, deleted=True), *(each.version + 1 for each in known)])
        if self.publish is not None:
            # Untimed, because a message with a time far ahead would be refused: whoever publishes it finds the version.
            received = version_of(now, now=now, deleted=True)
            self.publish(DeletedCompany(id=company_id, version=received, untimed=True))
        names = {name for each in known for name in names_of(each.company)}
        ledger.remember({company_id: hashes_of(ledger.key(), names)})
        record = ErasureRecord(
            id=company_id,
            version=version,
            requested_at=now,
            published=self.publish is not None,
            results={},
            forgotten={},
        )
        ledger.save_erasure(record)
        return self._hide(record)

    def finish(self, *, only: str = "", compact: bool = True) -> list[ErasureRecord]:
        """Completes every erasure that is running, or `only` that of one company; returns their records as of then.

        One rewriting of the files serves them all. Without `compact` the words stay on the disk until the
        store rewrites its files by itself.

        Raises:
            IndexUnavailable: a store does not answer, or its files are in use. The erasures stay running, and
                the names that they look for are kept.
        """
        running = [each for each in self.index.ledger.running_erasures() if only in {"", each.id}]
        try:
            hidden = [record if record.results else self._hide(record) for record in running]
            waiting = [record for record in hidden if record.state is ErasureState.RUNNING]
            looked_for: dict[str, frozenset[str]] = {}
            for record in waiting:
                try:
                    looked_for[record.id] = self._forget(record)
                except DamagedErasure as error:
                    self._saved(replace(record, state=ErasureState.FAILED, problem=error.reason))
            if compact and looked_for:
                self._compact()
            for record in waiting:
                if record.id in looked_for:
                    self._end(record, looked_for[record.id], Compaction.DONE if compact else Compaction.SKIPPED)
        except SimilarityError:
            self._note(running, ErasureState.RUNNING, STORE_AWAY)
            raise
        except Exception:
            self._note(running, ErasureState.FAILED, FAULT)
            raise
        return [newest for record in running if (newest := self.index.ledger.erasure(record.id))]

    def _known(self, company_id: str) -> list[EmbeddedCompany]:
        """What the generations hold of the company."""
        known: list[EmbeddedCompany] = []
        for generation in self.index.generations():
            with suppress(UnknownGeneration):
                known += self.index.get(generation.name, [company_id]).values()
        return known

    def _hide(self, record: ErasureRecord) -> ErasureRecord:
        """Writes a tombstone to every generation; no search finds the company when this returns."""
        tombstone = DeletedCompany(id=record.id, version=record.version)
        results: dict[str, WriteResult] = {}
        # As a writer: a re-embed that begins meanwhile copies nothing until the tombstones are written.
        with WriterLease(self.index):
            for generation in self.index.generations():
                with suppress(UnknownGeneration):  # retired meanwhile, and its documents with it
                    [results[generation.name]] = self.index.upsert(generation.name, [tombstone])
                    self.index.stats(generation.name)  # searches see from now on what was counted
        # Superseded by a newer deletion is as good.
        if self._known(record.id) or any(result.outcome is WriteOutcome.FAILED for result in results.values()):
            return self._saved(replace(record, results=results, state=ErasureState.FAILED, problem=NOT_TAKEN))
        return self._saved(replace(record, results=results))

    def _forget(self, record: ErasureRecord) -> frozenset[str]:
        """Takes the company out of the workspace; returns the hashes that were looked for."""
        hashes = self.index.ledger.remembered(record.id)
        if self.workspace is not None:
            names = CompanyNames(record.id, self.index.ledger.key(), hashes, partial(self._is_anothers, record.id))
            counts = asdict(self.workspace.forget_company(names))
            # An attempt before this one may have been cut short.
            total = {kind: count + record.forgotten.get(kind, 0) for kind, count in counts.items()}
            self._saved(replace(record, forgotten=total))
        return hashes

    def _compact(self) -> None:
        is_complete = self.workspace is None or self.workspace.compact()
        for generation in self.index.generations():
            with suppress(UnknownGeneration):
                is_complete &= self.index.compact(generation.name)
        if not is_complete:
            raise IndexUnavailable("a copy of the store is away, and its files keep what was erased until it is back")

    def _end(self, record: ErasureRecord, hashes: frozenset[str], compaction: Compaction) -> None:
        ledger = self.index.ledger
        newest = ledger.erasure(record.id)
        if newest is None or newest.version != record.version:
            return  # erased again meanwhile: that one needs the names, and is running
        if self._known(record.id):  # written again meanwhile; the names are kept for the next erasure
            ledger.save_erasure(
                replace(newest, state=ErasureState.FAILED, compaction=compaction, problem=WRITTEN_AGAIN)
            )
            return
        ledger.forget(record.id, hashes)
        ledger.save_erasure(replace(newest, state=ErasureState.DONE, compaction=compaction, problem=""))

    def _saved(self, record: ErasureRecord) -> ErasureRecord:
        """Stores a record, unless the company was erased again meanwhile."""
        newest = self.index.ledger.erasure(record.id)
        if newest is None or newest.version == record.version:
            self.index.ledger.save_erasure(record)
        return record

    def _note(self, records: Iterable[ErasureRecord], state: ErasureState, problem: str) -> None:
        for record in records:
            with suppress(SimilarityError):  # what went wrong first is what the caller has to hear of
                newest = self.index.ledger.erasure(record.id)
                if newest is not None and newest.state is ErasureState.RUNNING:
                    self.index.ledger.save_erasure(replace(newest, state=state, problem=problem))

    def _is_anothers(self, company_id: str, name: str) -> bool:
        with suppress(NoLiveGeneration, UnknownGeneration):
            return not set(self.index.resolve(self.index.live().name, name)) <= {company_id}
        return False
