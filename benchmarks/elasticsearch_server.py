"""Starts the server that `benchmarks.elasticsearch` measures; reads its memory and disk."""

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from similarity.errors import SimilarityError
from similarity.index.elastic import ElasticSettings
from similarity.index.elastic.connection import Cluster

MIB = 1 << 20
SECONDS_TO_START = 1_800


@dataclass(frozen=True, kw_only=True)
class Server:
    """An Elasticsearch server. `pid` is None if it runs on another machine or as another user."""

    hosts: tuple[str, ...]
    version: str
    pid: int | None

    def memory(self) -> dict[str, float]:
        """Return MiB of the process: its own (heap and buffers), and of mapped files; {} if unknown."""
        status = Path(f"/proc/{self.pid}/status")
        if self.pid is None or not status.exists():
            return {}
        lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
        return {what: int(lines[f"Rss{what.title()}"].split()[0]) / 1024 for what in ("anon", "file")}


@contextmanager
def running_server(url: str | None, folder: Path, *, heap: str) -> Iterator[Server]:
    """Yield the server at `url`, else a new one, whose data stay in `folder` for the next run."""
    if url:
        yield Server(hosts=(url,), version=server_version(url), pid=None)
        return
    from tests.servers.elasticsearch import ElasticsearchCluster

    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix="server-") as temporary:
        settings = {"path.data": str(folder / "data")}
        cluster = ElasticsearchCluster(Path(temporary) / "cluster", heap=heap, settings=settings)
        try:
            # After a kill, the server indexes again all documents that were not flushed.
            cluster.start(timeout=SECONDS_TO_START)
            yield Server(hosts=cluster.urls, version=server_version(cluster.url), pid=cluster.nodes[0].pid)
            cluster.stop()
        finally:
            cluster.kill()


def server_version(url: str) -> str:
    """Return the version of the cluster's nodes."""
    with open_cluster(ElasticSettings(hosts=(url,), name="benchmark")) as cluster:
        nodes = cluster.retrying.nodes.info(filter_path="nodes.*.version")["nodes"]
    return "/".join(sorted({node["version"] for node in nodes.values()}))


@contextmanager
def open_cluster(settings: ElasticSettings) -> Iterator[Cluster]:
    """Yield a cluster; close its connections afterwards."""
    cluster = Cluster(settings)
    try:
        yield cluster
    finally:
        cluster.close()


def index_of(cluster: Cluster, generation: str) -> str:
    """Return the name of the Elasticsearch index that holds a generation."""
    names = cluster.retrying.indices.get_alias(index=f"{cluster.settings.name}-{generation}-*")
    if len(names) != 1:
        raise SimilarityError(f"{generation} is in {len(names)} indices, not one; begin with an empty --work folder")
    return str(next(iter(names)))


def storage(cluster: Cluster, index: str) -> dict[str, float]:
    """Return documents, segments, bytes on disk, and bytes of the vectors' files, as the server counts them.

    `vectors_vex` is the graph, `_veq` and `_veb` the quantised vectors (int8, int4; binary), `_vec` the whole ones.
    """
    answer = cluster.retrying.indices.stats(index=index, metric=["store", "segments", "docs", "dense_vector"])
    found: Mapping[str, Any] = answer["_all"]["primaries"]
    off_heap: Mapping[str, Any] = found["dense_vector"].get("off_heap", {})
    return {
        "documents": found["docs"]["count"],
        "segments": found["segments"]["count"],
        "disk": found["store"]["size_in_bytes"],
        **{f"vectors_{file}": off_heap.get(f"total_{file}_size_bytes", 0) for file in ("vec", "veq", "veb", "vex")},
    }


def machine(version: str) -> dict[str, object]:
    """Return the processor, memory and versions that the figures belong to, and the date."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text(encoding="utf-8").splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return {
        "processor": names[0] if names else platform.machine(),
        "cpus": os.cpu_count(),
        "memory": f"{memory:.0f} GiB",
        "elasticsearch": version,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def load_average() -> float:
    """Return the load average of the last minute, of the benchmark and all other processes."""
    return round(os.getloadavg()[0], 1)
