"""Every write over HTTP is on record before it is acknowledged, or refused."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from services.search.guards.callers import Caller, Scope
from services.search.guards.guards import Guards
from services.search.writes.group_commit import Commit, GroupCommit, Written
from services.search.writes.write_schemas import Outcome
from services.search.writes.write_service import WriteMode
from services.search.writes.write_setup import set_up_writing
from similarity.company import DeletedCompany, utc_now, version_of
from similarity.errors import AuditUnavailable, IndexUnavailable
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.records import Change
from similarity.upkeep.audit import AuditRecord, hashed, read_entries
from tests.contract.steps import add_live
from tests.factories import ENCODER_ID
from tests.fakes import CountingEncoder
from tests.services.search.wire.test_failures import problem
from tests.services.search.writers import bulk, put
from tests.services.search.writes.test_group_commit import wait_until


class Stage:
    """The service on an index of its own; `file` holds its audit record."""

    def __init__(self, folder: Path) -> None:
        self.index = SqliteIndex(folder / "similarity.db")
        add_live(self.index, "first")
        self.file = folder / "audit" / "audit.jsonl"
        self.file.parent.mkdir()
        encoders = {ENCODER_ID: CountingEncoder()}
        audit = AuditRecord(str(self.file))
        self.writing = set_up_writing(WriteMode.DIRECT, index=self.index, encoders=encoders, audit=audit)
        self.encoders = encoders

    def client(self, *, as_ann: bool = False) -> TestClient:
        headers = {"Authorization": "Bearer s3cret"} if as_ann else {}
        keys = {"s3cret": Caller(name="ann", scopes=frozenset({Scope.WRITE}))}.get if as_ann else None
        app = create_app(index=self.index, encoders=self.encoders, writing=self.writing, guards=Guards(keys=keys))
        return TestClient(app, headers=headers)

    def entries(self) -> list[dict[str, Any]]:
        return list(read_entries(str(self.file)))

    def close(self) -> None:
        self.writing.writes.close()
        self.index.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def test_put_and_delete_are_on_record_with_the_key_and_the_id_of_the_request(stage: Stage) -> None:
    client = stage.client(as_ann=True)
    answers = [put(client), put(client), client.delete("/companies/acme")]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    told = [(each["who"], each["action"], each["outcome"], each["company_sha256"]) for each in stage.entries()]
    assert told == [
        ("key:ann", "write", "applied", hashed("acme")),
        ("key:ann", "write", "applied", hashed("acme")),
        ("key:ann", "delete", "applied", hashed("acme")),
    ]
    assert [each["request_id"] for each in stage.entries()] == [answer.headers["X-Request-Id"] for answer in answers]
    assert [each["version"] for each in stage.entries()] == [answer.json()["version"] for answer in answers]
    assert "acme" not in stage.file.read_text()


def test_a_superseded_write_is_on_record_with_its_own_version(stage: Stage) -> None:
    client = stage.client(as_ann=True)
    assert put(client, event_time="2026-01-02T00:00:00Z").json()["outcome"] == "applied"
    late = put(client, event_time="2026-01-01T00:00:00Z").json()
    entry = stage.entries()[1]
    assert (entry["outcome"], entry["version"]) == ("superseded", late["version"])
    assert entry["version"] == version_of(datetime(2026, 1, 1, tzinfo=UTC), now=utc_now())


def test_without_keys_it_is_somebody_who_did_not_log_in(stage: Stage) -> None:
    put(stage.client())
    assert [each["who"] for each in stage.entries()] == ["unauthenticated"]


def test_a_bulk_write_has_a_line_for_each_company_and_the_id_of_its_request(stage: Stage) -> None:
    lines = [f'{{"id":"c{number}","name":"C","description":"Makes anvils."}}' for number in range(200)]
    answer = bulk(stage.client(as_ann=True), *lines, '{"id":"old","deleted":true}', "{")
    assert answer.status_code == 200
    told = [(each["action"], each["outcome"], each["who"], each["company_sha256"]) for each in stage.entries()]
    assert told == [
        *(("write", "applied", "key:ann", hashed(f"c{number}")) for number in range(200)),
        ("delete", "applied", "key:ann", hashed("old")),
    ]
    assert {each["request_id"] for each in stage.entries()} == {answer.headers["X-Request-Id"]}


def test_an_erasure_is_on_record_and_names_nobody(stage: Stage) -> None:
    client = stage.client(as_ann=True)
    put(client)
    answer = client.post("/companies/acme/erasure")
    assert answer.json()["erased"]
    wait_until(lambda: stage.entries()[-1]["outcome"] == "done")
    identity = answer.headers["X-Request-Id"]
    assert [(each["action"], each["outcome"], each.get("request_id", "")) for each in stage.entries()[1:]] == [
        ("erase", "begun", identity),
        ("erase", "accepted", identity),
        ("erase", "done", ""),
    ]
    assert "acme" not in stage.file.read_text().lower()


def test_what_cannot_be_recorded_is_refused_and_not_written(stage: Stage) -> None:
    client = stage.client(as_ann=True)
    shutil.rmtree(stage.file.parent)
    for answer in (put(client), client.delete("/companies/acme"), client.post("/companies/acme/erasure")):
        assert "the audit record cannot be written" in problem(answer, "write-failed")["detail"]
    assert stage.index.get("first", ["acme"]) == {}
    stage.file.parent.mkdir()
    assert put(client).json()["outcome"] == "applied"
    assert [each["action"] for each in stage.entries()] == ["write"]


class DestinationThatOutlivesTheRecord:
    """Stores whatever it is given, and meanwhile the folder of the audit record goes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def opened(self) -> Iterator[Commit]:
        def commit(changes: Sequence[Change]) -> list[Written]:
            shutil.rmtree(self._folder)
            return [Written(Outcome.APPLIED) for _ in changes]

        yield commit


def test_a_write_is_on_record_before_its_request_is_answered(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    folder.mkdir()
    audit = AuditRecord(str(folder / "audit.jsonl"))
    commits = GroupCommit(DestinationThatOutlivesTheRecord(folder), audit=audit)
    with pytest.raises(AuditUnavailable):
        commits.write([DeletedCompany(id="acme", version=1)])
    commits.close()
    folder.mkdir()
    audit.write([])
    [entry] = read_entries(str(folder / "audit.jsonl"))
    assert (entry["outcome"], entry["company_sha256"]) == ("applied", hashed("acme"))


class BrokenDestination:
    """Raises whatever it is given to commit."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    @contextmanager
    def opened(self) -> Iterator[Commit]:
        def commit(changes: Sequence[Change]) -> list[Written]:
            raise self._error

        yield commit


@pytest.mark.parametrize("error", [IndexUnavailable("it is away"), ZeroDivisionError("a bug")])
def test_a_write_that_may_be_stored_or_not_is_on_record_as_failed(error: Exception, tmp_path: Path) -> None:
    file = str(tmp_path / "audit.jsonl")
    commits = GroupCommit(BrokenDestination(error), audit=AuditRecord(file))
    with pytest.raises(type(error)):
        commits.write([DeletedCompany(id="acme", version=1)])
    commits.close()
    [entry] = read_entries(file)
    assert (entry["action"], entry["outcome"], entry["company_sha256"]) == ("delete", "failed", hashed("acme"))
