"""Bulk writing: the status of every item is read, and every document gets one outcome.

A document is sent with its version as the external version. So Elasticsearch keeps the newest version, in whatever
order the documents arrive, and however often a request is repeated. Requests go to the write alias of the index with
`require_alias`: otherwise a bulk request to a deleted index would recreate it without our mapping.

    200, 201                   applied
    409                        the stored document decides: unchanged, superseded, rejected, or sent again
    429, any 5xx               sent again after a pause; failed after `write_seconds`
    lost or late response      sent again; a document that was applied is then unchanged
    400, 413 for the request   sent again in two halves; a single document is rejected
    400 for an item            rejected
    another status of an item  failed; for example a block on the index
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from elasticsearch import ApiError, AuthenticationException, AuthorizationException, TransportError

from similarity.backoff import backoff
from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.errors import IndexUnavailable, UnknownGeneration
from similarity.index.elastic.connection import BUSY, Cluster, error_text
from similarity.index.elastic.documents import same_content, source_of
from similarity.index.elastic.mapping import Body
from similarity.index.protocol import WriteOutcome, WriteResult
from similarity.index.validation import UnstorableDocument, check_document, same_version_reason

MAX_DOCUMENTS = 500
"""Maximum number of documents in one request."""
MAX_BYTES = 4_000_000
"""Maximum size of one request, unless its only document is larger."""
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
WRITTEN = (200, 201)


@dataclass(frozen=True, slots=True)
class Target:
    """An index to write to, its write alias, and the dimension of its vectors."""

    index: str
    alias: str
    dimension: int


@dataclass(frozen=True, slots=True)
class Item:
    """A document to send.

    `position`: its position in the caller's documents. `lines`: its two lines of the bulk request.
    """

    position: int
    id: str
    version: int
    source: Body
    lines: bytes


@dataclass(slots=True)
class _Batch:
    """The final results so far, by position. `trouble`: the last reason for which a document was not stored."""

    results: dict[int, WriteResult] = field(default_factory=dict)
    trouble: str = ""

    def finish(self, item: Item, outcome: WriteOutcome, reason: str = "", *, stored: int | None = None) -> None:
        self.results[item.position] = WriteResult(id=item.id, outcome=outcome, reason=reason, version=stored)


class BulkWriter:
    """Writes documents to one cluster. `sleep` and `monotonic` are for tests."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        max_documents: int = MAX_DOCUMENTS,
        max_bytes: int = MAX_BYTES,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._max_documents = max_documents
        self._max_bytes = max_bytes
        self._sleep = sleep
        self._monotonic = monotonic

    def write(self, target: Target, documents: Sequence[EmbeddedCompany | DeletedCompany]) -> list[WriteResult]:
        """Write documents and return one result per document, in order.

        Raises:
            UnknownGeneration: the index was deleted.
            IndexUnavailable: access was refused, or the cluster accepted none of the documents in time.
        """
        batch = _Batch()
        items = []
        for position, document in enumerate(documents):
            try:
                items.append(_item(position, document, target, packs_vectors=self._cluster.packs_vectors))
            except UnstorableDocument as problem:
                batch.results[position] = WriteResult(
                    id=document.id, outcome=WriteOutcome.REJECTED, reason=str(problem)
                )
        for wave in _waves(items):
            for chunk in self._chunks(wave):
                self._send_until_finished(target, chunk, batch)
        results = [batch.results[position] for position in range(len(documents))]
        if items and all(result.outcome is WriteOutcome.FAILED for result in results):
            raise IndexUnavailable(batch.trouble)
        return results

    def forget(self, alias: str, tombstones: Sequence[tuple[str, int]]) -> int:
        """Delete those of the tombstones (id, version) that no newer version has replaced; return how many."""
        operations: list[Body] = [
            {"delete": {"_id": company_id, "version": version, "version_type": "external_gte"}}
            for company_id, version in tombstones
        ]
        with self._cluster.explained():
            response = self._cluster.client.bulk(
                index=alias, operations=operations, require_alias=True, refresh=True, filter_path=["items.*.status"]
            )
        return sum(answer["delete"]["status"] in WRITTEN for answer in response["items"])

    def _send_until_finished(self, target: Target, chunk: list[Item], batch: _Batch) -> None:
        """Send a chunk until each item has a final result; items without one after `write_seconds` are FAILED."""
        give_up = self._monotonic() + self._cluster.settings.write_seconds
        for pause in backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS):
            chunk = self._send(target, chunk, batch)
            if not chunk:
                return
            if self._monotonic() + pause > give_up:
                for item in chunk:
                    batch.finish(item, WriteOutcome.FAILED, batch.trouble)
                return
            self._sleep(pause)

    def _send(self, target: Target, items: list[Item], batch: _Batch) -> list[Item]:
        """Send items and add the final results to `batch`; return the items to send again."""
        # The client passes bytes on unchanged, although its types do not allow bytes.
        lines = cast("list[Mapping[str, Any]]", [item.lines for item in items])
        try:
            response = self._cluster.client.bulk(
                index=target.alias,
                operations=lines,
                require_alias=True,
                refresh=self._cluster.settings.visible_at_once,
                filter_path=["items.*.status", "items.*.error"],
            )
        except (AuthenticationException, AuthorizationException) as error:
            raise self._cluster.api_problem(error) from error
        except ApiError as error:
            return self._after_refusal(target, items, batch, error)
        except TransportError as error:
            batch.trouble = str(self._cluster.unreachable(error))
            return items
        return self._finish_items(target, items, response["items"], batch)

    def _after_refusal(self, target: Target, items: list[Item], batch: _Batch, error: ApiError) -> list[Item]:
        """Act on an error of the whole request; return the items to send again."""
        problem = self._cluster.api_problem(error)
        if error.status_code in BUSY or error.status_code >= 500:
            batch.trouble = str(problem)
            return items
        if error.status_code not in {400, 413}:
            raise problem from error
        if len(items) == 1:
            batch.finish(items[0], WriteOutcome.REJECTED, str(problem))
            return []
        middle = len(items) // 2
        return [*self._send(target, items[:middle], batch), *self._send(target, items[middle:], batch)]

    def _finish_items(
        self, target: Target, items: list[Item], answers: Sequence[Mapping[str, Any]], batch: _Batch
    ) -> list[Item]:
        """Add the final results to `batch`; return the items to send again. `answers`: one per item."""
        conflicts, again = [], []
        for item, answer in zip(items, answers, strict=True):
            status, error = answer["index"]["status"], answer["index"].get("error")
            if status in WRITTEN:
                batch.finish(item, WriteOutcome.APPLIED, stored=item.version)
            elif status == 409:
                conflicts.append(item)
            elif status == 400:
                batch.finish(item, WriteOutcome.REJECTED, ": ".join(error_text(error)))
            else:
                problem = self._cluster.problem(status, error)
                if isinstance(problem, UnknownGeneration):
                    raise problem
                batch.trouble = str(problem)
                if status in BUSY or status >= 500:
                    again.append(item)
                else:
                    batch.finish(item, WriteOutcome.FAILED, batch.trouble)
        return [*again, *self._look_up(target, conflicts, batch)]

    def _look_up(self, target: Target, conflicts: list[Item], batch: _Batch) -> list[Item]:
        """Read the stored documents of items with a version conflict and add the final results to `batch`.

        Return the items to send again.
        """
        if not conflicts:
            return []
        try:
            stored = self._cluster.documents(target.index, [item.id for item in conflicts], vectors=False)
        except IndexUnavailable as problem:
            batch.trouble = str(problem)
            return conflicts
        again = []
        for item in conflicts:
            held = stored.get(item.id)
            if held is None or held["version"] < item.version:
                # The conflicting document was a tombstone that has just been purged, or this copy does not have it yet.
                batch.trouble = f"{item.id!r} was changed by another process at the same time"
                again.append(item)
            elif held["version"] > item.version:
                batch.finish(item, WriteOutcome.SUPERSEDED, stored=held["version"])
            elif same_content(item.source, held):
                batch.finish(item, WriteOutcome.UNCHANGED, stored=item.version)
            else:
                batch.finish(item, WriteOutcome.REJECTED, same_version_reason(item.version), stored=item.version)
        return again

    def _chunks(self, items: Sequence[Item]) -> Iterator[list[Item]]:
        chunk: list[Item] = []
        size = 0
        for item in items:
            if chunk and (len(chunk) == self._max_documents or size + len(item.lines) > self._max_bytes):
                yield chunk
                chunk, size = [], 0
            chunk.append(item)
            size += len(item.lines)
        if chunk:
            yield chunk


def _item(position: int, document: EmbeddedCompany | DeletedCompany, target: Target, *, packs_vectors: bool) -> Item:
    check_document(document, dimension=target.dimension)
    source = source_of(document, packs_vectors=packs_vectors)
    action = {"index": {"_id": document.id, "version": document.version, "version_type": "external"}}
    lines = f"{_json(action)}\n{_json(source)}".encode()
    return Item(position, document.id, document.version, source, lines)


def _waves(items: Sequence[Item]) -> list[list[Item]]:
    """Return lists of items: the first item of each id, then the second item of each id, and so on.

    The lists are written one after the other, so documents of one id are written in their order.
    """
    waves: dict[int, list[Item]] = defaultdict(list)
    seen = Counter[str]()
    for item in items:
        waves[seen[item.id]].append(item)
        seen[item.id] += 1
    return list(waves.values())


def _json(value: Body) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
