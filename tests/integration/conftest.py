"""Real Elasticsearch: one server for all tests, and for each test an index name of its own."""

import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.elasticsearch_place import Place
from tests.servers.connection import Connection
from tests.servers.elasticsearch import QUICK_START, ElasticsearchCluster
from tests.servers.fixtures import MEMORY


@pytest.fixture(scope="module")
def module_place(elasticsearch_connection: Connection) -> Iterator[Callable[[], Place]]:
    """A function that makes places which serve a whole module: for what takes long to fill."""
    with ExitStack() as places:

        def make() -> Place:
            place = Place(elasticsearch_connection, f"t{secrets.token_hex(6)}")
            places.callback(place.remove)
            return place

        yield make


@pytest.fixture
def place(elasticsearch_connection: Connection) -> Iterator[Place]:
    """An index name that nothing was written under."""
    place = Place(elasticsearch_connection, f"t{secrets.token_hex(6)}")
    yield place
    place.remove()


@pytest.fixture(scope="session")
def secured_cluster(
    startable_elasticsearch: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ElasticsearchCluster]:
    """A node with HTTPS and a password, whose files the tests may look into."""
    parent = MEMORY if MEMORY.is_dir() else tmp_path_factory.mktemp("secured")
    with (
        tempfile.TemporaryDirectory(prefix="elasticsearch-secured-", dir=parent) as folder,
        ElasticsearchCluster(
            Path(folder), version=startable_elasticsearch, secured=True, java_options=QUICK_START
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def secured_place(secured_cluster: ElasticsearchCluster) -> Iterator[Place]:
    """An index name on the secured node."""
    place = Place(secured_cluster.connection, f"t{secrets.token_hex(6)}")
    yield place
    place.remove()
