"""Erasing a company over HTTP: from every generation, from the disk, and from what people added."""

import threading
from collections.abc import Collection, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from services.search.writes.erasing import Compactor
from similarity.errors import UnknownGeneration
from similarity.index.sqlite import SqliteIndex
from similarity.ingest import utc_now
from similarity.search.query_encoders import QueryEncoders
from similarity.workspace.sqlite import SqliteWorkspace
from tests.factories import ENCODER_ID, make_embedded, make_generation
from tests.fakes import CountingEncoder
from tests.services.search.wire.test_failures import problem
from tests.services.search.writers import NOON, bulk, client_of, direct_writing, put
from tests.workspace_records import make_event, make_list

SECRET = "Zyzzyva weevil breeders of Lofthellir"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    """A live and a previous generation that hold `acme`, whose words are a secret."""
    index = SqliteIndex(tmp_path / "index" / "index.db")
    for name in ("previous", "live"):
        index.create_generation(make_generation(name))
        index.register_candidate(name)
        index.promote(name)
        index.upsert(name, [make_embedded("acme", name="Acme", description=SECRET), make_embedded("other")])
    yield index
    index.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[SqliteWorkspace]:
    workspace = SqliteWorkspace(tmp_path / "index" / "workspace.db")
    yield workspace
    workspace.close()


@pytest.fixture
def client(index: SqliteIndex, workspace: SqliteWorkspace) -> Iterator[TestClient]:
    writing = direct_writing(index, {ENCODER_ID: CountingEncoder()}, workspace)
    yield client_of(writing)
    writing.writes.close()


def on_disk(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def wait_for_compactions() -> None:
    for thread in threading.enumerate():
        if thread.name == "compaction":
            thread.join(30)


def test_an_erased_company_is_in_no_generation(client: TestClient, index: SqliteIndex) -> None:
    answer = client.post("/companies/acme/erasure").json()
    assert answer["erased"] is True
    assert [(each["generation"], each["outcome"]) for each in answer["generations"]] == [
        ("previous", "applied"),
        ("live", "applied"),
    ]
    assert (answer["published"], answer["compaction"]) == (False, "running")
    assert [set(index.get(name, ["acme", "other"])) for name in ("previous", "live")] == [{"other"}] * 2
    assert any("backups" in each.casefold() for each in answer["remaining"])
    assert put(client, event_time=NOON.isoformat()).json()["outcome"] == "superseded"
    wait_for_compactions()


def test_its_words_leave_the_disk_in_the_background(client: TestClient, index: SqliteIndex) -> None:
    assert SECRET.encode() in on_disk(index.path.parent)
    client.post("/companies/acme/erasure")
    wait_for_compactions()
    assert SECRET.encode() not in on_disk(index.path.parent)


def test_or_before_the_answer_if_the_caller_waits(client: TestClient, index: SqliteIndex) -> None:
    answer = client.post("/companies/acme/erasure", params={"wait": "true"}).json()
    assert answer["compaction"] == "done"
    assert SECRET.encode() not in on_disk(index.path.parent)


def test_what_people_added_about_it_goes_too(client: TestClient, workspace: SqliteWorkspace) -> None:
    workspace.add_event(make_event("e1", anchor="acme", hit="other"))
    workspace.add_event(make_event("e2", anchor="nike", hit="adidas"))
    workspace.save_list(make_list("by-name", anchors=[{"company": "ACME"}]))
    workspace.save_list(make_list("kept"))
    answer = client.post("/companies/acme/erasure?wait=true").json()
    assert answer["forgotten"] == {"events": 1, "lists": 1, "looks": 0}
    assert [event.id for event in workspace.events()] == ["e2"]
    assert [head.name for head in workspace.lists()] == ["kept"]


@pytest.mark.parametrize("removal", ["POST /companies/acme/erasure", "DELETE /companies/acme", "bulk"])
def test_its_phrases_leave_the_memory_of_reasons(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch, removal: str
) -> None:
    forgotten: list[set[str]] = []
    forget = QueryEncoders.forget

    def noted(models: QueryEncoders, company_ids: Collection[str]) -> None:
        forgotten.append(set(company_ids))
        forget(models, company_ids)

    monkeypatch.setattr(QueryEncoders, "forget", noted)
    with TestClient(create_app(index=index, encoder=CountingEncoder())) as client:
        if removal == "bulk":
            answer = bulk(
                client, '{"id": "acme", "deleted": true}', '{"id": "new", "name": "N", "description": "Ships."}'
            )
        else:
            method, path = removal.split()
            answer = client.request(method, path)
        assert answer.status_code == 200, answer.text
    assert forgotten == [{"acme"}]
    wait_for_compactions()


def test_a_name_that_means_another_company_too_stays_in_lists(
    client: TestClient, index: SqliteIndex, workspace: SqliteWorkspace
) -> None:
    index.upsert("live", [make_embedded("namesake", name="ACME")])
    workspace.save_list(make_list("by-name", anchors=[{"company": "Acme"}]))
    assert client.post("/companies/acme/erasure?wait=true").json()["forgotten"]["lists"] == 0


def test_an_erasure_repeats_and_takes_unknown_companies(client: TestClient) -> None:
    for company_id in ("acme", "acme", "never-there"):
        assert client.post(f"/companies/{company_id}/erasure?wait=true").json()["erased"] is True


def test_a_company_from_the_near_future_is_erased_as_well(client: TestClient, index: SqliteIndex) -> None:
    soon = utc_now() + timedelta(minutes=4)
    assert put(client, event_time=soon.isoformat()).json()["outcome"] == "applied"
    assert client.post("/companies/acme/erasure?wait=true").json()["erased"] is True
    assert index.get("live", ["acme"]) == {}


def test_unknown_parameters_are_refused(client: TestClient, index: SqliteIndex) -> None:
    problem(client.post("/companies/acme/erasure?wiat=true"), "invalid-request")
    assert "acme" in index.get("live", ["acme"])


class SlowIndex(SqliteIndex):
    """Compacts when it is let, and counts how often."""

    gate: threading.Event
    began: threading.Event

    compacted = 0

    def compact(self, generation: str) -> None:
        if generation == "gone":
            raise UnknownGeneration(generation)
        self.began.set()
        assert self.gate.wait(10)
        self.compacted += 1


def test_one_rewriting_serves_all_that_was_erased_before_it_began(tmp_path: Path) -> None:
    index = SlowIndex(tmp_path / "slow.db")
    index.gate, index.began = threading.Event(), threading.Event()
    for name in ("only", "gone"):
        index.create_generation(make_generation(name))
    compactor = Compactor(index, None)
    compactor.run_soon("first")
    assert index.began.wait(10)
    for number in range(50):
        compactor.run_soon(f"c{number}")
    assert sum(thread.name == "compaction" for thread in threading.enumerate()) == 1
    index.gate.set()
    wait_for_compactions()
    assert index.compacted == 2
    compactor.run_soon("later")
    wait_for_compactions()
    assert index.compacted == 3
    index.close()


def test_a_rewriting_that_fails_is_logged_and_the_next_is_tried(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    index = SqliteIndex(tmp_path / "closed.db")
    compactor = Compactor(index, None)
    index.close()
    for _ in range(2):
        compactor.run_soon("acme")
        wait_for_compactions()
    assert caplog.text.count("the files could not be rewritten") == 2


def test_an_erasure_cannot_be_read(index: SqliteIndex) -> None:
    answer = TestClient(create_app(index=index)).get("/companies/acme/erasure")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
