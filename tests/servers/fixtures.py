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

from tests.servers.connection import Connection, external_cluster
from tests.servers.elasticsearch import ElasticsearchCluster
from tests.servers.elasticsearch_installation import DEFAULT_VERSION, unavailable_reason


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
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Connection]:
    """The cluster that `ELASTICSEARCH_URL` names, else one of this session's own."""
    if external := external_cluster():
        yield external
        return
    version = request.getfixturevalue("startable_elasticsearch")
    in_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES
    parent = MEMORY if in_memory else tmp_path_factory.mktemp("elasticsearch")
    nodes = elasticsearch_nodes()
    heap = "1g" if nodes == 1 else "512m"
    with (
        tempfile.TemporaryDirectory(prefix="elasticsearch-", dir=parent) as folder,
        ElasticsearchCluster(Path(folder), version=version, nodes=nodes, heap=heap) as cluster,
    ):
        yield cluster.connection


@pytest.fixture(scope="session")
def elasticsearch_url(elasticsearch_connection: Connection) -> str:
    """The address of `elasticsearch_connection`; use the connection itself where credentials may be needed."""
    return elasticsearch_connection.url
