"""The SQLite index: one file, searched exactly in memory. It needs no server.

Threads of a process and processes of a machine may use the file at the same time: writes are short transactions that
wait for each other, and each read sees the newest commit, so a promotion by another process is effective from the next
request on. The file must be on a local disk. For more than a few hundred thousand companies, use Elasticsearch.

    schema           tables and migrations            rows        documents <-> rows
    connections      transactions                     writing     upsert, purge, sweep
    generations      the state machine                reading     get, scan, stats
    search           exact search                     words       resolve, find, full-text search
    matrix           the vectors in memory            filters     filters as conditions on `lookups`
    leases           leases of writers and re-embeds  ledger      the erasure ledger
    attributes       declared types of attributes     vocabulary  corrects typing errors
    checksums        checksums of rows                records     tables with a checksum of each row
    checking         finding damage                   backup      copies while in use
    write_ahead_log  watching and emptying the log    compaction  removing deleted data
    checkpoints      noticing other programs' writes  files       recognising, migrating, errors
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import TypeAlias, TypeVar

from similarity.company import Company, DeletedCompany, EmbeddedCompany, Vector, utc_now
from similarity.index import validation
from similarity.index.attributes import AttributeSchema
from similarity.index.comparing import refuse_lagging
from similarity.index.filters import FieldFilter
from similarity.index.protocol import (
    ROLLBACK_SECONDS,
    DocumentVersion,
    Generation,
    GenerationStats,
    Lease,
    SimilarCompanies,
    WriteResult,
)
from similarity.index.sqlite import attributes, checking, generations, leases, reading, words, writing
from similarity.index.sqlite.backup import staged_copy
from similarity.index.sqlite.compaction import rewrite
from similarity.index.sqlite.connections import Connections
from similarity.index.sqlite.filters import conditions, require_passing
from similarity.index.sqlite.generations import StoredGeneration
from similarity.index.sqlite.ledger import SqliteLedger
from similarity.index.sqlite.rows import DocumentRow
from similarity.index.sqlite.schema import INDEX_FILE
from similarity.index.sqlite.search import ExactSearch
from similarity.index.sqlite.vocabulary import Vocabulary
from similarity.settings import followed

# Documents per transaction; other writers then wait for at most about a quarter of a second.
BATCH_DOCUMENTS = 2000

Document: TypeAlias = EmbeddedCompany | DeletedCompany
Item = TypeVar("Item", Document, DocumentVersion)
OnCopy: TypeAlias = Callable[[list[Generation]], None]
"""Called with the generations in a copy of the index."""
DocumentPages: TypeAlias = Iterator[list[Document]]
VersionPages: TypeAlias = Iterator[list[DocumentVersion]]


class SqliteIndex:
    """A `CompanyIndex` in the file `path`, which is created with its folder if it does not exist.

    `busy_timeout`: how many seconds a write waits for the writes of other processes. `clock`: returns the time, with
    its zone, by which leases expire and promotions are recorded.

    Raises:
        IndexUnavailable: the file cannot be used; the message says why and what to do.
    """

    def __init__(
        self, path: str | Path, *, busy_timeout: float = 30.0, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self.path = Path(followed(str(path)))
        self._clock = clock
        self._busy_timeout = busy_timeout
        self._connections = Connections(self.path, INDEX_FILE, busy_timeout=busy_timeout)
        self._search = ExactSearch()
        self._vocabulary = Vocabulary()
        self.ledger = SqliteLedger(self._connections)

    @property
    def location(self) -> str:
        return str(self.path)

    def create_generation(self, generation: Generation) -> None:
        with self._connections.writing() as connection:
            generations.add(connection, generation)

    def generations(self) -> list[Generation]:
        with self._connections.reading() as connection:
            return [stored.record for stored in generations.every(connection)]

    def live(self) -> Generation:
        with self._connections.reading() as connection:
            return generations.live(connection).record

    def write_targets(self) -> list[Generation]:
        return [generation for generation in self.generations() if generation.state in validation.WRITTEN_STATES]

    def register_candidate(self, name: str) -> None:
        with self._connections.writing() as connection:
            generations.register_candidate(connection, name)

    def withdraw_candidate(self, name: str) -> None:
        with self._connections.writing() as connection:
            generations.withdraw_candidate(connection, name)

    def promote(self, name: str, *, lease: Lease | None = None) -> None:
        with self._connections.writing() as connection:
            now = self._clock()
            if lease is not None:
                leases.require_held(connection, lease, now=now)
            generations.promote(connection, name, now=now)

    def rollback(self, *, force: bool = False, wait: float = ROLLBACK_SECONDS) -> Generation:
        with self._connections.reading() as connection:
            live, target = generations.live(connection), generations.before_live(connection)
        if not force:
            refuse_lagging(self, live=live.record.name, target=target.record.name, wait=wait)
        with self._connections.writing() as connection:
            return generations.rollback(connection, from_number=live.number, to_number=target.number, now=self._clock())

    def retire(self, name: str) -> None:
        """Remove the generation, then its documents in short transactions. A later call deletes what a crash left."""
        with self._connections.writing() as connection:
            generations.retire(connection, name)
        self._repeat(writing.sweep)

    def retired_bundles(self) -> frozenset[str]:
        with self._connections.reading() as connection:
            return frozenset(generations.RETIRED_BUNDLES.read(connection))

    def attributes(self) -> AttributeSchema:
        with self._connections.reading() as connection:
            return attributes.read(connection)

    def declare(self, schema: AttributeSchema) -> None:
        if schema != AttributeSchema():
            with self._connections.writing() as connection:
                attributes.declare(connection, schema)

    def revision(self) -> int:
        with self._connections.reading() as connection:
            return generations.counters(connection)[0]

    def take_lease(self, name: str, *, holder: str, seconds: float) -> Lease:
        validation.check_lease_request(name, holder, seconds)
        with self._connections.writing() as connection:
            return leases.take(connection, name, holder=holder, seconds=seconds, now=self._clock())

    def renew_lease(self, lease: Lease, *, seconds: float, acknowledged: int | None = None) -> Lease:
        validation.check_lease_request(lease.name, lease.holder, seconds)
        with self._connections.writing() as connection:
            return leases.renew(connection, lease, seconds=seconds, acknowledged=acknowledged, now=self._clock())

    def release_lease(self, lease: Lease) -> None:
        with self._connections.writing() as connection:
            leases.release(connection, lease)

    def leases(self) -> list[Lease]:
        with self._connections.reading() as connection:
            return leases.held(connection, now=self._clock())

    def stats(self, generation: str) -> GenerationStats:
        with self._reading(generation) as (connection, stored):
            return reading.stats(connection, stored)

    def upsert(self, generation: str, documents: Sequence[Document]) -> list[WriteResult]:
        with self._connections.reading() as connection:
            target = generations.named(connection, generation)
        validation.refuse_other_encoders(target.record, documents)
        results: list[WriteResult] = []
        for start in range(0, len(documents), BATCH_DOCUMENTS):
            results += self._write(target, documents[start : start + BATCH_DOCUMENTS])
        return results

    def get(self, generation: str, ids: Collection[str]) -> dict[str, EmbeddedCompany]:
        with self._reading(generation) as (connection, stored):
            found = reading.documents_with_ids(connection, stored, ids)
            self._versions(connection, stored, set(ids).difference(found))  # raises if damage hides one of them
            return found

    def stored_versions(self, generation: str, ids: Collection[str]) -> dict[str, int]:
        with self._reading(generation) as (connection, stored):
            return self._versions(connection, stored, ids)

    def resolve(self, generation: str, reference: str) -> list[str]:
        return self.resolve_many(generation, [reference])[reference]

    def resolve_many(self, generation: str, references: Collection[str]) -> dict[str, list[str]]:
        with self._reading(generation) as (connection, stored):
            found = words.resolve(connection, stored, references)
            # A reference that resolves to nothing may be an id that damage hides: then this raises.
            self._versions(connection, stored, [reference for reference, ids in found.items() if not ids])
            return found

    def find(self, generation: str, query: str, *, limit: int = 10) -> list[Company]:
        with self._reading(generation) as (connection, stored):
            return words.find(connection, stored, query, limit=limit)

    def find_misspelled(self, generation: str, query: str, *, limit: int = 10) -> list[Company]:
        with self._reading(generation) as (connection, stored):
            return words.find_misspelled(connection, stored, self._vocabulary, query, limit=limit)

    def similar(
        self,
        generation: str,
        vector: Vector,
        *,
        k: int,
        filters: Sequence[FieldFilter] = (),
        exclude: Collection[str] = (),
    ) -> SimilarCompanies:
        filtered = conditions(filters)
        with self._connections.reading() as connection:
            neighbours = self._search.nearest(connection, generation, vector, k=k, conditions=filtered, exclude=exclude)
            hits = reading.companies(connection, {each.document_number: each.score for each in neighbours})
            require_passing(filtered, [hit.company for hit in hits])
        return SimilarCompanies(hits=tuple(hits), approximate=False)

    def count_nearer(
        self,
        generation: str,
        vector: Vector,
        *,
        score: float,
        filters: Sequence[FieldFilter] = (),
        exclude: Collection[str] = (),
    ) -> int:
        with self._connections.reading() as connection:
            return self._search.count_above(
                connection, generation, vector, score, conditions=conditions(filters), exclude=exclude
            )

    def field_values(self, generation: str, field: str, among: Collection[str] = ()) -> list[str]:
        with self._reading(generation) as (connection, stored):
            return reading.field_values(connection, stored, field, among)

    def scan(self, generation: str, *, after: str = "", batch_size: int = 1000) -> DocumentPages:
        """Yield all documents. Each batch is a transaction of its own, so later writes may or may not be included."""
        return self._pages(generation, reading.documents_after, after=after, batch_size=batch_size)

    def versions(self, generation: str, *, after: str = "", batch_size: int = 10_000) -> VersionPages:
        return self._pages(generation, reading.versions_after, after=after, batch_size=batch_size)

    def compact(self, generation: str) -> bool:
        """Rewrite the whole file, which all generations share. Writers wait meanwhile, readers do not.

        Data that was deleted before this call is then neither in the file nor in its write-ahead log.
        """
        with self._connections.reading() as connection:
            generations.named(connection, generation)
        self._repeat(writing.sweep)
        with self._connections.borrowed() as connection:
            # Merge the full-text index: until then it only marks the words of deleted companies as deleted.
            connection.execute("INSERT INTO words (words) VALUES ('optimize')")
            rewrite(connection, path=self.path)
        return True

    def purge_deleted(self, generation: str, *, before: datetime) -> int:
        with self._connections.reading() as connection:
            stored = generations.named(connection, generation)
        return self._repeat(lambda connection: writing.purge_tombstones(connection, stored, before=before))

    def damage(self) -> list[str]:
        """Return a line for each damage, about a hundred at most. Writers wait while the full-text index is checked."""
        with self._connections.reading() as connection:
            found = checking.damage(connection)
        return found + checking.damaged_words(self.path, busy_timeout=self._busy_timeout)

    def backup(self, path: str | Path, *, overwrite: bool = False, before_named: OnCopy = lambda _: None) -> None:
        """Copy the index while it is in use, check the copy, call `before_named`, and then name the copy `path`.

        Raises:
            InvalidInput: `refuse_target` refuses the file; for example it exists, and `overwrite` is False.
            IndexUnavailable: the index cannot be read or is damaged.
        """
        with (
            self._connections.borrowed() as connection,
            staged_copy(
                connection,
                kind="index",
                source=self.path,
                target=Path(path),
                overwrite=overwrite,
                before_named=lambda copy: before_named([stored.record for stored in generations.every(copy)]),
            ) as give_name,
        ):
            give_name()

    def close(self) -> None:
        self._connections.close()
        self._search.clear()

    @contextmanager
    def _reading(self, name: str) -> Iterator[tuple[Connection, StoredGeneration]]:
        with self._connections.reading() as connection:
            yield connection, generations.named(connection, name)

    def _write(self, target: StoredGeneration, documents: Sequence[Document]) -> list[WriteResult]:
        # Before the transaction, because other writers wait for its end.
        prepared = [writing.prepare(document, dimension=target.record.dimension) for document in documents]
        rows = [row for row in prepared if isinstance(row, DocumentRow)]
        with self._connections.writing() as connection:
            generation = generations.current(connection, target)
            stored = writing.read_stored(connection, generation, {row.id for row in rows})
            self._search.require_unknown(generation, {row.id for row in rows}.difference(stored))
            written = iter(writing.write(connection, generation, rows, stored))
        return [next(written) if isinstance(row, DocumentRow) else row for row in prepared]

    def _versions(self, connection: Connection, generation: StoredGeneration, ids: Collection[str]) -> dict[str, int]:
        """Return the stored versions of `ids`, by id. Raises DamagedRow if damage hides one."""
        found = reading.versions_with_ids(connection, generation, ids) if ids else {}
        self._search.require_unknown(generation, set(ids).difference(found))
        return found

    def _pages(
        self, generation: str, read: Callable[..., list[Item]], *, after: str, batch_size: int
    ) -> Iterator[list[Item]]:
        # Not a generator, so that an invalid argument raises at once and not at the first batch.
        validation.check_batch_size(batch_size)
        with self._connections.reading() as connection:
            stored = generations.named(connection, generation)
        return self._next_pages(stored, read, after=after, batch_size=batch_size)

    def _next_pages(
        self, stored: StoredGeneration, read: Callable[..., list[Item]], *, after: str, batch_size: int
    ) -> Iterator[list[Item]]:
        while True:
            with self._connections.reading() as connection:
                page = read(connection, generations.current(connection, stored), after=after, limit=batch_size)
            if page:
                yield page
            if len(page) < batch_size:
                return
            after = page[-1].id

    def _repeat(self, step: Callable[[Connection], int]) -> int:
        """Run a step, each time in a transaction, until it returns 0; return the sum of its results."""

        def once() -> int:
            with self._connections.writing() as connection:
                return step(connection)

        return sum(iter(once, 0))
