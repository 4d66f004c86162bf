"""Erasing a company over HTTP: accepted at once, finished in the background, and on record until then."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from services.search.writes.erasing import REST, ErasureThread
from similarity.company import DeletedCompany, EmbeddedCompany, utc_now
from similarity.errors import IndexUnavailable
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.ledger import ErasureState
from similarity.index.protocol import WriteOutcome, WriteResult
from similarity.index.sqlite import SqliteIndex
from similarity.search.queries.encoders import QueryEncoders
from similarity.upkeep.erasure import Eraser
from tests.factories import ENCODER_ID, make_embedded, make_generation
from tests.fakes import CountingEncoder
from tests.services.search.wire.test_failures import problem
from tests.services.search.writers import NOON, bulk, client_of, direct_writing, put
from tests.workspace_records import make_event, make_list, make_shortlist

SECRET = "Zyzzyva weevil breeders of Lofthellir"


def fill(index: SqliteIndex) -> SqliteIndex:
    """A live and a previous generation that hold `acme`, whose words are a secret."""
    for name in ("previous", "live"):
        index.create_generation(make_generation(name))
        index.register_candidate(name)
        index.promote(name)
        index.upsert(name, [make_embedded("acme", name="Acme", description=SECRET), make_embedded("other")])
    return index


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = fill(SqliteIndex(tmp_path / "index" / "index.db"))
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
    writing.close()


def on_disk(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def ended(client: TestClient, company_id: str = "acme") -> Any:
    """The status of an erasure when it is no longer running."""
    deadline = time.monotonic() + 30
    while (answer := client.get(f"/companies/{company_id}/erasure").json())["state"] == "running":
        assert time.monotonic() < deadline, answer
        time.sleep(0.01)
    return answer


def test_an_erased_company_is_in_no_generation(client: TestClient, index: SqliteIndex) -> None:
    reply = client.post("/companies/acme/erasure")
    assert (reply.status_code, reply.headers["Location"]) == (202, "/companies/acme/erasure")
    answer = reply.json()
    assert (answer["state"], answer["erased"], answer["compaction"]) == ("running", True, "running")
    assert [(each["generation"], each["outcome"]) for each in answer["generations"]] == [
        ("previous", "applied"),
        ("live", "applied"),
    ]
    assert answer["published"] is False
    assert [set(index.get(name, ["acme", "other"])) for name in ("previous", "live")] == [{"other"}] * 2
    assert put(client, event_time=NOON.isoformat()).json()["outcome"] == "superseded"


def test_an_id_that_is_not_stored_is_erased_with_a_warning(client: TestClient, index: SqliteIndex) -> None:
    answer = client.post("/companies/ACME/erasure")
    assert answer.status_code == 202
    [warning] = answer.json()["warnings"]
    assert warning == "no company with the id 'ACME' is stored (ids are case-sensitive); did you mean acme?"
    assert index.get("live", ["acme"])
    assert client.post("/companies/acme/erasure").json()["warnings"] == []


def test_what_cannot_be_reached_is_named(client: TestClient) -> None:
    remaining = " ".join(client.post("/companies/acme/erasure").json()["remaining"])
    for place in ("Backups", "snapshots", "message log", "Dead letters", "rejects", "exports", "write-ahead", "memory"):
        assert place in remaining


def test_its_words_leave_the_disk_in_the_background(client: TestClient, index: SqliteIndex) -> None:
    assert SECRET.encode() in on_disk(index.path.parent)
    client.post("/companies/acme/erasure")
    answer = ended(client)
    assert (answer["state"], answer["compaction"], answer["problem"]) == ("done", "done", "")
    assert SECRET.encode() not in on_disk(index.path.parent)


def test_what_people_added_about_it_goes_too(client: TestClient, workspace: SqliteWorkspace) -> None:
    workspace.add_event(make_event("e1", anchor="acme", hit="other"))
    workspace.add_event(make_event("e2", anchor="nike", hit="adidas", note="not as Acme"))
    workspace.save_list(make_list("by-name", anchors=[{"company": "ACME"}]))
    workspace.save_list(make_list("kept"))
    client.post("/companies/acme/erasure")
    assert ended(client)["forgotten"] == {"events": 1, "lists": 1, "looks": 0, "notes": 1}
    assert list(workspace.events()) == [make_event("e2", anchor="nike", hit="adidas")]
    assert [head.name for head in workspace.lists()] == ["kept"]


def test_a_deleted_company_is_erased_from_lists_by_its_names(client: TestClient, workspace: SqliteWorkspace) -> None:
    workspace.save_list(make_list(exclude=["acme, inc.", "ACME.com"]))
    put(client, name="Acme, Inc.", domain="acme.com")
    assert client.delete("/companies/acme").json()["outcome"] == "applied"
    client.post("/companies/acme/erasure")
    assert ended(client)["forgotten"]["lists"] == 1
    assert workspace.saved_list("shoes").question["exclude"] == []


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
        assert answer.is_success, answer.text
    assert forgotten == [{"acme"}]


def test_an_erasure_repeats_and_takes_unknown_companies(client: TestClient) -> None:
    for company_id in ("acme", "acme", "never-there"):
        assert client.post(f"/companies/{company_id}/erasure").json()["erased"] is True
        assert ended(client, company_id)["state"] == "done"


def test_a_company_from_the_near_future_is_erased_as_well(client: TestClient, index: SqliteIndex) -> None:
    soon = utc_now() + timedelta(minutes=4)
    assert put(client, event_time=soon.isoformat()).json()["outcome"] == "applied"
    assert client.post("/companies/acme/erasure").json()["erased"] is True
    assert index.get("live", ["acme"]) == {}


def test_unknown_parameters_are_refused(client: TestClient, index: SqliteIndex) -> None:
    problem(client.post("/companies/acme/erasure?wait=true"), "invalid-request")
    assert "acme" in index.get("live", ["acme"])


class BrokenIndex(SqliteIndex):
    """Takes no tombstone into the previous generation, and compacts when it is let; counts how often."""

    takes_tombstones = True
    is_away = False
    gate: threading.Event | None = None
    compacted = 0

    def upsert(self, generation: str, documents: Sequence[EmbeddedCompany | DeletedCompany]) -> list[WriteResult]:
        if generation == "previous" and isinstance(documents[0], DeletedCompany) and not self.takes_tombstones:
            return [WriteResult(id=documents[0].id, outcome=WriteOutcome.FAILED, reason="the disk is full")]
        return super().upsert(generation, documents)

    def compact(self, generation: str) -> bool:
        if self.is_away:
            raise IndexUnavailable("away")
        assert self.gate is None or self.gate.wait(10)
        self.compacted += 1
        return super().compact(generation)


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[BrokenIndex]:
    index = BrokenIndex(tmp_path / "broken" / "index.db")
    fill(index)
    yield index
    index.close()


def test_an_erasure_that_a_generation_does_not_take_is_no_erasure(broken: BrokenIndex) -> None:
    broken.takes_tombstones = False
    writing = direct_writing(broken, {ENCODER_ID: CountingEncoder()})
    client = client_of(writing)
    problem(client.post("/companies/acme/erasure"), "write-failed")
    answer = ended(client)
    assert (answer["state"], answer["erased"]) == ("failed", False)
    assert answer["generations"][0] == {"generation": "previous", "outcome": "failed", "reason": "the disk is full"}
    broken.takes_tombstones = True
    assert client.post("/companies/acme/erasure").json()["erased"] is True
    assert ended(client)["state"] == "done"
    writing.close()


def test_one_rewriting_serves_all_that_was_erased_before_it_began(broken: BrokenIndex) -> None:
    broken.gate = threading.Event()
    writing = direct_writing(broken, {ENCODER_ID: CountingEncoder()})
    client = client_of(writing)
    before = set(threading.enumerate())  # one of another test may still be ending
    for number in range(20):
        client.post(f"/companies/c{number}/erasure")
    assert [thread.name for thread in set(threading.enumerate()) - before].count("erasures") == 1
    broken.gate.set()
    assert {ended(client, f"c{number}")["state"] for number in range(20)} == {"done"}
    assert broken.compacted in {2, 4}  # two generations; the first round began with the first erasure
    writing.close()


def test_an_erasure_that_waits_for_a_store_is_tried_again(
    broken: BrokenIndex, caplog: pytest.LogCaptureFixture
) -> None:
    broken.is_away = True
    eraser = Eraser(broken)
    thread = ErasureThread(eraser, seconds_to_retry=0.01)
    eraser.accept("acme")
    thread.wake()
    wait_for(lambda: "erasures wait for a store" in caplog.text)
    broken.is_away = False
    wait_for(lambda: state(broken) is ErasureState.DONE)
    thread.close()


def test_an_erasure_of_a_process_that_was_killed_is_finished_by_another(broken: BrokenIndex) -> None:
    thread = ErasureThread(Eraser(broken), seconds_to_look=0.05)
    thread.wake()  # the start of the service
    Eraser(broken).accept("acme")  # by another process, which wakes no thread here
    wait_for(lambda: state(broken) is ErasureState.DONE)
    thread.close()


def test_a_rest_follows_each_round_because_it_may_rewrite_the_file(
    broken: BrokenIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[float] = []
    thread = ErasureThread(Eraser(broken))

    def finish(_: Eraser, **_options: Any) -> list[Any]:
        begun.append(time.monotonic())
        thread.wake()
        time.sleep(0.05)
        return []

    monkeypatch.setattr(Eraser, "finish", finish)
    thread.wake()
    wait_for(lambda: len(begun) > 1)
    thread.close()
    assert begun[1] - begun[0] >= 0.05 * (1 + REST)


def test_lists_are_searched_during_a_rest(
    broken: BrokenIndex, workspace: SqliteWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.search.writes.erasing.REST", 1e6)
    eraser = Eraser(broken, workspace)
    thread = ErasureThread(eraser)
    eraser.accept("acme")
    thread.wake()
    wait_for(lambda: state(broken) is ErasureState.DONE)
    workspace.save_list(make_shortlist("partners", "other", "third"))
    eraser.accept("other")
    thread.wake()
    wait_for(lambda: workspace.saved_list("partners").companies == ("third",))
    assert [each.id for each in broken.ledger.running_erasures()] == ["other"]
    thread.close()
    assert eraser.finish()[0].forgotten["lists"] == 1


def test_a_fault_of_ours_fails_the_erasure_and_ends_no_thread(
    broken: BrokenIndex, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    eraser = Eraser(broken)
    thread = ErasureThread(eraser)
    with monkeypatch.context() as patched:
        patched.setattr(broken, "compact", lambda _: 1 / 0)
        eraser.accept("acme")
        thread.wake()
        wait_for(lambda: state(broken) is ErasureState.FAILED)
    wait_for(lambda: "ZeroDivisionError" in caplog.text)  # logged after the state is noted
    eraser.accept("acme")
    thread.wake()
    wait_for(lambda: state(broken) is ErasureState.DONE)
    thread.close()


def test_an_accepted_erasure_is_finished_after_a_restart(broken: BrokenIndex) -> None:
    broken.is_away = True
    with TestClient(create_app(index=broken, encoder=CountingEncoder())) as client:
        assert client.post("/companies/acme/erasure").status_code == 202
    assert state(broken) is ErasureState.RUNNING
    broken.is_away = False
    with TestClient(create_app(index=broken, encoder=CountingEncoder())) as client:
        assert ended(client)["compaction"] == "done"
    assert SECRET.encode() not in on_disk(broken.path.parent)


def test_a_service_that_only_reads_finishes_nothing(broken: BrokenIndex) -> None:
    Eraser(broken).accept("acme")
    with TestClient(create_app(index=broken)):
        time.sleep(0.1)
    assert state(broken) is ErasureState.RUNNING


def state(index: SqliteIndex) -> ErasureState:
    record = index.ledger.erasure("acme")
    assert record is not None
    return record.state


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
