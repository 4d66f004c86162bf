"""What the service answers from an index file that is damaged, moved or deleted."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.sqlite import SqliteIndex
from tests.factories import ENCODER_ID
from tests.fakes import CountingEncoder
from tests.services.search.corpus import filled_index
from tests.services.search.wire.test_failures import problem
from tests.services.search.workspace_app import given
from tests.services.search.writers import client_of, direct_writing, put
from tests.similarity.index.inspection import connect

DAMAGED = "the index is damaged; the log says where and what to do"
MOVED = "the file of the index was moved or deleted while in use; put it back or restart the service"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    with closing(filled_index(tmp_path / "index.db")) as index:
        yield index


def change(index: SqliteIndex, statement: str) -> None:
    with closing(connect(index.path)) as connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "path", "named"),
    [
        (
            "UPDATE vectors SET vector = zeroblob(32) WHERE document = 2",
            "/similar/acme",
            "the vector of company 'boots'",
        ),
        (
            "UPDATE companies SET industry = 'Other' WHERE document = 2",
            "/similar/acme",
            "the profile of company 'boots'",
        ),
        (
            "UPDATE companies SET description = CAST(X'4d80ff' AS TEXT) WHERE document = 2",
            "/companies/boots",
            "Could not decode",
        ),
        ("UPDATE generations SET slope = 3, checksum = 0", "/readyz", "the row of generation 'first'"),
        ("DELETE FROM documents WHERE document = 2", "/readyz", "6 companies, but 5 can be read"),
    ],
)
def test_a_damaged_index_is_503_and_the_log_names_the_row(
    index: SqliteIndex, caplog: pytest.LogCaptureFixture, statement: str, path: str, named: str
) -> None:
    change(index, statement)
    answer = TestClient(create_app(index=index)).get(path)
    assert problem(answer, "index-unavailable")["detail"] == DAMAGED
    assert named in caplog.text
    assert "restore a backup, or delete it and ingest again" in caplog.text


def test_an_index_that_is_deleted_under_the_service_is_503_for_reads_and_readiness(index: SqliteIndex) -> None:
    client = TestClient(create_app(index=index))
    assert client.get("/readyz").status_code == client.get("/similar/acme").status_code == 200
    index.path.unlink()
    for path in ("/readyz", "/similar/acme", "/companies/boots"):
        answer = client.get(path)
        assert problem(answer, "index-unavailable")["detail"] == MOVED
        assert str(index.path) not in answer.text
    assert client.get("/healthz").status_code == 200


def test_a_write_to_a_file_that_is_gone_is_not_acknowledged(index: SqliteIndex) -> None:
    writing = direct_writing(index, {ENCODER_ID: CountingEncoder()})
    client = client_of(writing)
    assert put(client).status_code == 200
    index.path.unlink()
    problem(put(client, "later"), "index-unavailable")
    writing.writes.close()


def test_a_workspace_that_is_deleted_under_the_service_is_said_and_takes_no_verdict(
    index: SqliteIndex, tmp_path: Path
) -> None:
    with closing(SqliteWorkspace(tmp_path / "w.db")) as workspace:
        client = TestClient(create_app(index=index, workspace=workspace))
        (tmp_path / "w.db").unlink()
        problem(client.post("/feedback", json=given()), "index-unavailable")
        ready = client.get("/readyz").json()
        assert (ready["feedback"], ready["feedback_reason"]) == (False, MOVED.replace("index", "workspace"))
