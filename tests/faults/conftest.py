"""Real Elasticsearch to be broken on purpose: one node for all tests of single faults, with a proxy before it."""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from similarity.index.elastic import ElasticIndex, ElasticSettings
from tests.contract.steps import add_live
from tests.faults.fault_proxy import FaultProxy
from tests.servers.elasticsearch import QUICK_START, ElasticsearchCluster
from tests.servers.fixtures import MEMORY

LIVE = "first"


@contextmanager
def started(version: str, parent: Path, **options: Any) -> Iterator[ElasticsearchCluster]:
    """A node, its data in memory where there is such a place."""
    folder = tempfile.TemporaryDirectory(prefix="faults-", dir=MEMORY if MEMORY.is_dir() else parent)
    with folder as path, ElasticsearchCluster(Path(path), version=version, java_options=QUICK_START, **options) as node:
        yield node


@pytest.fixture(scope="session")
def cluster(startable_elasticsearch: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ElasticsearchCluster]:
    with started(startable_elasticsearch, tmp_path_factory.mktemp("faults")) as node:
        yield node


@pytest.fixture
def proxy(cluster: ElasticsearchCluster) -> Iterator[FaultProxy]:
    with FaultProxy(cluster.url, seed=1) as proxy:
        yield proxy


@pytest.fixture
def client(cluster: ElasticsearchCluster) -> Iterator[Elasticsearch]:
    with closing(Elasticsearch(**cluster.connection.client_arguments())) as client:
        yield client


@pytest.fixture
def settings(proxy: FaultProxy) -> ElasticSettings:
    """Of an index that nothing was written to, behind the proxy."""
    return ElasticSettings(hosts=(proxy.url,), name=f"t{secrets.token_hex(6)}", write_seconds=2)


@pytest.fixture
def index(settings: ElasticSettings) -> Iterator[ElasticIndex]:
    """With an empty live generation."""
    with closing(ElasticIndex(settings)) as index:
        add_live(index, LIVE)
        yield index
