"""Runs fault schedules on a real Elasticsearch, one after the other."""

import shutil
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from tests.faults.elasticsearch_faults import draw
from tests.faults.elasticsearch_schedule import Finished, run
from tests.servers.elasticsearch import QUICK_START, ElasticsearchCluster

HEAP = "512m"
# One bulk request is being written and one may wait: a third is refused, so that 429 is an everyday answer.
SMALL_QUEUE = {"thread_pool.write.size": 1, "thread_pool.write.queue_size": 1}
MEMORY_DISK = Path("/dev/shm")
BYTES_PER_NODE = 2_000_000_000


def run_campaign(seeds: Iterable[int], *, nodes: int, version: str, folder: Path) -> list[Finished]:
    """Runs the schedules of these seeds; their journals are kept in `folder`."""
    finished = []
    with Clusters(nodes=nodes, version=version) as clusters:
        for seed in seeds:
            finished.append(run(draw(seed, nodes=nodes), clusters.running(), folder / f"seed-{seed}"))
            if finished[-1].broken:
                clusters.discard()
    return finished


class Clusters:
    """One cluster at a time: started when it is first needed, and again after it was discarded."""

    def __init__(self, *, nodes: int, version: str) -> None:
        self._nodes, self._version = nodes, version
        self._opened = ExitStack()
        self._cluster: ElasticsearchCluster | None = None
        in_memory = MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free > nodes * BYTES_PER_NODE
        self._parent = MEMORY_DISK if in_memory else None

    def __enter__(self) -> "Clusters":
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def running(self) -> ElasticsearchCluster:
        """The cluster, started."""
        if self._cluster is None:
            folder = Path(self._opened.enter_context(tempfile.TemporaryDirectory(dir=self._parent)))
            cluster = ElasticsearchCluster(
                folder / "cluster",
                version=self._version,
                nodes=self._nodes,
                heap=HEAP,
                settings=SMALL_QUEUE,
                java_options=QUICK_START,
            )
            self._cluster = self._opened.enter_context(cluster)
        return self._cluster

    def discard(self) -> None:
        """Stops the cluster and removes its files."""
        self._cluster = None
        self._opened.close()
