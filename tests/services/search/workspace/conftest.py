"""A workspace of its own for each test, and a client of its routes."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.sqlite import SqliteIndex
from tests.services.search.workspace_app import StandingClock, workspace_client


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[SqliteWorkspace]:
    with closing(SqliteWorkspace(tmp_path / "own.db.workspace")) as workspace:
        yield workspace


@pytest.fixture
def client(index: SqliteIndex, workspace: SqliteWorkspace, clock: StandingClock) -> TestClient:
    return workspace_client(index, workspace, clock)
