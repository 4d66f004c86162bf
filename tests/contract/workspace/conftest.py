"""The stores that the workspace's contract tests run on. A new `Workspace` is added here and nowhere else."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch

from similarity.feedback.elastic import ElasticWorkspace
from similarity.feedback.protocol import Workspace
from similarity.feedback.sqlite import SqliteWorkspace
from tests.integration.elasticsearch_place import remove_indices, settings_at
from tests.servers.connection import Connection

# Opens the workspace of this name; twice with the same name, two processes' views of one workspace.
Opener = Callable[[str], Workspace]


@pytest.fixture
def open_named(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens a workspace by name; all are closed when the test ends."""
    with ExitStack() as opened:
        if store == "sqlite":
            yield lambda name: opened.enter_context(closing(SqliteWorkspace(tmp_path / f"{name}.db")))
            return
        connection: Connection = request.getfixturevalue("elasticsearch_connection")
        prefix = f"workspace-{secrets.token_hex(4)}"

        def open_elastic(name: str) -> Workspace:
            return opened.enter_context(closing(ElasticWorkspace(settings_at(connection, f"{prefix}-{name}"))))

        yield open_elastic
        with closing(Elasticsearch(**connection.client_arguments())) as client:
            remove_indices(client, prefix)


@pytest.fixture
def open_empty(open_named: Opener) -> Callable[[], Workspace]:
    """Opens one more workspace that holds nothing."""
    numbers = count()
    return lambda: open_named(f"w{next(numbers)}")


@pytest.fixture
def workspace(open_named: Opener) -> Workspace:
    """An empty workspace, called `shared`."""
    return open_named("shared")
