"""A damaged record of an erasure over HTTP: its own address says so, the others end, and erasing again mends it."""

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.index.sqlite import SqliteIndex
from similarity.upkeep.erasure import Eraser
from tests.contract.steps import add_live
from tests.factories import make_embedded
from tests.fakes import CountingEncoder
from tests.services.search.wire.test_failures import problem
from tests.services.search.writes.test_erasing import ended
from tests.similarity.index.inspection import tamper

DAMAGES = [
    "UPDATE erasures SET record = replace(record, '\"published\"', '\"publisheb\"') WHERE id = 'acme'",
    "UPDATE erasures SET record = CAST(X'7b80' AS TEXT) WHERE id = 'acme'",
    "UPDATE erasures SET state = 'runnine' WHERE id = 'acme'",
]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    """Running erasures of acme and bolt, which a process left when it ended."""
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        index.upsert(add_live(index, "live"), [make_embedded(each) for each in ("acme", "bolt", "cog")])
        for company_id in ("acme", "bolt"):
            Eraser(index).accept(company_id)
        yield index


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_holds_up_no_other_erasure(
    index: SqliteIndex, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    tamper(index.path, damage)
    with TestClient(create_app(index=index, encoder=CountingEncoder())) as client, caplog.at_level(logging.ERROR):
        assert ended(client, "bolt")["state"] == "done"
        told = problem(client.get("/companies/acme/erasure"), "index-unavailable")
        assert told["detail"].startswith("the stored data of this erasure is damaged; restore a backup, or erase")
        assert client.post("/companies/cog/erasure").status_code == 202
        assert ended(client, "cog")["state"] == "done"
        assert "the erasure of 'acme': the row ('acme',) of erasures differs from its checksum" in caplog.text
        assert client.post("/companies/acme/erasure").status_code == 202
        assert ended(client, "acme")["state"] == "done"


def test_a_damaged_key_refuses_erasures(index: SqliteIndex) -> None:
    tamper(index.path, "UPDATE registry SET name_key = zeroblob(32)")
    with TestClient(create_app(index=index, encoder=CountingEncoder())) as client:
        told = problem(client.post("/companies/cog/erasure"), "index-unavailable")
        assert told["detail"] == "the index is damaged; the log says where and what to do"
        assert client.get("/companies/bolt/erasure").json()["state"] == "running"
        assert client.get("/companies/cog").status_code == 200
