"""Generations of the SQLite index and their state machine (`index.protocol`). Each step is one transaction."""

import json
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from similarity.errors import UnknownGeneration
from similarity.index import validation
from similarity.index.protocol import Generation, GenerationState
from similarity.index.sqlite.checksums import checksum
from similarity.index.sqlite.files import DamagedRow
from similarity.index.sqlite.migrations import GENERATION_COLUMNS, UNSEALED
from similarity.index.sqlite.records import Records
from similarity.index.sqlite.rows import microseconds, moment
from similarity.model.calibration import Calibration
from similarity.model.ranker import ranker_to_json

COLUMNS = f"{GENERATION_COLUMNS}, ranker, checksum"
RETIRED_BUNDLES = Records("retired_bundles", key=("bundle_id",), values=(), decode=lambda row: str(row[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGeneration:
    """A generation with its counters.

    `number`: never reused, unlike the name. `sequence`: number of its write transactions. `purged`: highest sequence of
    a tombstone that was purged. `companies`: number of its companies.
    """

    number: int
    sequence: int
    purged: int
    companies: int
    record: Generation


def add(connection: sqlite3.Connection, generation: Generation) -> None:
    """Add an empty generation in state building.

    Raises:
        InvalidInput: its name, dimension or state cannot be stored.
        GenerationConflict: there is a generation with this name.
    """
    validation.check_new_generation(generation)
    if connection.execute("SELECT 1 FROM generations WHERE name = ?", (generation.name,)).fetchone():
        raise validation.name_taken(generation.name)
    calibration = generation.calibration
    added = connection.execute(
        "INSERT INTO generations "
        "(name, encoder_id, bundle_id, dimension, created_at, state, slope, intercept, ranker, checksum) "
        f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, {UNSEALED})",
        (
            generation.name,
            generation.encoder_id,
            generation.bundle_id,
            generation.dimension,
            microseconds(generation.created_at),
            generation.state.value,
            calibration.slope if calibration else None,
            calibration.intercept if calibration else None,
            json.dumps(ranker_to_json(generation.ranker)),  # null, not NULL: `migrations.RANKERS_OF_NEW`
        ),
    )
    _seal(connection, added.lastrowid)


def every(connection: sqlite3.Connection) -> list[StoredGeneration]:
    """Return all generations, in the order in which they were added."""
    rows = connection.execute(f"SELECT {COLUMNS} FROM generations NOT INDEXED ORDER BY number")
    return [_stored(*row) for row in rows]


def named(connection: sqlite3.Connection, name: str) -> StoredGeneration:
    """Return the generation with this name. Raises UnknownGeneration if there is none."""
    # All rows (which are few) are read: a query by name would not find a row whose name is damaged.
    known = {stored.record.name: stored for stored in every(connection)}
    if name not in known:
        raise validation.unknown_generation(name, list(known))
    return known[name]


def current(connection: sqlite3.Connection, generation: StoredGeneration) -> StoredGeneration:
    """Return the present state of a generation that was read before.

    Raises:
        UnknownGeneration: it was retired, even if there is another with the same name now.
    """
    now = named(connection, generation.record.name)
    if now.number != generation.number:
        raise UnknownGeneration(f"generation {now.record.name!r} was retired and created again; start again")
    return now


def live(connection: sqlite3.Connection) -> StoredGeneration:
    """Return the live generation. Raises NoLiveGeneration if there is none yet."""
    found = _live(connection)
    if found is None:
        raise validation.no_live_generation()
    return found


def counters(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return two counters: changes of generations, which triggers count (`migrations`), and leases taken.

    Raises:
        DamagedRow: one of the counters is damaged.
    """
    row = connection.execute("SELECT revision, fence, revision + fence IS counted FROM registry").fetchone()
    if row is None or not row[2]:
        raise DamagedRow("the counters of registry differ from their sum")
    return row[0], row[1]


def change(connection: sqlite3.Connection, number: int, assignments: str, *values: object) -> None:
    """Update the row of a generation. `assignments` is SQL such as "state = ?", and `values` are its parameters."""
    connection.execute(
        f"UPDATE generations SET {assignments}, checksum = {UNSEALED} WHERE number = ?", (*values, number)
    )
    _seal(connection, number)


def register_candidate(connection: sqlite3.Connection, name: str) -> None:
    """Change a generation from building to candidate. Raises GenerationConflict if it is not building."""
    generation = named(connection, name)
    validation.require_state(generation.record, GenerationState.BUILDING, "be registered as candidate")
    _set_state(connection, generation, GenerationState.CANDIDATE)


def withdraw_candidate(connection: sqlite3.Connection, name: str) -> None:
    """Change a generation from candidate back to building. Raises GenerationConflict if it is not a candidate."""
    generation = named(connection, name)
    validation.require_state(generation.record, GenerationState.CANDIDATE, "be withdrawn")
    _set_state(connection, generation, GenerationState.BUILDING)


def promote(connection: sqlite3.Connection, name: str, *, now: datetime) -> None:
    """Change a generation from candidate to live, and the live one to previous.

    Raises GenerationConflict if it is not a candidate.
    """
    generation = named(connection, name)
    validation.require_state(generation.record, GenerationState.CANDIDATE, "be promoted")
    _go_live(connection, generation, replacing=_live(connection), now=now)


def before_live(connection: sqlite3.Connection) -> StoredGeneration:
    """Return the previous generation that was live most recently. Raises GenerationConflict if there is none."""
    current = live(connection)
    row = connection.execute(
        f"SELECT {COLUMNS} FROM generations WHERE state = ? ORDER BY promotion DESC LIMIT 1",
        (GenerationState.PREVIOUS.value,),
    ).fetchone()
    if row is None:
        raise validation.nothing_before(current.record.name)
    return _stored(*row)


def rollback(connection: sqlite3.Connection, *, from_number: int, to_number: int, now: datetime) -> Generation:
    """Make the generation that `before_live` returns live again, and return it.

    Raises GenerationConflict if `from_number` is no longer the live generation, or `to_number` not the one before it.
    """
    current, target = live(connection), before_live(connection)
    if (current.number, target.number) != (from_number, to_number):
        raise validation.generations_changed()
    _go_live(connection, target, replacing=current, now=now)
    return named(connection, target.record.name).record


def retire(connection: sqlite3.Connection, name: str) -> None:
    """Remove a generation; `writing.sweep` removes its documents later. Raises GenerationConflict if it is live."""
    generation = named(connection, name)
    if generation.record.state is GenerationState.LIVE:
        raise validation.live_retired(name)
    if generation.record.state is GenerationState.PREVIOUS:
        RETIRED_BUNDLES.write(connection, [(generation.record.bundle_id,)])
    connection.execute("DELETE FROM generations WHERE number = ?", (generation.number,))
    connection.execute("INSERT INTO retired (number) VALUES (?)", (generation.number,))


def _go_live(
    connection: sqlite3.Connection, generation: StoredGeneration, *, replacing: StoredGeneration | None, now: datetime
) -> None:
    if replacing is not None:
        _set_state(connection, replacing, GenerationState.PREVIOUS)
    _set_state(connection, generation, GenerationState.LIVE)
    change(
        connection,
        generation.number,
        "promoted_at = ?, promotion = (SELECT max(promotion) + 1 FROM generations)",
        microseconds(now),
    )


def _live(connection: sqlite3.Connection) -> StoredGeneration | None:
    return next((stored for stored in every(connection) if stored.record.state is GenerationState.LIVE), None)


def _set_state(connection: sqlite3.Connection, generation: StoredGeneration, state: GenerationState) -> None:
    change(connection, generation.number, "state = ?", state.value)


def _seal(connection: sqlite3.Connection, number: int | None) -> None:
    """Store the checksum of a generation's row, after the row was written."""
    row = connection.execute(f"SELECT {COLUMNS} FROM generations WHERE number = ?", (number,)).fetchone()
    connection.execute("UPDATE generations SET checksum = ? WHERE number = ?", (checksum(*row[:-1]), number))


# Every read of the index begins with these rows. A row that has changed in value or type is another key.
@lru_cache(maxsize=64, typed=True)
def _stored(*row: Any) -> StoredGeneration:
    *values, expected = row
    if checksum(*values) != expected:
        raise DamagedRow(f"the row of generation {row[5]!r:.80} differs from its checksum")
    number, sequence, purged, companies, promotion, name, encoder_id, bundle_id, dimension, *rest = values
    created, state, slope, intercept, promoted, ranker = rest
    return StoredGeneration(
        number=number,
        sequence=sequence,
        purged=purged,
        companies=companies,
        record=Generation(
            name=name,
            encoder_id=encoder_id,
            bundle_id=bundle_id,
            dimension=dimension,
            created_at=moment(created),
            state=GenerationState(state),
            calibration=None if slope is None else Calibration(slope=slope, intercept=intercept),
            promoted_at=None if promoted is None else moment(promoted),
            promotion=promotion,
            ranker=None if ranker is None else validation.stored_ranker(name, json.loads(ranker)),
        ),
    )
