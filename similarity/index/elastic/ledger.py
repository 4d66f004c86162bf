"""The erasure ledger on a cluster: the index `<name>-names`, created when it is first needed.

Searches refresh first, so that each sees all earlier writes. This is cheap enough, because former names and erasures
are rare.
"""

import base64
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Any

from elasticsearch import NotFoundError

from similarity.errors import UnknownGeneration
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.documents import document_id
from similarity.index.elastic.mapping import Body, small_index
from similarity.index.ledger import (
    KEY_BYTES,
    UNREADABLE,
    DamagedErasure,
    ErasureRecord,
    ErasureState,
    erasure_members,
    erasure_of,
    readable_erasures,
)

KEY_DOCUMENT = "key"
CONFLICT = 409
PAGE = 1_000
BODY = small_index(
    {
        **{name: {"type": "keyword"} for name in ("kind", "id", "hash", "state")},
        "record": {"type": "object", "enabled": False},
    }
)


class ElasticLedger:
    """An `ErasureLedger` on the cluster of an index."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._index = f"{cluster.settings.name}-names"
        self._key = b""
        self._is_ready = False

    def key(self) -> bytes:
        if not self._key:
            self._make_ready()
            made = {"kind": "key", "record": {"key": base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}}
            with self._cluster.explained():
                client = self._cluster.retrying.options(ignore_status=CONFLICT)
                client.create(index=self._index, id=KEY_DOCUMENT, document=made)
                found = self._cluster.retrying.get(index=self._index, id=KEY_DOCUMENT)
            self._key = base64.b64decode(found["_source"]["record"]["key"])
        return self._key

    def remember(self, hashes: Mapping[str, Collection[str]]) -> None:
        self._make_ready()
        lines: list[Body] = []
        for company_id, of_company in hashes.items():
            for each in of_company:
                lines.append({"index": {"_id": document_id("name", company_id, each)}})
                lines.append({"kind": "name", "id": company_id, "hash": each})
        self._cluster.bulk(self._index, lines)

    def remembered(self, company_id: str) -> frozenset[str]:
        return frozenset(source["hash"] for source in self._found({"kind": "name", "id": company_id}))

    def forget(self, company_id: str, hashes: Collection[str]) -> None:
        self._make_ready()
        self._delete(document_id("name", company_id, each) for each in hashes)

    def save_erasure(self, record: ErasureRecord) -> None:
        self._make_ready()
        with self._cluster.explained():
            self._cluster.retrying.index(
                index=self._index,
                id=document_id("erasure", record.id),
                document={
                    "kind": "erasure",
                    "id": record.id,
                    "state": record.state.value,
                    "record": erasure_members(record),
                },
            )

    def erasure(self, company_id: str) -> ErasureRecord | None:
        with self._cluster.explained():
            try:
                found = self._cluster.retrying.get(index=self._index, id=document_id("erasure", company_id))
            except NotFoundError:
                return None
        return _readable(found["_source"])

    def erased(self, company_ids: Collection[str]) -> frozenset[str]:
        if not company_ids:
            return frozenset()
        ids = {document_id("erasure", each): each for each in company_ids}
        with self._cluster.explained():
            answer = self._cluster.retrying.mget(index=self._index, ids=list(ids), source=False)
        # Without the index each document is an error.
        return frozenset(ids[each["_id"]] for each in answer["docs"] if each.get("found"))

    def running_erasures(self) -> list[ErasureRecord]:
        return list(self._erasures(ErasureState.RUNNING))

    def purge_erasures(self, *, before: datetime) -> None:
        done = self._erasures(ErasureState.DONE)
        self._delete(document_id("erasure", record.id) for record in done if record.requested_at < before)

    def _erasures(self, state: ErasureState) -> Iterator[ErasureRecord]:
        return readable_erasures(self._found({"kind": "erasure", "state": state.value}), _readable)

    def _make_ready(self) -> None:
        if not self._is_ready:
            self._cluster.create_index(self._index, **BODY)  # leaves an existing index as it is
            self._is_ready = True

    def _found(self, terms: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        """Yield every source with these values, by company id; none if the index does not exist."""
        try:
            self._cluster.refresh(self._index)
        except UnknownGeneration:
            return
        query: Body = {
            "query": {"bool": {"filter": [{"term": {field: value}} for field, value in terms.items()]}},
            "sort": [{"id": "asc"}, {"hash": {"order": "asc", "missing": "_first"}}],
            "size": PAGE,
        }
        for hit in chain.from_iterable(self._cluster.pages(self._index, query)):
            yield hit["_source"]

    def _delete(self, documents: Iterable[str]) -> None:
        self._cluster.bulk(self._index, [{"delete": {"_id": each}} for each in documents])


def _readable(source: Mapping[str, Any]) -> ErasureRecord:
    """Return the erasure of a document. Raises DamagedErasure if another program changed its record."""
    try:
        return erasure_of(source["record"])
    except UNREADABLE as error:
        raise DamagedErasure.of(source["id"], f"its record cannot be read: {error!s:.200}") from error
