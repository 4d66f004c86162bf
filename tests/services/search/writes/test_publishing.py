"""Writing in Kafka mode: what is published, and what is said when it is not."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from services.search.writes.destinations import KafkaDestination
from services.search.writes.group_commit import GroupCommit, Written
from services.search.writes.write_schemas import Outcome
from services.search.writes.write_service import WriteMode, WriteService
from services.search.writes.write_setup import Writing, erasure_service, set_up_writing
from similarity.company import DeletedCompany, version_of
from similarity.errors import IndexUnavailable, InvalidInput
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.messages import Message, decode
from similarity.ingest.records import VersionedCompany
from similarity.kafka import NotDelivered
from similarity.upkeep.erasure import Eraser
from tests.contract.steps import add_live
from tests.factories import make_company, make_embedded
from tests.services.search.wire.test_failures import problem
from tests.services.search.writers import ANVILS, NOON, bulk, client_of, put


class FakeProducer:
    """Keeps what is sent; the broker acknowledges all but what is `refused`."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes, bytes | None]] = []
        self.flushed = 0
        self.refused: set[bytes] = set()

    def send(self, topic: str, *, key: bytes, value: bytes | None) -> None:
        self.sent.append((topic, key, value))

    def flush(self) -> None:
        waiting = [key for _, key, _ in self.sent[self.flushed :]]
        self.flushed = len(self.sent)
        if lost := [key for key in waiting if key in self.refused]:
            raise NotDelivered("Kafka at /secret/place did not take them", lost)

    def changes(self) -> list[VersionedCompany | DeletedCompany]:
        """What the stream makes of it, a day later."""
        later = datetime.now(UTC) + timedelta(days=1)
        return [
            decode(Message(position=str(number), key=key, value=value, time=later)).change
            for number, (_, key, value) in enumerate(self.sent)
        ]


@pytest.fixture
def producer() -> FakeProducer:
    return FakeProducer()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path / "index.db")
    add_live(index, "first")
    yield index
    index.close()


@pytest.fixture
def client(index: SqliteIndex, producer: FakeProducer) -> Iterator[TestClient]:
    writes = WriteService(GroupCommit(KafkaDestination(lambda: producer, "companies", index)), index)
    writing = Writing(writes, erasure_service(index, writes, publishes=True))
    yield client_of(writing)
    writing.close()


@pytest.mark.parametrize("minutes", [-4, 4], ids=["an earlier event", "an event ahead of the clock"])
@pytest.mark.parametrize("recorded", [True, False], ids=["after the erasure", "before the ledger has the erasure"])
def test_a_write_that_was_received_before_an_erasure_does_not_bring_the_company_back(
    index: SqliteIndex, producer: FakeProducer, *, recorded: bool, minutes: int
) -> None:
    """Such as a late line of a bulk upload: the erasure's own delete is newer, so it would follow that."""
    index.upsert("first", [make_embedded("acme", version=in_minutes(minutes))])
    received = datetime.now(UTC)
    late = VersionedCompany(company=make_company("acme"), version=version_of(received, now=received), untimed=True)
    with KafkaDestination(lambda: producer, "companies", index).opened() as commit:

        def publish(delete: DeletedCompany) -> int:
            behind = [] if recorded or producer.sent else [late]
            return commit([delete, *behind])[0].version or 0

        Eraser(index, publish=publish).accept("acme")
        if recorded:
            assert commit([late]) == [Written(Outcome.SUPERSEDED)]
        [tombstone] = index.stored_versions("first", ["acme"]).values()
        changes = producer.changes()
        assert max(change.version for change in changes) <= tombstone
        # A compacted topic keeps the last message, and an index that is made from it must not have the company.
        assert isinstance(changes[-1], DeletedCompany)
        assert changes[-1] == max(changes, key=lambda change: change.version)
        now = datetime.now(UTC)
        [later] = commit([replace(late, version=version_of(now, now=now))])
        assert later.version is not None
        assert later.version > tombstone


def test_a_write_is_accepted_when_it_is_acknowledged(
    client: TestClient, producer: FakeProducer, index: SqliteIndex
) -> None:
    answer = put(client, tags=["tools"], attributes={"employees": 12}, event_time=NOON.isoformat())
    assert (answer.status_code, answer.json()["outcome"]) == (202, "accepted")
    assert producer.flushed == 1
    [change] = producer.changes()
    assert isinstance(change, VersionedCompany)
    assert change.version == answer.json()["version"]
    assert (change.company.id, change.company.tags) == ("acme", ("tools",))
    assert dict(change.company.attributes) == {"employees": 12}
    assert index.stats("first").companies == 0


def test_a_delete_is_published_too(client: TestClient, producer: FakeProducer) -> None:
    answer = client.delete("/companies/acme")
    assert (answer.status_code, answer.json()["outcome"]) == (202, "accepted")
    assert producer.changes() == [DeletedCompany(id="acme", version=answer.json()["version"])]


def in_minutes(minutes: float) -> int:
    """The version of a write at that distance from now."""
    return 2 * int((datetime.now(UTC) + timedelta(minutes=minutes)).timestamp() * 1_000_000)


def test_an_accepted_write_has_a_status_that_ends(
    client: TestClient, producer: FakeProducer, index: SqliteIndex
) -> None:
    def outcome(of: str) -> str:
        status = client.get(of)
        assert status.status_code == 200, status.text
        return str(status.json()["outcome"])

    answer = put(client, event_time=NOON.isoformat())
    status = answer.headers["location"]
    assert status == answer.json()["status"] == f"/companies/acme/writes/{answer.json()['version']}"
    assert client.get(status).json() == {
        "id": "acme",
        "version": answer.json()["version"],
        "outcome": "accepted",
        "stored": None,
    }
    index.upsert("first", [make_embedded("acme", version=2)])
    assert outcome(status) == "accepted"
    index.upsert("first", [make_embedded("acme", version=answer.json()["version"])])
    assert outcome(status) == "applied"
    [line] = bulk(client, json.dumps({"id": "acme", "deleted": True})).text.splitlines()
    deletion = json.loads(line)["status"]
    assert outcome(deletion) == "accepted"
    index.upsert("first", [change for change in producer.changes() if isinstance(change, DeletedCompany)])
    assert (outcome(deletion), outcome(status)) == ("applied", "superseded")


def test_a_status_of_what_cannot_be_a_write_is_refused(client: TestClient, index: SqliteIndex) -> None:
    for path in ("/companies/acme/writes/-1", f"/companies/acme/writes/{2**63}", "/companies/a b/writes/1"):
        problem(client.get(path), "invalid-request")
    empty = WriteService(None, SqliteIndex(index.path.with_name("empty.db")))
    answer = client_of(Writing(empty, erasure_service(empty.index, empty))).get("/companies/acme/writes/1")
    problem(answer, "no-live-generation")
    empty.index.close()


def test_a_write_without_an_event_time_follows_what_is_stored(
    client: TestClient, producer: FakeProducer, index: SqliteIndex
) -> None:
    ahead = in_minutes(24 * 60)
    index.upsert("first", [make_embedded("acme", version=ahead), DeletedCompany(id="gone", version=ahead + 1)])
    expected = [ahead + 2, ahead + 3, ahead + 2]
    answers = [put(client), client.delete("/companies/acme"), put(client, "gone")]
    assert [answer.json()["version"] for answer in answers] == expected
    assert [change.version for change in producer.changes()] == expected
    timed = put(client, event_time=NOON.isoformat()).json()["version"]
    assert producer.changes()[-1].version == timed < ahead


def test_a_delete_follows_a_write_that_the_stream_has_not_stored_yet(
    client: TestClient, producer: FakeProducer
) -> None:
    soon = put(client, event_time=(datetime.now(UTC) + timedelta(minutes=4)).isoformat()).json()["version"]
    assert client.delete("/companies/acme").json()["version"] == soon + 1
    assert put(client).json()["version"] == soon + 2
    assert [change.version for change in producer.changes()] == [soon, soon + 1, soon + 2]


def test_a_message_without_need_follows_nothing(client: TestClient, producer: FakeProducer, index: SqliteIndex) -> None:
    """So that readers of an earlier release read what they always read."""
    index.upsert("first", [make_embedded("acme", version=2), make_embedded("last", version=2**63 - 1)])
    for company_id in ("acme", "acme", "new", "last"):
        assert put(client, company_id).status_code == 202
    assert [value for _, _, value in producer.sent if value and b"follows" in value] == []


def test_where_the_index_cannot_be_read_writes_are_accepted_all_the_same(
    producer: FakeProducer, tmp_path: Path
) -> None:
    index = SqliteIndex(tmp_path / "empty.db")
    writes = WriteService(GroupCommit(KafkaDestination(lambda: producer, "companies", index)), index)
    client = client_of(Writing(writes, erasure_service(index, writes)))
    answer = put(client)
    assert (answer.status_code, producer.changes()[0].version) == (202, answer.json()["version"])
    writes.close()
    index.close()


def test_only_so_many_published_versions_are_remembered(
    client: TestClient, producer: FakeProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.search.writes.destinations.MAX_REMEMBERED_VERSIONS", 2)
    soon = (datetime.now(UTC) + timedelta(minutes=4)).isoformat()
    for company_id in ("a", "b", "c"):
        put(client, company_id, event_time=soon)
        client.delete(f"/companies/{company_id}")
    for company_id in ("b", "c", "a"):
        client.delete(f"/companies/{company_id}")
    followed = [b"follows" in value for _, _, value in producer.sent[6:] if value]
    assert followed == [True, True, False]


def test_what_is_not_acknowledged_is_not_accepted(client: TestClient, producer: FakeProducer) -> None:
    producer.refused = {b"acme"}
    answer = put(client)
    assert "send it again" in problem(answer, "write-failed")["detail"]
    assert "secret" not in answer.text
    lines = [json.dumps({"id": name, **ANVILS}) for name in ("a", "acme", "b")]
    found = [json.loads(line)["outcome"] for line in bulk(client, *lines, "{").text.splitlines()]
    assert found == ["accepted", "failed", "accepted", "rejected"]
    producer.refused = set()
    assert put(client).status_code == 202


def test_an_erasure_is_published_at_the_tombstones_version(
    client: TestClient, producer: FakeProducer, index: SqliteIndex
) -> None:
    soon = 2 * int((datetime.now(UTC) + timedelta(minutes=4)).timestamp() * 1_000_000)
    index.upsert("first", [make_embedded("acme", version=soon)])
    answer = client.post("/companies/acme/erasure").json()
    assert (answer["erased"], answer["published"]) == (True, True)
    [tombstone] = [document for page in index.scan("first") for document in page]
    assert producer.changes() == [DeletedCompany(id="acme", version=soon + 1), tombstone]
    assert tombstone == DeletedCompany(id="acme", version=soon + 3)
    assert any("Kafka" in each for each in answer["remaining"])


def test_an_erasure_that_cannot_be_published_erases_nothing(
    client: TestClient, producer: FakeProducer, index: SqliteIndex
) -> None:
    index.upsert("first", [make_embedded("acme")])
    producer.refused = {b"acme"}
    problem(client.post("/companies/acme/erasure"), "write-failed")
    assert "acme" in index.get("first", ["acme"])
    problem(client.get("/companies/acme/erasure"), "unknown-erasure")


def test_a_client_that_cannot_be_made_is_said_when_it_is_needed(index: SqliteIndex) -> None:
    def missing() -> FakeProducer:
        raise InvalidInput("Kafka needs its client: pip install in /secret/place")

    writes = WriteService(GroupCommit(KafkaDestination(missing, "companies", index)), index)
    answer = put(client_of(Writing(writes, erasure_service(index, writes))))
    problem(answer, "write-failed")
    assert "secret" not in answer.text
    writes.close()


def test_attributes_are_published_though_their_types_cannot_be_read(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise IndexUnavailable("away")

    monkeypatch.setattr(index, "attributes", away)
    producer = FakeProducer()
    writes = WriteService(GroupCommit(KafkaDestination(lambda: producer, "companies", index)), index)
    answer = put(client_of(Writing(writes, erasure_service(index, writes))), attributes={"staff": "12,500"})
    assert (answer.status_code, answer.json()["warnings"]) == (202, [])
    writes.close()


def test_without_a_topic_there_is_nowhere_to_publish_to(index: SqliteIndex) -> None:
    with pytest.raises(InvalidInput, match="no topic is given"):
        set_up_writing(WriteMode.KAFKA, index=index, encoders={})
