"""The registry: all generations, leases and counters of one index, and the state transitions (no I/O).

It is stored as one document (`registry_store`), so that each transition is one conditional write: two processes
cannot both promote, and no reader sees half a transition.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from similarity.errors import LeaseHeld, LeaseLost
from similarity.index import validation
from similarity.index.attributes import AttributeSchema, parse_schema
from similarity.index.elastic.settings import VectorType
from similarity.index.protocol import Generation, GenerationState, Lease
from similarity.model.calibration import Calibration
from similarity.model.ranker import ranker_to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A generation and the Elasticsearch index that holds it.

    `vectors`: its kind of graph.
    """

    record: Generation
    index: str
    vectors: VectorType = "int8_hnsw"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """The registry. `retired`: indices to be deleted. Methods return a changed registry.

    `attributes`: declared types of attributes, each `NAME:TYPE`. `size`: the attribute that is the size.
    `retired_bundles`: ids of the bundles of generations that were live and then retired.
    """

    revision: int = 0
    fence: int = 0
    promotions: int = 0
    entries: tuple[Entry, ...] = ()
    leases: tuple[Lease, ...] = ()
    retired: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    size: str = ""
    retired_bundles: tuple[str, ...] = ()

    def generations(self) -> list[Generation]:
        """Return all generations, in the order in which they were added."""
        return [entry.record for entry in self.entries]

    @property
    def schema(self) -> AttributeSchema:
        """The declared types of attributes."""
        return parse_schema(self.attributes, self.size)

    def declare(self, schema: AttributeSchema) -> "Registry":
        """Add declared types of attributes."""
        declared = self.schema.updated(schema)
        attributes = tuple(f"{name}:{each.text}" for name, each in sorted(declared.types.items()))
        return replace(self, attributes=attributes, size=declared.size)

    def named(self, name: str) -> Entry:
        """Return the entry of a generation. Raises UnknownGeneration if there is none."""
        for entry in self.entries:
            if entry.record.name == name:
                return entry
        raise validation.unknown_generation(name, [generation.name for generation in self.generations()])

    def live(self) -> Entry:
        """Return the entry of the live generation. Raises NoLiveGeneration if there is none."""
        entry = self._live()
        if entry is None:
            raise validation.no_live_generation()
        return entry

    def add(self, added: Entry) -> "Registry":
        """Add a new generation in state building."""
        validation.check_new_generation(added.record)
        if any(entry.record.name == added.record.name for entry in self.entries):
            raise validation.name_taken(added.record.name)
        return self._changed(entries=(*self.entries, added))

    def register_candidate(self, name: str) -> "Registry":
        """building -> candidate."""
        entry = self.named(name)
        validation.require_state(entry.record, GenerationState.BUILDING, "be registered as candidate")
        return self._with(_in_state(entry, GenerationState.CANDIDATE))

    def withdraw_candidate(self, name: str) -> "Registry":
        """candidate -> building."""
        entry = self.named(name)
        validation.require_state(entry.record, GenerationState.CANDIDATE, "be withdrawn")
        return self._with(_in_state(entry, GenerationState.BUILDING))

    def promote(self, name: str, *, lease: Lease | None, now: datetime) -> "Registry":
        """candidate -> live, and the live one, if any, -> previous."""
        if lease is not None:
            self.check_held(lease, now=now)
        entry = self.named(name)
        validation.require_state(entry.record, GenerationState.CANDIDATE, "be promoted")
        return self._going_live(entry, now=now)

    def before_live(self) -> Entry:
        """Return the most recent previous generation. Raises GenerationConflict if there is none."""
        live = self.live()
        previous = [entry for entry in self.entries if entry.record.state is GenerationState.PREVIOUS]
        if not previous:
            raise validation.nothing_before(live.record.name)
        return max(previous, key=lambda entry: entry.record.promotion)

    def roll_back(self, *, live: str, target: str, now: datetime) -> "Registry":
        """Make `target` live again. Raises GenerationConflict if the generations changed since they were compared."""
        if (self.live().index, self.before_live().index) != (live, target):
            raise validation.generations_changed()
        return self._going_live(self.before_live(), now=now)

    def retire(self, name: str) -> "Registry":
        """Remove a generation, note its index for deletion and, if it was live, its bundle."""
        entry = self.named(name)
        if entry.record.state is GenerationState.LIVE:
            raise validation.live_retired(name)
        kept = tuple(each for each in self.entries if each is not entry)
        bundles = set(self.retired_bundles)
        if entry.record.state is GenerationState.PREVIOUS:
            bundles.add(entry.record.bundle_id)
        return self._changed(entries=kept, retired=(*self.retired, entry.index), retired_bundles=tuple(sorted(bundles)))

    def deleted(self, index: str) -> "Registry":
        """Remove the note of a deleted index."""
        return replace(self, retired=tuple(each for each in self.retired if each != index))

    def take_lease(self, name: str, *, holder: str, seconds: float, now: datetime) -> "Registry":
        """Take the lease with a new fence. Raises LeaseHeld if another holder has it."""
        validation.check_lease_request(name, holder, seconds)
        for lease in self.leases:
            if lease.name == name and lease.holder != holder and validation.is_held(lease, now=now):
                raise LeaseHeld(validation.lease_held_text(lease))
        taken = Lease(name=name, holder=holder, fence=self.fence + 1, expires_at=now + timedelta(seconds=seconds))
        return replace(self, fence=taken.fence, leases=(*self._other_leases(name), taken))

    def renew_lease(self, lease: Lease, *, seconds: float, acknowledged: int | None, now: datetime) -> "Registry":
        """Extend the lease. Raises LeaseLost if another holder has it, or it was released."""
        validation.check_lease_request(lease.name, lease.holder, seconds)
        held = self.lease(lease.name)
        if held is None or held.fence != lease.fence:
            raise LeaseLost(validation.lease_lost_text(lease))
        renewed = replace(
            held,
            expires_at=now + timedelta(seconds=seconds),
            acknowledged=held.acknowledged if acknowledged is None else acknowledged,
        )
        return replace(self, leases=(*self._other_leases(lease.name), renewed))

    def release_lease(self, lease: Lease) -> "Registry":
        """Release the lease if it is still held."""
        return replace(self, leases=tuple(held for held in self.leases if held.fence != lease.fence))

    def check_held(self, lease: Lease, *, now: datetime) -> None:
        """Raise LeaseLost unless the lease is held now."""
        held = self.lease(lease.name)
        if held is None or held.fence != lease.fence or not validation.is_held(held, now=now):
            raise LeaseLost(validation.lease_lost_text(lease))

    def lease(self, name: str) -> Lease | None:
        """Return the lease of this name, expired or not."""
        return next((lease for lease in self.leases if lease.name == name), None)

    def current_leases(self, *, now: datetime) -> list[Lease]:
        """Return the leases that have not expired, by name."""
        held = (lease for lease in self.leases if validation.is_held(lease, now=now))
        return sorted(held, key=lambda lease: lease.name)

    def without_old_leases(self, *, now: datetime) -> "Registry":
        """Remove leases that expired a day ago: each writer has a new name."""
        kept = tuple(lease for lease in self.leases if lease.expires_at > now - timedelta(days=1))
        return replace(self, leases=kept)

    def _live(self) -> Entry | None:
        return next((entry for entry in self.entries if entry.record.state is GenerationState.LIVE), None)

    def _going_live(self, entry: Entry, *, now: datetime) -> "Registry":
        current = self._live()
        entries = {each.index: each for each in self.entries}
        if current is not None:
            entries[current.index] = _in_state(current, GenerationState.PREVIOUS)
        record = replace(entry.record, state=GenerationState.LIVE, promoted_at=now, promotion=self.promotions + 1)
        entries[entry.index] = replace(entry, record=record)
        return self._changed(entries=tuple(entries.values()), promotions=self.promotions + 1)

    def _with(self, changed: Entry) -> "Registry":
        entries = tuple(changed if entry.index == changed.index else entry for entry in self.entries)
        return self._changed(entries=entries)

    def _changed(self, **fields: Any) -> "Registry":
        return replace(self, revision=self.revision + 1, **fields)

    def _other_leases(self, name: str) -> tuple[Lease, ...]:
        return tuple(lease for lease in self.leases if lease.name != name)


def to_source(registry: Registry) -> dict[str, Any]:
    """Return the registry as JSON values. A generation without a ranker can be read by earlier releases."""
    source = asdict(registry)
    for entry, stored in zip(registry.entries, source["entries"], strict=True):
        stored["promotion"] = stored["record"].pop("promotion")
        del stored["record"]["ranker"]
        if ranker := ranker_to_json(entry.record.ranker):
            stored["record"]["ranker"] = ranker
    return source


def from_source(source: Mapping[str, Any]) -> Registry:
    """Return the registry from the JSON of `to_source`, in which times are texts in ISO 8601."""
    return Registry(
        revision=source["revision"],
        fence=source["fence"],
        promotions=source["promotions"],
        entries=tuple(_entry(entry) for entry in source["entries"]),
        leases=tuple(
            Lease(**{**lease, "expires_at": datetime.fromisoformat(lease["expires_at"])}) for lease in source["leases"]
        ),
        retired=tuple(source["retired"]),
        attributes=tuple(source.get("attributes", ())),
        size=source.get("size", ""),
        retired_bundles=tuple(source.get("retired_bundles", ())),
    )


def _entry(source: Mapping[str, Any]) -> Entry:
    record = dict(source["record"])
    record["state"] = GenerationState(record["state"])
    record["created_at"] = datetime.fromisoformat(record["created_at"])
    record["promoted_at"] = datetime.fromisoformat(record["promoted_at"]) if record["promoted_at"] else None
    record["calibration"] = Calibration(**record["calibration"]) if record["calibration"] else None
    record["ranker"] = validation.stored_ranker(record["name"], record.get("ranker"))
    generation = Generation(**record, promotion=source["promotion"])
    return Entry(record=generation, index=source["index"], vectors=source["vectors"])


def _in_state(entry: Entry, state: GenerationState) -> Entry:
    return replace(entry, record=replace(entry.record, state=state))
