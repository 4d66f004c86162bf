"""Merges an index to one segment per shard, which removes replaced and deleted documents from the disk.

Elasticsearch keeps replaced and deleted documents as "soft deletes" while a copy of the shard may need
them to catch up (`index.soft_deletes`). The primary stores the progress of each copy in retention leases,
which it updates only every 30 seconds: a merge right after a delete therefore keeps the deleted document with its
text. So the merge is repeated after the leases have been updated. A copy on a node that is down delays this, for at
most 12 hours.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from elasticsearch import Elasticsearch

from similarity.index.elastic.connection import Cluster

MERGE_SECONDS = 6 * 3600
CATCH_UP_SECONDS = 75.0  # more than two updates of the leases
POLL_SECONDS = 0.5


def compact(
    cluster: Cluster,
    index: str,
    *,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> bool:
    """Merge each shard to one segment; return False if an unavailable copy kept deleted documents on the disk.

    Raises UnknownGeneration if the index was deleted.
    """
    with cluster.explained():
        client = cluster.client.options(request_timeout=MERGE_SECONDS)
        _merge(client, index)
        newest = _newest_operations(client, index)
        give_up = monotonic() + CATCH_UP_SECONDS
        if not _holds_deleted(client, index):
            return True
        while (is_held_back := _holds_back(client, index, newest)) and monotonic() < give_up:
            sleep(POLL_SECONDS)
        _merge(client, index)
    return not is_held_back


def _merge(client: Elasticsearch, index: str) -> None:
    client.indices.flush(index=index, wait_if_ongoing=True)
    client.indices.forcemerge(index=index, max_num_segments=1)
    client.indices.refresh(index=index)


def _holds_deleted(client: Elasticsearch, index: str) -> bool:
    return any(copy["docs"]["deleted"] for _, copy in _copies(client, index))


def _newest_operations(client: Elasticsearch, index: str) -> dict[str, int]:
    """Return the sequence number of the newest operation of each shard."""
    newest: dict[str, int] = {}
    for shard, copy in _copies(client, index):
        newest[shard] = max(newest.get(shard, -1), copy["seq_no"]["max_seq_no"])
    return newest


def _holds_back(client: Elasticsearch, index: str, newest: Mapping[str, int]) -> bool:
    """Return whether a retention lease of any copy still keeps operations up to the `newest`."""
    return any(
        lease["retaining_seq_no"] <= newest[shard]
        for shard, copy in _copies(client, index)
        for lease in copy["retention_leases"]["leases"]
    )


def _copies(client: Elasticsearch, index: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield shard number and statistics of each copy of each shard."""
    stats = client.indices.stats(index=index, level="shards", metric="docs")
    for shard, copies in stats["indices"][index]["shards"].items():
        for copy in copies:
            yield shard, copy
