"""Erasure of one company: from every generation, from the workspace, and from the disk.

    accept   a delete in the message log -> names -> ledger -> tombstones: searches no longer find the company
    finish   missing tombstones -> workspace -> files rewritten -> hashes of names deleted

The service accepts an erasure in a request and finishes it in the background; the command does both. Every step can
be repeated. The ledger (`index.ledger`) holds the running erasures, and hashes of all current and former names of
the company: an erasure that was interrupted by a crash or an outage is finished later.

Two things are kept on purpose: a tombstone in each generation, and the record of the erasure, with id and times.
Without the tombstone, an older message or a backfill would restore the company. Once the message log no longer
contains older messages, `purge_deleted` removes the tombstone. If an id is itself personal data, use a pseudonym.
"""

import math
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from similarity.company import DeletedCompany, EmbeddedCompany, check_stored_id, utc_now, version_of
from similarity.errors import IndexUnavailable, NoLiveGeneration, SimilarityError, UnknownGeneration
from similarity.feedback.protocol import Forgotten, Workspace
from similarity.index.ledger import Compaction, DamagedErasure, ErasureRecord, ErasureState
from similarity.index.name_hashes import ErasedCompanies, hashes_of, names_of
from similarity.index.protocol import CompanyIndex, WriteOutcome, WriteResult
from similarity.ingest.renewed_leases import ERASE, RenewedLease
from similarity.ingest.writer_leases import WriterLease
from similarity.search.names.index_queries import possible_ids
from similarity.search.names.list_matching import RowMatcher
from similarity.search.names.rows import ListedCompany

DELETE_REFUSED = "not every generation accepted the delete: stop whatever writes the company, then erase it again"
WRITTEN_AGAIN = (
    "the company was written again while it was erased, and that stays: if it should not, stop whatever writes the "
    "company, then erase it again"
)
STORE_UNAVAILABLE = "a store does not answer or cannot be rewritten at present; the erasure will be tried again"
IDS_NAMED = 5
ERASE_SECONDS = 30.0
"""So long others wait after a process was killed in this work."""
MAX_TOGETHER = 10_000
"""Companies that are removed from the workspace together; Elasticsearch allows 65,536 values in a query."""
FAULT = "internal error; see the log. Erase again after the fix"

BACKUPS = "Backups and snapshots contain the company until they expire. After a restore, erase again."
TOPIC = "Older messages about the company stay in Kafka until the topic is compacted or its retention ends."
NO_TOPIC = "If a message log or a file feeds the index, it may restore the company: delete the company there too."
FILES = "Dead letters, rejects, exports and training pairs are separate files: delete the company from them."
OTHERS = "Records of other companies may mention the company: in descriptions, tags, attributes and aliases."
PROCESSES = (
    "Other processes hold the company in memory until they end. Copies of the files (replicas, shipped write-ahead "
    "logs) contain it until they are deleted. On Elasticsearch, a node that is down keeps it until it is back."
)
TEXTS = (
    "Notes, texts and names of lists were searched for whole names. A nickname or a misspelt name stays, and so does a "
    "name that is one letter, a short number or an ordinary word such as Energy. Ids of events and names of users were "
    "not searched."
)


class WrittenAgain(SimilarityError):
    """Companies were written again while they were erased; `args` are their ids."""


def remaining(record: ErasureRecord) -> list[str]:
    """Return the copies that an erasure does not reach, and what to do there."""
    return [BACKUPS, TOPIC if record.published else NO_TOPIC, FILES, PROCESSES, OTHERS, TEXTS]


def not_stored(index: CompanyIndex, company_id: str) -> str | None:
    """Return the message that no generation has the id, and which ids may be meant; None if a generation has it."""
    meant: set[str] = set()
    for generation in index.generations():
        with suppress(UnknownGeneration):
            if index.get(generation.name, [company_id]):
                return None
            meant |= {
                *index.get(generation.name, possible_ids(company_id)),
                *index.resolve(generation.name, company_id),
            }
    with suppress(NoLiveGeneration):
        matcher = RowMatcher(index, index.live().name, index.attributes(), as_typed=True)
        match = matcher.match(ListedCompany(name=company_id)) if not meant else None
        meant |= {each.id for each in (match.company, *match.candidates) if each} if match else set()
    advice = f"; did you mean {' or '.join(sorted(meant)[:IDS_NAMED])}?" if meant else ""
    return f"no company with the id {company_id!r} is stored (ids are case-sensitive){advice}"


@dataclass(frozen=True, slots=True)
class Eraser:
    """Erases companies from `index` and `workspace`.

    `publish`: sends a delete to the message log of the index, and returns the version that it has there.
    """

    index: CompanyIndex
    workspace: Workspace | None = None
    publish: Callable[[DeletedCompany], int] | None = None
    clock: Callable[[], datetime] = utc_now

    def accept(self, company_id: str) -> ErasureRecord:
        """Write a tombstone of the company to every generation, also if the company is unknown.

        The erasure is in the ledger before the first tombstone is written: `finish` completes it, also after an error
        here. The returned record is failed if a generation holds a newer version, or does not accept the tombstone.

        Raises:
            InvalidCompany: the id is invalid.
            IndexUnavailable: the store does not answer; the erasure may or may not be in the ledger.
        """
        check_stored_id(company_id)
        ledger, known = self.index.ledger, self._known(company_id)
        self._publish(company_id)
        # Read the time after the publication: writes may follow that delete until the erasure is in the ledger.
        now = self.clock()
        # An event time may be up to five minutes ahead of the clock, and the tombstone must be above it.
        version = max([_delete_at(now), *(each.version + 1 for each in known)])
        self._remember(company_id, known)
        record = ErasureRecord(
            id=company_id,
            version=version,
            requested_at=now,
            published=self.publish is not None,
            results={},
            forgotten={},
        )
        ledger.save_erasure(record)
        if self.publish is not None:
            # A second delete has a higher version than those writes, and is after them in a compacted topic.
            record = replace(record, version=max(version, self._publish(company_id), _delete_at(self.clock())))
            ledger.save_erasure(record)
        return self._hide(record)

    def finish(
        self, *, only: str = "", compact: bool = True, on_begin: Callable[[], None] = lambda: None
    ) -> list[ErasureRecord]:
        """Complete all running erasures, or only the one of the company `only`; return their records.

        The files are rewritten once for all of them. Without `compact`, the text is on the disk until the store
        rewrites its files. `on_begin`: called when no other process finishes erasures any more.

        Raises:
            IndexUnavailable: a store does not answer, or its files are in use. The erasures stay running, and
                the hashes of names are kept.
        """
        with self._alone() as lease:
            on_begin()
            return self._finish(lease, only=only, compact=compact)

    def _finish(self, lease: RenewedLease, *, only: str, compact: bool) -> list[ErasureRecord]:
        running = [each for each in self.index.ledger.running_erasures() if only in {"", each.id}]
        try:
            hidden = [record if record.results else self._hide(record) for record in running]
            waiting = [record for record in hidden if record.state is ErasureState.RUNNING]
            looked_for = self._forget(waiting, lease)
            if compact and looked_for:
                self._compact()
            for record in waiting:
                if record.id in looked_for:
                    self._end(record, looked_for[record.id], Compaction.DONE if compact else Compaction.SKIPPED)
        except SimilarityError:
            self._note(running, ErasureState.RUNNING, STORE_UNAVAILABLE)
            raise
        except Exception:
            self._note(running, ErasureState.FAILED, FAULT)
            raise
        return [newest for record in running if (newest := self.index.ledger.erasure(record.id))]

    def forget_running(self, searched: set[tuple[str, int]]) -> None:
        """Remove the companies of all running erasures from the workspace; `finish` does the rest.

        `searched`: ids and versions of erasures that are left out; those of this call are added.

        Raises:
            IndexUnavailable: a store does not answer.
        """
        with self._alone() as lease:
            running = [each for each in self.index.ledger.running_erasures() if each.results]
            new = [each for each in running if (each.id, each.version) not in searched]
            self._forget(new, lease, may_fail=False)
        searched.update((each.id, each.version) for each in running)

    def _alone(self) -> RenewedLease:
        """Return the lease under which one process at a time finishes erasures.

        Two that rename the lists of Elasticsearch at once would each take the other's work for a user's. And one that
        still searches for a company whose erasure another has ended would remove what was written since.
        """
        return RenewedLease(self.index, ERASE, seconds=ERASE_SECONDS, patience=math.inf)

    def _publish(self, company_id: str) -> int:
        """Publish a delete, if there is a message log, and return its version; otherwise 0."""
        if self.publish is None:
            return 0
        # Untimed, so that `publish` looks up the version: a message with a time far ahead would be refused.
        return self.publish(DeletedCompany(id=company_id, version=_delete_at(self.clock()), untimed=True))

    def _known(self, company_id: str) -> list[EmbeddedCompany]:
        """Return the stored documents of the company in all generations."""
        known: list[EmbeddedCompany] = []
        for generation in self.index.generations():
            with suppress(UnknownGeneration):
                known += self.index.get(generation.name, [company_id]).values()
        return known

    def _remember(self, company_id: str, known: Iterable[EmbeddedCompany]) -> None:
        names = {name for each in known for name in names_of(each.company)}
        self.index.ledger.remember({company_id: hashes_of(self.index.ledger.key(), names)})

    def _hide(self, record: ErasureRecord) -> ErasureRecord:
        """Write a tombstone to every generation; searches no longer find the company when this returns."""
        tombstone = DeletedCompany(id=record.id, version=record.version)
        results: dict[str, WriteResult] = {}
        # With a writer lease: a re-embed that starts meanwhile copies nothing until the tombstones are written.
        with WriterLease(self.index):
            for generation in self.index.generations():
                with suppress(UnknownGeneration):  # retired meanwhile, and its documents with it
                    # The tombstone replaces names that were written since the erasure was accepted.
                    self._remember(record.id, self.index.get(generation.name, [record.id]).values())
                    [results[generation.name]] = self.index.upsert(generation.name, [tombstone])
                    self.index.stats(generation.name)  # makes the write visible to searches
        # A tombstone that a newer tombstone superseded is a success too.
        if self._known(record.id) or any(result.outcome is WriteOutcome.FAILED for result in results.values()):
            return self._saved(replace(record, results=results, state=ErasureState.FAILED, problem=DELETE_REFUSED))
        return self._saved(replace(record, results=results))

    def _forget(
        self, records: Iterable[ErasureRecord], lease: RenewedLease, *, may_fail: bool = True
    ) -> dict[str, frozenset[str]]:
        """Remove companies from the workspace; return the hashes of names that were searched, by id.

        Left out are erasures that have ended meanwhile, companies that were written again, and damaged records;
        `may_fail`: the last two become failed.
        """
        ledger = self.index.ledger
        hashes, versions = dict[str, frozenset[str]](), dict[str, int]()
        for record in records:
            newest = ledger.erasure(record.id)
            if newest is None or newest.state is not ErasureState.RUNNING:
                continue
            try:
                hashes[record.id] = ledger.remembered(record.id)
                versions[record.id] = newest.version
            except DamagedErasure as error:
                if may_fail:
                    self._saved(replace(record, state=ErasureState.FAILED, problem=error.reason))
        if self.workspace is None or not hashes:
            return hashes
        key, ids, counts = ledger.key(), list(hashes), dict[str, Forgotten]()

        def require(ids: Collection[str]) -> None:
            lease.require()
            if again := self._stored_again(ids):
                raise WrittenAgain(*again)

        while ids:
            together = {each: hashes[each] for each in ids[:MAX_TOGETHER]}
            try:
                require(together)
                erased = ErasedCompanies(key, together, self._belongs_to_another, require)
                counts |= self.workspace.forget_companies(erased)
                del ids[:MAX_TOGETHER]
            except WrittenAgain as error:  # verdicts and lists since then are about the new ones
                for company_id in error.args:
                    del hashes[company_id]
                    ids.remove(company_id)
                    newest = ledger.erasure(company_id) if may_fail else None
                    if newest is not None and newest.version == versions[company_id]:
                        ledger.save_erasure(replace(newest, state=ErasureState.FAILED, problem=WRITTEN_AGAIN))
        for company_id, forgotten in counts.items():
            newest = ledger.erasure(company_id)
            if newest is None or newest.state is not ErasureState.RUNNING or newest.version != versions[company_id]:
                del hashes[company_id]  # erased again meanwhile
                continue
            # An earlier attempt may have been interrupted.
            total = {kind: count + newest.forgotten.get(kind, 0) for kind, count in asdict(forgotten).items()}
            ledger.save_erasure(replace(newest, forgotten=total))
        return hashes

    def _compact(self) -> None:
        is_complete = self.workspace is None or self.workspace.compact()
        for generation in self.index.generations():
            with suppress(UnknownGeneration):
                is_complete &= self.index.compact(generation.name)
        if not is_complete:
            raise IndexUnavailable(
                "a copy of the store is unavailable, and its files hold erased text until it returns"
            )

    def _end(self, record: ErasureRecord, hashes: frozenset[str], compaction: Compaction) -> None:
        ledger = self.index.ledger
        newest = ledger.erasure(record.id)
        if newest is None or newest.version != record.version:
            return  # erased again meanwhile: the newer erasure is running and needs the hashes
        if self._was_written_again(newest):  # the names are kept for the next erasure
            ledger.save_erasure(
                replace(newest, state=ErasureState.FAILED, compaction=compaction, problem=WRITTEN_AGAIN)
            )
            return
        ledger.forget(record.id, hashes)
        ledger.save_erasure(replace(newest, state=ErasureState.DONE, compaction=compaction, problem=""))

    def _stored_again(self, ids: Collection[str]) -> set[str]:
        """Return those of the hidden companies `ids` that a generation has again."""
        found = set[str]()
        for generation in self.index.generations() if ids else []:
            with suppress(UnknownGeneration):
                found |= self.index.get(generation.name, [*ids]).keys()
        return found

    def _was_written_again(self, record: ErasureRecord) -> bool:
        """Return whether a generation stores another version than the tombstone left, even if it is a delete.

        If a company was written and deleted meanwhile, notes that were added after the search may have its names.
        """
        hidden = {record.version, *(result.version for result in record.results.values())}
        for generation in self.index.generations():
            with suppress(UnknownGeneration):
                if not hidden.issuperset(self.index.stored_versions(generation.name, [record.id]).values()):
                    return True
        return False

    def _saved(self, record: ErasureRecord) -> ErasureRecord:
        """Store a record, unless the company was erased again meanwhile."""
        newest = self.index.ledger.erasure(record.id)
        if newest is None or newest.version == record.version:
            self.index.ledger.save_erasure(record)
        return record

    def _note(self, records: Iterable[ErasureRecord], state: ErasureState, problem: str) -> None:
        for record in records:
            with suppress(SimilarityError):  # do not hide the first exception
                newest = self.index.ledger.erasure(record.id)
                if newest is not None and newest.state is ErasureState.RUNNING:
                    self.index.ledger.save_erasure(replace(newest, state=state, problem=problem))

    def _belongs_to_another(self, company_id: str, name: str) -> bool:
        """Return whether another company has the name in any generation; there need not be a live one."""
        for generation in self.index.generations():
            with suppress(UnknownGeneration):
                if set(self.index.resolve(generation.name, name)) - {company_id}:
                    return True
        return False


def _delete_at(now: datetime) -> int:
    return version_of(now, now=now, deleted=True)
