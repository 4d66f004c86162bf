from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from similarity.index.elastic.compaction import CATCH_UP_SECONDS, compact
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.settings import ElasticSettings


@dataclass
class Indices:
    """Stands in for the client's `indices`: a shard of two copies whose leases move when 30 seconds have passed."""

    deleted: int = 1
    leases_move: bool = True
    now: float = 0.0
    merges: list[float] = field(default_factory=list)
    is_complete: bool = False

    def flush(self, **_: Any) -> None:
        pass

    def refresh(self, **_: Any) -> None:
        pass

    def forcemerge(self, *, index: str, max_num_segments: int) -> None:
        assert max_num_segments == 1
        self.merges.append(self.now)
        if self.moved:
            self.deleted = 0

    def stats(self, *, index: str, level: str, metric: str) -> dict[str, Any]:
        leases = [{"retaining_seq_no": 10}, {"retaining_seq_no": 10 if self.moved else 9}]
        copy = {"docs": {"deleted": self.deleted}, "seq_no": {"max_seq_no": 9}, "retention_leases": {"leases": leases}}
        return {"indices": {index: {"shards": {"0": [copy, copy]}}}}

    @property
    def moved(self) -> bool:
        return self.leases_move and self.now >= 30

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with closing(Cluster(ElasticSettings(hosts=("http://localhost:9200",), name="companies"))) as cluster:
        monkeypatch.setattr(cluster.client, "options", lambda **_: cluster.client)
        yield cluster


def run(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, indices: Indices) -> Indices:
    monkeypatch.setattr(cluster.client, "indices", indices)
    indices.is_complete = compact(cluster, "companies-first-1", sleep=indices.sleep, monotonic=lambda: indices.now)
    return indices


def test_where_nothing_was_deleted_one_merge_is_enough(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    indices = run(cluster, monkeypatch, Indices(deleted=0))
    assert (indices.merges, indices.is_complete) == ([0], True)


def test_what_the_first_merge_left_goes_once_no_copy_asks_for_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    indices = run(cluster, monkeypatch, Indices())
    assert indices.merges == [0, 30]
    assert (indices.deleted, indices.is_complete) == (0, True)


def test_a_copy_that_is_away_is_not_waited_for_for_ever(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    indices = run(cluster, monkeypatch, Indices(leases_move=False))
    assert (indices.merges, indices.is_complete) == ([0, CATCH_UP_SECONDS], False)
