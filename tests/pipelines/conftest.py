"""A small index with the tiny bundle, for pipelines that run in this process."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipelines.worker_settings import WorkerSettings
from similarity.generations.new import ensure_generation
from similarity.index.bundle_store import keep_bundle
from similarity.index.sqlite import SqliteIndex
from tests.tiny_bundle import write_tiny_bundle

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    """An embedded index whose live generation, of the tiny bundle, is empty."""
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        bundle = write_tiny_bundle(tmp_path / "bundle")
        keep_bundle(bundle, tmp_path / "index.db.bundles")
        index.promote(ensure_generation(index, bundle, now=NOW).name)
        yield index


@pytest.fixture
def worker_settings(index: SqliteIndex, tmp_path: Path) -> WorkerSettings:
    """Where that index is."""
    return WorkerSettings(index=str(tmp_path / "index.db"), threads=1)
