"""Leases in the SQLite index. Each function is called in one transaction.

`validation.is_held` decides whether a lease is held. The row of an expired lease remains until the lease is released or
taken over, so its holder can still renew it if no other holder took it meanwhile.
"""

import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from similarity.errors import LeaseHeld, LeaseLost
from similarity.index.protocol import Lease
from similarity.index.sqlite import generations
from similarity.index.sqlite.records import Records
from similarity.index.sqlite.rows import Row, microseconds, moment
from similarity.index.validation import is_held, lease_held_text, lease_lost_text


def _lease(row: Row) -> Lease:
    name, holder, fence, expires_at, acknowledged = row
    return Lease(name=name, holder=holder, fence=fence, expires_at=moment(expires_at), acknowledged=acknowledged)


LEASES = Records("leases", key=("name",), values=("holder", "fence", "expires_at", "acknowledged"), decode=_lease)


def take(connection: sqlite3.Connection, name: str, *, holder: str, seconds: float, now: datetime) -> Lease:
    """Return a new lease with a higher fence than any before. Raises LeaseHeld if another holder has it."""
    current = _stored(connection, name)
    if current and current.holder != holder and is_held(current, now=now):
        raise LeaseHeld(lease_held_text(current))
    connection.execute("UPDATE registry SET fence = fence + 1")
    _, fence = generations.counters(connection)
    return _store(connection, Lease(name=name, holder=holder, fence=fence, expires_at=_end(now, seconds)))


def renew(
    connection: sqlite3.Connection, lease: Lease, *, seconds: float, acknowledged: int | None, now: datetime
) -> Lease:
    """Return the lease with a later end. Raises LeaseLost if it was released or taken over."""
    current = _same(connection, lease)
    return _store(
        connection,
        replace(
            current,
            expires_at=_end(now, seconds),
            acknowledged=current.acknowledged if acknowledged is None else acknowledged,
        ),
    )


def release(connection: sqlite3.Connection, lease: Lease) -> None:
    """Delete the lease, unless another holder has taken it over."""
    connection.execute("DELETE FROM leases WHERE name = ? AND fence = ?", (lease.name, lease.fence))


def held(connection: sqlite3.Connection, *, now: datetime) -> list[Lease]:
    """Return the leases that have not expired, by name."""
    return [lease for lease in LEASES.read(connection, "ORDER BY name") if is_held(lease, now=now)]


def require_held(connection: sqlite3.Connection, lease: Lease, *, now: datetime) -> None:
    """Raise LeaseLost if the lease was released or taken over, or has expired."""
    if not is_held(_same(connection, lease), now=now):
        raise LeaseLost(lease_lost_text(lease))


def _same(connection: sqlite3.Connection, lease: Lease) -> Lease:
    """Return the stored lease. Raises LeaseLost if there is none, or it has another fence."""
    current = _stored(connection, lease.name)
    if current is None or current.fence != lease.fence:
        raise LeaseLost(lease_lost_text(lease))
    return current


def _stored(connection: sqlite3.Connection, name: str) -> Lease | None:
    return next(iter(LEASES.read(connection, "WHERE name = ?", (name,))), None)


def _store(connection: sqlite3.Connection, lease: Lease) -> Lease:
    row = (lease.name, lease.holder, lease.fence, microseconds(lease.expires_at), lease.acknowledged)
    LEASES.write(connection, [row])
    return lease


def _end(now: datetime, seconds: float) -> datetime:
    return now.astimezone(UTC) + timedelta(seconds=seconds)
