"""The sample companies in an index, without an encoder."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from similarity.company import EmbeddedCompany
from similarity.index.attributes import parse_schema
from similarity.index.protocol import Generation
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.records import Columns, VersionedCompany, parse_record

SAMPLE = Path(__file__).parents[3] / "data" / "sample" / "companies.jsonl"
SIZE = parse_schema(["size:ordinal=nano,micro,small,mid,large,mega"], size="size")
START = datetime(2026, 1, 1, tzinfo=UTC)
GENERATION = Generation(name="sample", encoder_id="none", bundle_id="none", dimension=4, created_at=START)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteIndex]:
    columns = Columns(attributes={"size": "size"})
    with closing(SqliteIndex(tmp_path_factory.mktemp("sample") / "index.db")) as index:
        index.create_generation(GENERATION)
        index.register_candidate(GENERATION.name)
        index.declare(SIZE)
        changes = [
            parse_record(json.loads(line), columns=columns, now=START).change
            for line in SAMPLE.read_text(encoding="utf-8").splitlines()
        ]
        index.upsert(
            GENERATION.name,
            [
                EmbeddedCompany(
                    company=change.company,
                    version=2,
                    text_hash="none",
                    encoder_id="none",
                    vector=np.array([1, 0, 0, 0], dtype=np.float32),
                    embedded_at=START,
                )
                for change in changes
                if isinstance(change, VersionedCompany)
            ],
        )
        yield index
