"""The service on a small real index; the index is shared where tests only read."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.index.sqlite import SqliteIndex
from tests.services.search.corpus import filled_index


@pytest.fixture(scope="session")
def read_only_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteIndex]:
    index = filled_index(tmp_path_factory.mktemp("index") / "shared.db")
    yield index
    index.close()


@pytest.fixture(scope="session")
def client(read_only_index: SqliteIndex) -> Iterator[TestClient]:
    with TestClient(create_app(index=read_only_index)) as client:
        yield client


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = filled_index(tmp_path / "own.db")
    yield index
    index.close()
