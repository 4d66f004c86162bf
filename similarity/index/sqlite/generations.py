"""Generations of the embedded index: the state machine that `protocol` draws, one transaction a step."""

import re
import sqlite3
from dataclasses import dataclass
from datetime import datetime

from similarity.errors import GenerationConflict, InvalidInput, NoLiveGeneration, UnknownGeneration
from similarity.index.protocol import Calibration, Generation, GenerationState
from similarity.index.sqlite.rows import Row, microseconds, moment

NAME_PATTERN = re.compile(r"[a-z0-9-]{1,64}")
COLUMNS = (
    "number, sequence, purged, name, encoder_id, bundle_id, dimension, created_at, state, slope, intercept, promoted_at"
)
WRITTEN_STATES = (GenerationState.CANDIDATE, GenerationState.LIVE, GenerationState.PREVIOUS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGeneration:
    """A generation and what the file counts for it; `number` is never given to another one."""

    number: int
    sequence: int
    purged: int
    record: Generation


def add(connection: sqlite3.Connection, generation: Generation) -> None:
    """Adds an empty generation in state building.

    Raises:
        InvalidInput: its name, dimension or state cannot be stored.
        GenerationConflict: the name is taken.
    """
    if not NAME_PATTERN.fullmatch(generation.name):
        raise InvalidInput(f"generation name {generation.name!r:.80} must be 1-64 of a-z, 0-9 and '-'")
    if generation.dimension < 1:
        raise InvalidInput(f"a generation needs a dimension of at least 1, not {generation.dimension}")
    if generation.state is not GenerationState.BUILDING:
        raise InvalidInput(f"a new generation is building, not {generation.state}; register and promote it later")
    if connection.execute("SELECT 1 FROM generations WHERE name = ?", (generation.name,)).fetchone():
        raise GenerationConflict(f"generation {generation.name!r} exists already; choose another name or retire it")
    calibration = generation.calibration
    connection.execute(
        "INSERT INTO generations (name, encoder_id, bundle_id, dimension, created_at, state, slope, intercept) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            generation.name,
            generation.encoder_id,
            generation.bundle_id,
            generation.dimension,
            microseconds(generation.created_at),
            generation.state.value,
            calibration.slope if calibration else None,
            calibration.intercept if calibration else None,
        ),
    )


def every(connection: sqlite3.Connection) -> list[StoredGeneration]:
    """All generations, oldest first."""
    rows = connection.execute(f"SELECT {COLUMNS} FROM generations ORDER BY created_at, number")
    return [_stored(row) for row in rows]


def named(connection: sqlite3.Connection, name: str) -> StoredGeneration:
    """The generation of this name. UnknownGeneration if there is none."""
    row = connection.execute(f"SELECT {COLUMNS} FROM generations WHERE name = ?", (name,)).fetchone()
    if row is None:
        known = ", ".join(stored.record.name for stored in every(connection)) or "none"
        raise UnknownGeneration(f"there is no generation {name!r:.80}; this index holds: {known}")
    return _stored(row)


def live(connection: sqlite3.Connection) -> StoredGeneration:
    """The live generation. NoLiveGeneration if there is none yet."""
    found = _live(connection)
    if found is None:
        raise NoLiveGeneration("this index has no live generation yet; ingest companies, then promote what they are in")
    return found


def register_candidate(connection: sqlite3.Connection, name: str) -> None:
    """building -> candidate. GenerationConflict from any other state."""
    generation = named(connection, name)
    _require(generation, GenerationState.BUILDING, "be registered as candidate")
    _set_state(connection, generation, GenerationState.CANDIDATE)


def promote(connection: sqlite3.Connection, name: str, *, now: datetime) -> None:
    """candidate -> live, and the live one, if any, -> previous. GenerationConflict from any other state."""
    generation = named(connection, name)
    _require(generation, GenerationState.CANDIDATE, "be promoted")
    _go_live(connection, generation, replacing=_live(connection), now=now)


def rollback(connection: sqlite3.Connection, *, force: bool, now: datetime) -> Generation:
    """The generation that was live before becomes live again. GenerationConflict if it lacks changes."""
    current = live(connection)
    row = connection.execute(
        f"SELECT {COLUMNS} FROM generations WHERE state = ? ORDER BY promotion DESC LIMIT 1",
        (GenerationState.PREVIOUS.value,),
    ).fetchone()
    if row is None:
        raise GenerationConflict(
            f"no generation was live before {current.record.name!r}; there is nothing to go back to"
        )
    target = _stored(row)
    lagging = 0 if force else _lagging(connection, current, target)
    if lagging:
        raise GenerationConflict(
            f"generation {target.record.name!r} lacks the newest version of {lagging:,} documents of "
            f"{current.record.name!r}; write them to it first, or roll back with force to serve the older ones"
        )
    _go_live(connection, target, replacing=current, now=now)
    return named(connection, target.record.name).record


def retire(connection: sqlite3.Connection, name: str) -> None:
    """Makes a generation vanish at once; its documents are for `sweep`. GenerationConflict if it is live."""
    generation = named(connection, name)
    if generation.record.state is GenerationState.LIVE:
        raise GenerationConflict(f"generation {name!r} is live; promote another or roll back before retiring it")
    connection.execute("DELETE FROM generations WHERE number = ?", (generation.number,))
    connection.execute("INSERT INTO retired (number) VALUES (?)", (generation.number,))


def _go_live(
    connection: sqlite3.Connection, generation: StoredGeneration, *, replacing: StoredGeneration | None, now: datetime
) -> None:
    if replacing is not None:
        _set_state(connection, replacing, GenerationState.PREVIOUS)
    _set_state(connection, generation, GenerationState.LIVE)
    connection.execute(
        "UPDATE generations SET promoted_at = ?, promotion = (SELECT max(promotion) + 1 FROM generations) "
        "WHERE number = ?",
        (microseconds(now), generation.number),
    )


def _lagging(connection: sqlite3.Connection, ahead: StoredGeneration, behind: StoredGeneration) -> int:
    query = """
        SELECT count(*) FROM documents AS newer
        LEFT JOIN documents AS older ON older.generation = ? AND older.id = newer.id
        WHERE newer.generation = ? AND (older.version IS NULL OR older.version < newer.version)
    """
    return int(connection.execute(query, (behind.number, ahead.number)).fetchone()[0])


def _live(connection: sqlite3.Connection) -> StoredGeneration | None:
    row = connection.execute(
        f"SELECT {COLUMNS} FROM generations WHERE state = ?", (GenerationState.LIVE.value,)
    ).fetchone()
    return _stored(row) if row else None


def _require(generation: StoredGeneration, state: GenerationState, step: str) -> None:
    record = generation.record
    if record.state is not state:
        raise GenerationConflict(f"generation {record.name!r} is {record.state}; only a {state} one can {step}")


def _set_state(connection: sqlite3.Connection, generation: StoredGeneration, state: GenerationState) -> None:
    connection.execute("UPDATE generations SET state = ? WHERE number = ?", (state.value, generation.number))


def _stored(row: Row) -> StoredGeneration:
    number, sequence, purged, name, encoder_id, bundle_id, dimension, created, state, slope, intercept, promoted = row
    return StoredGeneration(
        number=number,
        sequence=sequence,
        purged=purged,
        record=Generation(
            name=name,
            encoder_id=encoder_id,
            bundle_id=bundle_id,
            dimension=dimension,
            created_at=moment(created),
            state=GenerationState(state),
            calibration=None if slope is None else Calibration(slope=slope, intercept=intercept),
            promoted_at=None if promoted is None else moment(promoted),
        ),
    )
