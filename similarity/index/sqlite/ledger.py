"""The erasure ledger of the SQLite index: `former_names`, `erasures`, and the secret of the hashes in `registry`."""

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from sqlite3 import Connection
from typing import Any

from similarity.index.ledger import (
    DamagedErasure,
    ErasureRecord,
    ErasureState,
    erasure_members,
    erasure_of,
    readable_erasures,
)
from similarity.index.sqlite.checksums import checksum
from similarity.index.sqlite.connections import Connections
from similarity.index.sqlite.files import DamagedRow, damaged_pages
from similarity.index.sqlite.records import Records
from similarity.index.sqlite.rows import Row


def _secret_of(row: Row) -> bytes:
    [secret] = row
    return bytes(secret)


def _erasure_of(row: Row) -> ErasureRecord:
    return erasure_of(json.loads(row[2]))


SECRETS = Records("registry", key=(), values=("name_key",), decode=_secret_of)
FORMER_NAMES = Records("former_names", key=("id", "hash"), values=(), decode=tuple)
ERASURES = Records("erasures", key=("id",), values=("state", "record"), decode=_erasure_of)
LEDGER_TABLES: tuple[Records[Any], ...] = (SECRETS, FORMER_NAMES, ERASURES)


class SqliteLedger:
    """An `ErasureLedger` in the file of an SQLite index."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def key(self) -> bytes:
        with self._connections.reading() as connection:
            secrets = SECRETS.read(connection)
            if not secrets:
                raise DamagedRow("registry has no row")
        return secrets[0]

    def remember(self, hashes: Mapping[str, Collection[str]]) -> None:
        with self._connections.writing() as connection:
            FORMER_NAMES.write(
                connection, [(company_id, each) for company_id, of_company in hashes.items() for each in of_company]
            )

    def remembered(self, company_id: str) -> frozenset[str]:
        with self._connections.reading() as connection:
            _require_undamaged_pages(connection)
            rows = FORMER_NAMES.stored(connection)
        # A damaged id hides its row from a query by id. So read all rows: the checksum shows which id was written.
        hashes = frozenset(each for _, each, expected in rows if checksum(company_id, each) == expected)
        for row in rows:
            if row[0] == company_id and row[1] not in hashes:
                raise DamagedErasure.of(company_id, "a hash of a name differs from its checksum")
        return hashes

    def forget(self, company_id: str, hashes: Collection[str]) -> None:
        with self._connections.writing() as connection:
            connection.executemany(
                "DELETE FROM former_names WHERE id = ? AND hash = ?", [(company_id, each) for each in hashes]
            )

    def save_erasure(self, record: ErasureRecord) -> None:
        with self._connections.writing() as connection:
            ERASURES.write(connection, [(record.id, record.state.value, json.dumps(erasure_members(record)))])
            # The write found the row through the index of ids; `running_erasures` reads the id in the row itself.
            if not ERASURES.read(connection, "NOT INDEXED WHERE id = ?", (record.id,)):
                raise DamagedRow(
                    f"the id in the erasures row {record.id!r:.140} differs from its index; run `similarity check`"
                )

    def erasure(self, company_id: str) -> ErasureRecord | None:
        with self._connections.reading() as connection:
            if rows := ERASURES.stored(connection, "WHERE id = ?", (company_id,)):
                return _readable(rows[0])
            # Damage to an id, or to the index of ids, hides a row from the query above.
            rows = ERASURES.stored(connection, "NOT INDEXED")
        if any(checksum(company_id, *values) == expected for _, *values, expected in rows):
            raise DamagedErasure.of(company_id, "a look-up by the id does not find its row")
        return None

    def erased(self, company_ids: Collection[str]) -> frozenset[str]:
        with self._connections.reading() as connection:
            query = "SELECT id FROM erasures WHERE id IN (SELECT value FROM json_each(?))"
            return frozenset(each for (each,) in connection.execute(query, (json.dumps(list(company_ids)),)))

    def running_erasures(self) -> list[ErasureRecord]:
        with self._connections.reading() as connection:
            rows = ERASURES.stored(connection, "NOT INDEXED ORDER BY id")
        return [each for each in readable_erasures(rows, _readable) if each.state is ErasureState.RUNNING]

    def purge_erasures(self, *, before: datetime) -> None:
        with self._connections.writing() as connection:
            records = readable_erasures(ERASURES.stored(connection, "NOT INDEXED"), _readable)
            old = [each.id for each in records if each.state is ErasureState.DONE and each.requested_at < before]
            connection.executemany("DELETE FROM erasures WHERE id = ?", [(each,) for each in old])


def _require_undamaged_pages(connection: Connection) -> None:
    """Raise DamagedRow if a page of `former_names` is damaged: checksums of rows do not show that rows are missing."""
    if found := next(damaged_pages(connection, "former_names"), ""):
        raise DamagedRow(f"the table former_names: {found:.200}")


def _readable(row: Row) -> ErasureRecord:
    """Return the erasure of a stored row. Raises DamagedErasure if it differs from what was written."""
    try:
        return ERASURES.record(row)
    except DamagedRow as error:
        raise DamagedErasure.of(row[0], error) from error
