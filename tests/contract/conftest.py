"""The stores that the contract tests run on. A new `CompanyIndex` is added here and nowhere else."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch

from similarity.index.elastic import ElasticIndex
from similarity.index.protocol import CompanyIndex
from similarity.index.sqlite import SqliteIndex
from tests.contract.clock import Clock
from tests.contract.steps import add_live
from tests.integration.elasticsearch_place import remove_indices, settings_at
from tests.servers.connection import Connection

Opener = Callable[[Path, Clock], CompanyIndex]
# How many random histories `test_model` follows: as many as take seconds.
HISTORIES = {"sqlite": 60, "elasticsearch": 10}


@pytest.fixture(params=["sqlite", pytest.param("elasticsearch", marks=pytest.mark.integration)])
def store(request: pytest.FixtureRequest) -> str:
    """The name of the store that the test runs on."""
    return str(request.param)


@pytest.fixture
def clock() -> Clock:
    """The clock of every index of the test."""
    return Clock()


@pytest.fixture
def opener(store: str, request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Makes a new, empty index of the store."""
    if store == "sqlite":
        yield lambda folder, clock: SqliteIndex(folder / "index.db", clock=clock)
        return
    connection: Connection = request.getfixturevalue("elasticsearch_connection")
    name = f"contract-{secrets.token_hex(4)}"
    numbers = count()

    def open_elastic(folder: Path, clock: Clock) -> CompanyIndex:
        return ElasticIndex(settings_at(connection, f"{name}-{next(numbers)}", visible_at_once=True), clock=clock)

    yield open_elastic
    with closing(Elasticsearch(**connection.client_arguments())) as client:
        remove_indices(client, name)


@pytest.fixture
def open_index(opener: Opener, clock: Clock, tmp_path: Path) -> Iterator[Callable[[], CompanyIndex]]:
    """A function that makes one more empty index; all are closed when the test ends."""
    numbers = count()
    with ExitStack() as opened:

        def open_one() -> CompanyIndex:
            index = opener(tmp_path / str(next(numbers)), clock)
            opened.enter_context(closing(index))
            return index

        yield open_one


@pytest.fixture
def index(open_index: Callable[[], CompanyIndex]) -> CompanyIndex:
    """An empty index."""
    return open_index()


@pytest.fixture
def live(index: CompanyIndex) -> str:
    """The name of the live, empty generation of `index`."""
    return add_live(index, "first")


@pytest.fixture
def histories(store: str) -> int:
    """How many random histories to follow on this store."""
    return HISTORIES[store]
