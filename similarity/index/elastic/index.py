"""The production index: Elasticsearch 9.2 or newer, with one Elasticsearch index per generation.

    settings    nodes, login, vector options                      registry        states and leases (no I/O)
    mapping     mapping and settings; their check (no I/O)        registry_store  the registry's document
    documents   documents <-> sources (no I/O)                    writing         bulk requests, outcomes
    queries     query bodies (no I/O)                             reading         get, scan, resolve, find, stats
    connection  the client and its errors                         search          the nearest companies
    compaction  merge without deleted documents                   ledger          the ledger of erasures

A reader reads the live generation from the registry, and then names its Elasticsearch index in every request: an
alias could be switched to another index in the middle of a query. All state is on the cluster, so any number of
processes may use it at the same time.
"""

import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from similarity.company import Company, DeletedCompany, EmbeddedCompany, Vector, lowest_version_at, utc_now
from similarity.errors import IndexUnavailable, UnknownGeneration
from similarity.index import validation
from similarity.index.attributes import AttributeSchema
from similarity.index.comparing import refuse_lagging
from similarity.index.elastic import compaction, reading, search
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.ledger import ElasticLedger
from similarity.index.elastic.mapping import (
    building_settings,
    generation_mapping,
    mapping_differences,
    serving_settings,
    settings_differences,
)
from similarity.index.elastic.registry import Entry, Registry
from similarity.index.elastic.registry_store import RegistryStore
from similarity.index.elastic.settings import ElasticSettings
from similarity.index.elastic.writing import BulkWriter, Target
from similarity.index.filters import FieldFilter
from similarity.index.protocol import (
    ROLLBACK_SECONDS,
    DocumentVersion,
    Generation,
    GenerationState,
    GenerationStats,
    Lease,
    SimilarCompanies,
    WriteResult,
)

HEALTH_SECONDS = 120
"""How long `promote` waits until all copies of the index are assigned."""


class ElasticIndex:
    """A `CompanyIndex` on the cluster of `settings`. No request is sent before the first call of a method.

    `clock`: returns the time by which leases expire; the clocks of all processes must agree within about a second.
    """

    def __init__(self, settings: ElasticSettings, *, clock: Callable[[], datetime] = utc_now) -> None:
        self.settings = settings
        self._clock = clock
        self._cluster = Cluster(settings)
        self._registry = RegistryStore(self._cluster, clock=clock)
        self._writer = BulkWriter(self._cluster)
        self.ledger = ElasticLedger(self._cluster)
        # Entries of the registry by generation. The name of an Elasticsearch index is never used again, so a cached
        # entry is valid until its index is deleted.
        self._cached_entries: dict[str, Entry] = {}
        self._checked_indices: set[str] = set()  # the indices whose mapping was checked by this process

    @property
    def location(self) -> str:
        return self.settings.name

    def create_generation(self, generation: Generation) -> None:
        index = f"{self.settings.name}-{generation.name}-{secrets.token_hex(4)}"
        entry = Entry(record=generation, index=index, vectors=self.settings.vectors)
        self._registry.change(lambda registry: registry.add(entry))
        self._create_index(entry)
        self._delete_retired_indices()

    def generations(self) -> list[Generation]:
        return self._registry.read().generations()

    def live(self) -> Generation:
        entry = self._registry.read().live()
        self._cached_entries[entry.record.name] = entry
        return entry.record

    def write_targets(self) -> list[Generation]:
        return [generation for generation in self.generations() if generation.state in validation.WRITTEN_STATES]

    def register_candidate(self, name: str) -> None:
        entry = self._registry.read().named(name)
        if entry.record.state is GenerationState.BUILDING:
            # The index is missing if a process was killed after it wrote the entry and before it created the index.
            self._create_index(entry)
        self._registry.change(lambda registry: registry.register_candidate(name))

    def withdraw_candidate(self, name: str) -> None:
        self._registry.change(lambda registry: registry.withdraw_candidate(name))

    def promote(self, name: str, *, lease: Lease | None = None) -> None:
        """Make the generation live, after its index has the settings for serving and all its copies are assigned."""
        registry = self._registry.read()
        registry.promote(name, lease=lease, now=self._clock())  # raises if the promotion is not allowed
        self._make_ready(registry.named(name))
        self._registry.change(lambda registry: registry.promote(name, lease=lease, now=self._clock()))

    def rollback(self, *, force: bool = False, wait: float = ROLLBACK_SECONDS) -> Generation:
        registry = self._registry.read()
        live, target = registry.live(), registry.before_live()
        if not force:
            refuse_lagging(self, live=live.record.name, target=target.record.name, wait=wait)
        changed = self._registry.change(
            lambda newest: newest.roll_back(live=live.index, target=target.index, now=self._clock())
        )
        return changed.live().record

    def retire(self, name: str) -> None:
        """Remove the generation from the registry, then delete its index.

        If the process is killed in between, a later `create_generation` or `retire` deletes the index.
        """
        self._registry.change(lambda registry: registry.retire(name))
        self._cached_entries.pop(name, None)
        self._delete_retired_indices()

    def retired_bundles(self) -> frozenset[str]:
        return frozenset(self._registry.read().retired_bundles)

    def attributes(self) -> AttributeSchema:
        return self._registry.read().schema

    def declare(self, schema: AttributeSchema) -> None:
        if schema != AttributeSchema():
            self._registry.change(lambda registry: registry.declare(schema))

    def revision(self) -> int:
        return self._registry.read().revision

    def take_lease(self, name: str, *, holder: str, seconds: float) -> Lease:
        changed = self._registry.change(
            lambda registry: registry.take_lease(name, holder=holder, seconds=seconds, now=self._clock())
        )
        return _lease_in(changed, name)

    def renew_lease(self, lease: Lease, *, seconds: float, acknowledged: int | None = None) -> Lease:
        changed = self._registry.change(
            lambda registry: registry.renew_lease(lease, seconds=seconds, acknowledged=acknowledged, now=self._clock())
        )
        return _lease_in(changed, lease.name)

    def release_lease(self, lease: Lease) -> None:
        self._registry.change(lambda registry: registry.release_lease(lease))

    def leases(self) -> list[Lease]:
        return self._registry.read().current_leases(now=self._clock())

    def stats(self, generation: str) -> GenerationStats:
        """Return the counts, including every write that was acknowledged before the call: the index is refreshed."""
        with self._entry(generation) as entry:
            self._cluster.refresh(entry.index)
            return reading.stats(self._cluster, entry.index, entry.record.languages)

    def upsert(self, generation: str, documents: Sequence[EmbeddedCompany | DeletedCompany]) -> list[WriteResult]:
        with self._entry(generation) as entry:
            validation.refuse_other_encoders(entry.record, documents)
            if not documents:
                return []
            if entry.index not in self._checked_indices:
                self._check_mapping(entry)
            target = Target(index=entry.index, alias=_write_alias(entry.index), dimension=entry.record.dimension)
            return self._writer.write(target, documents)

    def get(self, generation: str, ids: Collection[str]) -> dict[str, EmbeddedCompany]:
        with self._entry(generation) as entry:
            return reading.companies_with_ids(self._cluster, entry.index, ids, entry.record)

    def stored_versions(self, generation: str, ids: Collection[str]) -> dict[str, int]:
        with self._entry(generation) as entry:
            return reading.versions_with_ids(self._cluster, entry.index, ids)

    def resolve(self, generation: str, reference: str) -> list[str]:
        return self.resolve_many(generation, [reference])[reference]

    def resolve_many(self, generation: str, references: Collection[str]) -> dict[str, list[str]]:
        with self._entry(generation) as entry:
            return reading.resolve_many(self._cluster, entry.index, references)

    def find(self, generation: str, query: str, *, limit: int = 10) -> list[Company]:
        with self._entry(generation) as entry:
            return reading.find(self._cluster, entry.index, query, limit=limit)

    def find_misspelled(self, generation: str, query: str, *, limit: int = 10) -> list[Company]:
        with self._entry(generation) as entry:
            return reading.find_misspelled(self._cluster, entry.index, query, limit=limit)

    def similar(
        self,
        generation: str,
        vector: Vector,
        *,
        k: int,
        filters: Sequence[FieldFilter] = (),
        exclude: Collection[str] = (),
    ) -> SimilarCompanies:
        with self._entry(generation) as entry:
            return search.nearest(self._cluster, entry, vector, k=k, filters=filters, exclude=frozenset(exclude))

    def count_nearer(
        self,
        generation: str,
        vector: Vector,
        *,
        score: float,
        filters: Sequence[FieldFilter] = (),
        exclude: Collection[str] = (),
    ) -> int | None:
        with self._entry(generation) as entry:
            return search.count_nearer(
                self._cluster, entry, vector, score=score, filters=filters, exclude=frozenset(exclude)
            )

    def field_values(self, generation: str, field: str, among: Collection[str] = ()) -> list[str]:
        with self._entry(generation) as entry:
            return reading.field_values(self._cluster, entry.index, field, among)

    def scan(
        self, generation: str, *, after: str = "", batch_size: int = 1000
    ) -> Iterator[list[EmbeddedCompany | DeletedCompany]]:
        """Yield all documents, with every write that was acknowledged before the call; at most 1,000 per batch."""
        validation.check_batch_size(batch_size)
        with self._entry(generation) as entry:
            self._cluster.refresh(entry.index)
        return reading.pages(self._cluster, entry.index, after=after, batch_size=batch_size, generation=entry.record)

    def versions(
        self, generation: str, *, after: str = "", batch_size: int = 10_000
    ) -> Iterator[list[DocumentVersion]]:
        """Yield the version of every document, with every write that was acknowledged before the call."""
        validation.check_batch_size(batch_size)
        with self._entry(generation) as entry:
            self._cluster.refresh(entry.index)
        return reading.version_pages(self._cluster, entry.index, after=after, batch_size=batch_size)

    def compact(self, generation: str) -> bool:
        """Merge each shard to one segment, which is fastest to search, and remove replaced and deleted documents.

        The removal takes half a minute, or up to 12 hours if a copy is on a node that is down (see `compaction`).
        """
        with self._entry(generation) as entry:
            return compaction.compact(self._cluster, entry.index)

    def purge_deleted(self, generation: str, *, before: datetime) -> int:
        total = 0
        with self._entry(generation) as entry:
            while True:
                self._cluster.refresh(entry.index)
                tombstones = reading.tombstones_before(self._cluster, entry.index, lowest_version_at(before))
                purged = self._writer.forget(_write_alias(entry.index), tombstones) if tombstones else 0
                total += purged
                if not purged:
                    return total

    def close(self) -> None:
        self._cluster.close()

    @contextmanager
    def _entry(self, generation: str) -> Iterator[Entry]:
        """Yield the registry entry of a generation, from the cache if possible.

        If the block raises UnknownGeneration, the index was deleted, and the entry is removed from the cache.
        """
        entry = self._cached_entries.get(generation)
        if entry is None:
            entry = self._cached_entries[generation] = self._registry.read().named(generation)
        try:
            yield entry
        except UnknownGeneration:
            self._cached_entries.pop(generation, None)
            raise

    def _create_index(self, entry: Entry) -> None:
        self._cluster.create_index(
            entry.index,
            aliases={_write_alias(entry.index): {}},
            # Searches depend on the kind of graph in the registry entry, so the index must be of that kind.
            mappings=generation_mapping(entry.record, vectors=entry.vectors),
            settings=building_settings(self.settings),
        )

    def _check_mapping(self, entry: Entry) -> None:
        """Raise IndexUnavailable if the index does not have the mapping of its generation."""
        with self._cluster.explained():
            found = self._cluster.retrying.indices.get_mapping(index=entry.index)[entry.index]["mappings"]
        problems = mapping_differences(found, entry.record)
        if problems:
            listed = "; ".join(map(str, problems[:3]))
            raise IndexUnavailable(
                f"the mapping of {entry.index} was changed: {listed}. Nothing is written to it; fill a new generation "
                "(similarity generations copy) and retire this one"
            )
        self._checked_indices.add(entry.index)

    def _make_ready(self, entry: Entry) -> None:
        """Check the mapping, apply the settings for serving, and wait until all copies are assigned."""
        self._check_mapping(entry)
        settings = serving_settings(self.settings)
        with self._cluster.explained():
            client = self._cluster.client.options(request_timeout=HEALTH_SECONDS + 10)
            client.indices.put_settings(index=entry.index, settings=settings)
            client.indices.refresh(index=entry.index)
            health = client.options(ignore_status=408).cluster.health(
                index=entry.index, wait_for_status="green", timeout=f"{HEALTH_SECONDS}s"
            )
            found = client.indices.get_settings(index=entry.index)[entry.index]["settings"]["index"]
        if health["status"] != "green":
            raise IndexUnavailable(
                f"{entry.index} is {health['status']} after {HEALTH_SECONDS} s, so it was not promoted: not all copies "
                "are assigned; GET _cluster/allocation/explain gives the reason; or set fewer replicas"
            )
        problems = settings_differences(found, settings["index"])
        if problems:
            raise IndexUnavailable(
                f"{entry.index} was not promoted, because its settings could not be restored: {problems[0]}; remove "
                "whatever changes them (an index template or another program), and promote it again"
            )

    def _delete_retired_indices(self) -> None:
        for index in self._registry.read().retired:
            with self._cluster.explained():
                self._cluster.client.options(ignore_status=404).indices.delete(index=index)
            self._registry.change(partial(Registry.deleted, index=index))


def _write_alias(index: str) -> str:
    """Return the alias for writes. A late write to the name of a deleted index would create that index again."""
    return f"{index}-write"


def _lease_in(registry: Registry, name: str) -> Lease:
    """Return the lease `name`, which was just stored in `registry`."""
    lease = registry.lease(name)
    if lease is None:
        raise IndexUnavailable(f"the lease {name!r} was stored, but the registry does not have it; start again")
    return lease
