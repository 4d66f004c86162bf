"""Fixtures of real servers, offered to all tests by tests/conftest.py.

A server starts when the first test asks for it and serves the whole session: tests must not rely on an
empty one, so each uses index names of its own.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import prism as prism_server
from tests.servers.connection import Connection
from tests.servers.elasticsearch import ElasticsearchCluster
from tests.servers.elasticsearch_installation import DEFAULT_VERSION, unavailable_reason
from tests.servers.flink import FLINK, FlinkCluster
from tests.servers.kafka import KAFKA, KafkaBroker
from tests.servers.prism import Prism


def elasticsearch_version() -> str:
    """The version that the tests start: `ELASTICSEARCH_VERSION`, else the newest known."""
    return os.environ.get("ELASTICSEARCH_VERSION", DEFAULT_VERSION)


# In memory where that is possible: making an index flushes to the disk again and again, and every test makes some.
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 4 << 30


def elasticsearch_nodes() -> int:
    """How many nodes the tests start: `ELASTICSEARCH_NODES`, else one."""
    return int(os.environ.get("ELASTICSEARCH_NODES", "1"))


@pytest.fixture(scope="session")
def startable_elasticsearch() -> str:
    """The version of Elasticsearch to start here; a test that asks for it is "not run" where none can be."""
    version = elasticsearch_version()
    if reason := unavailable_reason(version):
        pytest.skip(reason)
    return version


@pytest.fixture(scope="session")
def elasticsearch_connection(
    startable_elasticsearch: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Connection]:
    """A cluster of this session's own."""
    in_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES
    parent = MEMORY if in_memory else tmp_path_factory.mktemp("elasticsearch")
    nodes = elasticsearch_nodes()
    heap = "1g" if nodes == 1 else "512m"
    with (
        tempfile.TemporaryDirectory(prefix="elasticsearch-", dir=parent) as folder,
        ElasticsearchCluster(Path(folder), version=startable_elasticsearch, nodes=nodes, heap=heap) as cluster,
    ):
        yield cluster.connection


@pytest.fixture(scope="session")
def elasticsearch_url(elasticsearch_connection: Connection) -> str:
    """The address of `elasticsearch_connection`; use the connection itself where credentials may be needed."""
    return elasticsearch_connection.url


@pytest.fixture(scope="session")
def startable_kafka() -> None:
    """A test that asks for it is "not run" where no Kafka broker can be started."""
    if reason := KAFKA.unavailable_reason():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def kafka(startable_kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker of this session's own. Tests that stop or kill one start another; each uses topics of its own."""
    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def startable_prism() -> None:
    """A test that asks for it is "not run" where no Prism can be started."""
    if reason := prism_server.unavailable_reason():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def startable_flink() -> None:
    """A test that asks for it is "not run" where no Flink can be started."""
    if reason := FLINK.unavailable_reason():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def prism(startable_prism: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prism]:
    """A Prism of this session's own."""
    with Prism(tmp_path_factory.mktemp("prism")) as prism:
        yield prism


@pytest.fixture(scope="session")
def flink(startable_flink: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkCluster]:
    """A Flink cluster of this session's own, with two TaskManagers. A test that killed one starts it again."""
    with FlinkCluster(tmp_path_factory.mktemp("flink")) as flink:
        yield flink
