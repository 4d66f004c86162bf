"""The erasure ledger in the embedded index's file: `former_names`, `erasures` and the key in `registry`."""

import json
from collections.abc import Collection, Mapping
from datetime import datetime

from similarity.index.ledger import ErasureRecord, ErasureState, erasure_members, erasure_of
from similarity.index.sqlite.connections import Connections


class SqliteLedger:
    """An `ErasureLedger` in the file of an embedded index."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def key(self) -> bytes:
        with self._connections.reading() as connection:
            return bytes(connection.execute("SELECT name_key FROM registry").fetchone()[0])

    def remember(self, hashes: Mapping[str, Collection[str]]) -> None:
        rows = [(company_id, each) for company_id, of_company in hashes.items() for each in of_company]
        with self._connections.writing() as connection:
            connection.executemany("INSERT OR IGNORE INTO former_names (id, hash) VALUES (?, ?)", rows)

    def remembered(self, company_id: str) -> frozenset[str]:
        with self._connections.reading() as connection:
            rows = connection.execute("SELECT hash FROM former_names WHERE id = ?", (company_id,))
            return frozenset(each for (each,) in rows)

    def forget(self, company_id: str, hashes: Collection[str]) -> None:
        with self._connections.writing() as connection:
            connection.executemany(
                "DELETE FROM former_names WHERE id = ? AND hash = ?", [(company_id, each) for each in hashes]
            )

    def save_erasure(self, record: ErasureRecord) -> None:
        with self._connections.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO erasures (id, state, record) VALUES (?, ?, ?)",
                (record.id, record.state.value, json.dumps(erasure_members(record))),
            )

    def erasure(self, company_id: str) -> ErasureRecord | None:
        with self._connections.reading() as connection:
            row = connection.execute("SELECT record FROM erasures WHERE id = ?", (company_id,)).fetchone()
        return erasure_of(json.loads(row[0])) if row else None

    def running_erasures(self) -> list[ErasureRecord]:
        with self._connections.reading() as connection:
            rows = connection.execute(
                "SELECT record FROM erasures WHERE state = ? ORDER BY id", (ErasureState.RUNNING.value,)
            ).fetchall()
        return [erasure_of(json.loads(record)) for (record,) in rows]

    def purge_erasures(self, *, before: datetime) -> None:
        with self._connections.writing() as connection:
            records = connection.execute("SELECT record FROM erasures WHERE state = ?", (ErasureState.DONE.value,))
            old = [each.id for (record,) in records if (each := erasure_of(json.loads(record))).requested_at < before]
            connection.executemany("DELETE FROM erasures WHERE id = ?", [(each,) for each in old])
