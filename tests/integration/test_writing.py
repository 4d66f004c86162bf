"""The service's writes on real stores: direct into Elasticsearch, and by Kafka into an index."""

import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from services.search.writes.destinations import KafkaDestination
from services.search.writes.group_commit import GroupCommit
from services.search.writes.write_service import WriteMode, WriteService
from services.search.writes.write_setup import KafkaTopic, Writing, erasure_service, set_up_writing
from similarity.company import utc_now
from similarity.index.protocol import CompanyIndex
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.delivery import Delivery
from similarity.ingest.messages import decode
from similarity.ingest.writer_leases import WriterLease, writer_leases
from similarity.kafka import End, KafkaSettings, KeyedProducer, Record, TopicConsumer
from tests.contract.steps import add_candidate, add_live
from tests.factories import ENCODER_ID
from tests.fakes import CountingEncoder
from tests.integration.elasticsearch_place import Place
from tests.servers.kafka import KafkaBroker
from tests.servers.ports import free_ports
from tests.services.search.wire.test_failures import problem
from tests.services.search.writers import AFTERNOON, ANVILS, NOON, bulk, client_of, direct_writing, put

pytestmark = pytest.mark.integration


@contextmanager
def serving(writing: Writing) -> Iterator[TestClient]:
    yield client_of(writing)
    writing.close()


@pytest.fixture
def elastic(place: Place) -> CompanyIndex:
    """A live and a candidate generation."""
    index = place.open()
    add_live(index, "first")
    add_candidate(index, "second")
    return index


def test_an_acknowledged_write_is_in_every_generation_of_elasticsearch(elastic: CompanyIndex) -> None:
    with serving(direct_writing(elastic, {ENCODER_ID: CountingEncoder()})) as client:
        answers = [put(client, event_time=NOON.isoformat()).json()["outcome"] for _ in range(2)]
        assert answers == ["applied", "unchanged"]
        assert put(client, name="New", event_time=AFTERNOON.isoformat()).json()["outcome"] == "applied"
        assert put(client, name="Old", event_time=NOON.isoformat()).json()["outcome"] == "superseded"
        rejected = put(client, description="Makes boats.", event_time=AFTERNOON.isoformat())
        problem(rejected, "write-rejected")
        for name in ("first", "second"):
            assert elastic.get(name, ["acme"])["acme"].company.name == "New"
        assert client.delete("/companies/acme").json()["outcome"] == "applied"
        assert [elastic.get(name, ["acme"]) for name in ("first", "second")] == [{}, {}]
    assert writer_leases(elastic) == []


def test_a_clock_that_stood_a_day_ahead_freezes_no_company_of_elasticsearch(elastic: CompanyIndex) -> None:
    writing = direct_writing(elastic, {ENCODER_ID: CountingEncoder()})
    ahead = replace(writing.writes, clock=lambda: utc_now() + timedelta(days=1))
    frozen = put(client_of(replace(writing, writes=ahead))).json()["version"]
    with serving(writing) as client:
        assert put(client, name="Old", event_time=NOON.isoformat()).json()["outcome"] == "superseded"
        answers = [client.delete("/companies/acme").json(), put(client, name="New").json()]
        lines = bulk(client, '{"id": "acme", "deleted": true}', json.dumps({"id": "acme", **ANVILS})).text.splitlines()
        assert [json.loads(line)["outcome"] for line in lines] == ["applied", "applied"]
    assert [(answer["outcome"], answer["version"] - frozen) for answer in answers] == [("applied", 1), ("applied", 2)]
    stored = [elastic.stored_versions(name, ["acme"]) for name in ("first", "second")]
    assert stored == [{"acme": frozen + 4}] * 2


def test_writers_of_one_company_follow_each_other_in_elasticsearch(place: Place, elastic: CompanyIndex) -> None:
    writing = [direct_writing(place.open(), {ENCODER_ID: CountingEncoder()}) for _ in range(3)]
    ahead = replace(writing[0].writes, clock=lambda: utc_now() + timedelta(days=1))
    put(client_of(replace(writing[0], writes=ahead)))
    clients = [client_of(each) for each in writing]
    for client in clients:  # an application builds its routes with its first request
        assert put(client).json()["outcome"] == "applied"
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda number: put(clients[number % 3], name=f"Name {number}"), range(24)))
    for each in writing:
        each.writes.close()
    assert {answer.status_code for answer in answers} <= {200, 409}
    versions = [answer.json()["version"] for answer in answers if answer.status_code == 200]
    assert len(versions) == len(set(versions))
    assert elastic.stored_versions("first", ["acme"]) == {"acme": max(versions)}


def test_writes_of_many_threads_and_a_bulk_upload_are_all_in_elasticsearch(elastic: CompanyIndex) -> None:
    lines = [json.dumps({"id": f"b{number}", **ANVILS}) for number in range(300)]
    with (
        serving(direct_writing(elastic, {ENCODER_ID: CountingEncoder()})) as client,
        ThreadPoolExecutor(8) as pool,
    ):
        upload = pool.submit(bulk, client, *lines, "no JSON")
        single = [pool.submit(put, client, f"c{number}") for number in range(40)]
        assert {answer.result().json()["outcome"] for answer in single} == {"applied"}
        found = [json.loads(line)["outcome"] for line in upload.result().text.splitlines()]
    assert found == ["applied"] * 300 + ["rejected"]
    assert [elastic.stats(name).companies for name in ("first", "second")] == [340, 340]


def test_an_erasure_takes_a_company_out_of_elasticsearch(elastic: CompanyIndex) -> None:
    with serving(direct_writing(elastic, {ENCODER_ID: CountingEncoder()})) as client:
        put(client)
        answer = client.post("/companies/acme/erasure").json()
        assert [each["outcome"] for each in answer["generations"]] == ["applied", "applied"]
        assert put(client, event_time=NOON.isoformat()).json()["outcome"] == "superseded"


@pytest.fixture
def topic(kafka: KafkaBroker) -> KafkaTopic:
    # Imported here, because "make test" collects this file without the client being installed.
    from confluent_kafka.admin import AdminClient, NewTopic

    settings = KafkaSettings(servers=kafka.servers)
    name = f"companies-{uuid.uuid4().hex}"
    admin = AdminClient({**settings.client(), "log_level": 2})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result()
    return KafkaTopic(settings=settings, topic=name)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path / "index.db")
    add_live(index, "first")
    yield index
    index.close()


def records(topic: KafkaTopic) -> list[Record]:
    """All that the topic holds."""
    consumer = TopicConsumer(topic.settings, topic=topic.topic, group="tests")
    consumer.read_from(dict.fromkeys(consumer.partitions(), 0))
    found: list[Record] = []
    ends: set[int] = set()
    for _ in range(400):
        event = consumer.poll(0.2)
        if isinstance(event, Record):
            found.append(event)
        if isinstance(event, End):
            ends.add(event.partition)
        if len(ends) == 2:
            consumer.close()
            return found
    raise AssertionError("the end of the topic was not reached")


def test_what_kafka_accepted_reaches_the_index_as_it_was_answered(topic: KafkaTopic, index: SqliteIndex) -> None:
    writing = set_up_writing(WriteMode.KAFKA, index=index, encoders={}, kafka=topic)
    lines = [json.dumps({"id": f"b{number}", **ANVILS}) for number in range(200)]
    with serving(writing) as client, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: put(client, f"c{number}"), range(40)))
        assert {answer.status_code for answer in answers} == {202}
        newest = put(client, "c0", name="New")
        found = [json.loads(line)["outcome"] for line in bulk(client, *lines, "{").text.splitlines()]
        assert found == ["accepted"] * 200 + ["rejected"]
        assert client.delete("/companies/c1").json()["outcome"] == "accepted"
    changes = [decode(record.message(utc_now())).change for record in records(topic)]
    assert len(changes) == 242
    with WriterLease(index) as writer:
        Delivery(writer, {ENCODER_ID: CountingEncoder()}).deliver(changes)
    assert index.stats("first").companies == 239
    assert index.get("first", ["c0"])["c0"].version == newest.json()["version"]
    assert index.get("first", ["c0"])["c0"].company.name == "New"


def test_an_erasure_is_in_the_topic_and_in_the_index(topic: KafkaTopic, index: SqliteIndex) -> None:
    with serving(set_up_writing(WriteMode.KAFKA, index=index, encoders={}, kafka=topic)) as client:
        put(client)
        assert client.post("/companies/acme/erasure").json()["published"] is True
    changes = [decode(record.message(utc_now())).change for record in records(topic)]
    with WriterLease(index) as writer:
        outcomes = [end.outcome.value for end in Delivery(writer, {ENCODER_ID: CountingEncoder()}).deliver(changes)]
    # The tombstone is above both deletes in the topic, and above what was published before the erasure was on record.
    assert outcomes == ["superseded", "superseded", "superseded"]


def test_without_a_broker_nothing_is_accepted(index: SqliteIndex) -> None:
    [port] = free_ports(1)
    nobody = KafkaSettings(servers=f"127.0.0.1:{port}")
    writes = WriteService(
        GroupCommit(KafkaDestination(lambda: KeyedProducer(nobody, timeout=1), "companies", index)), index
    )
    with serving(Writing(writes, erasure_service(index, writes, publishes=True))) as client:
        problem(put(client), "write-failed")
        problem(client.delete("/companies/acme"), "write-failed")
        [line] = bulk(client, json.dumps({"id": "a", **ANVILS})).text.splitlines()
        assert json.loads(line)["outcome"] == "failed"
