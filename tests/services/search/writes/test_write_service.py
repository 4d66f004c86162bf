"""Writing over HTTP, directly into the embedded index."""

import gzip
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from services.search.writes.destinations import IndexDestination
from services.search.writes.group_commit import GroupCommit
from services.search.writes.write_schemas import MAX_BULK_LINES, MAX_COMPANY_BYTES
from services.search.writes.write_service import WriteMode, WriteService
from services.search.writes.write_setup import Writing, erasure_service, set_up_writing
from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.encoder import TextEncoder
from similarity.errors import IndexUnavailable, InvalidBundle
from similarity.index.attributes import parse_schema
from similarity.index.bundle_store import StoredEncoders, keep_bundle, store_folder
from similarity.index.protocol import WriteResult
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.writer_leases import writer_leases
from tests.contract.steps import add_candidate, add_live
from tests.factories import ENCODER_ID
from tests.fakes import CountingEncoder
from tests.services.search.wire.test_failures import problem
from tests.services.search.writers import AFTERNOON, ANVILS, NOON, bulk, client_of, direct_writing, put, writing_client
from tests.tiny_bundle import DIMENSION, expected_vector, write_tiny_bundle


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    """An index with an empty live generation."""
    index = SqliteIndex(tmp_path / "index.db")
    add_live(index, "first")
    yield index
    index.close()


@pytest.fixture
def encoder() -> CountingEncoder:
    return CountingEncoder()


@pytest.fixture
def client(index: SqliteIndex, encoder: CountingEncoder) -> Iterator[TestClient]:
    with writing_client(index, {ENCODER_ID: encoder}) as client:
        yield client


def stored(index: SqliteIndex, company_id: str = "acme", generation: str = "first") -> EmbeddedCompany:
    return index.get(generation, [company_id])[company_id]


def outcomes(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [json.loads(line)["outcome"] for line in answer.text.splitlines()]


def test_a_company_is_stored_whole_and_can_be_found(client: TestClient, index: SqliteIndex) -> None:
    answer = put(
        client,
        aliases=["Acme"],
        domain="https://www.Acme.com/about",
        country="Germany",
        industry=None,
        tags=["tools"],
        attributes={"employees": 12, "listed": True, "rate": 0.5, "city": "Köln"},
        event_time=NOON.isoformat(),
    )
    version = 2 * int(NOON.timestamp()) * 1_000_000
    assert (answer.status_code, answer.json()) == (
        200,
        {"id": "acme", "outcome": "applied", "version": version, "warnings": []},
    )
    company = stored(index).company
    assert (company.name, company.aliases, company.domain) == ("Acme, Inc.", ("Acme",), "acme.com")
    assert dict(company.attributes) == {"employees": 12, "listed": True, "rate": 0.5, "city": "Köln"}
    assert index.resolve("first", "acme.com") == ["acme"]
    put(client, event_time=AFTERNOON.isoformat())
    assert stored(index).company.domain == ""


def test_the_same_write_again_is_unchanged_and_costs_no_encoding(client: TestClient, encoder: CountingEncoder) -> None:
    answers = [put(client, event_time="2025-03-01T12:00:00Z").json() for _ in range(2)]
    assert [answer["outcome"] for answer in answers] == ["applied", "unchanged"]
    assert answers[0]["version"] == answers[1]["version"]
    assert len(encoder.texts) == 1


def test_an_older_write_changes_nothing_and_says_so(client: TestClient, index: SqliteIndex) -> None:
    put(client, event_time=AFTERNOON.isoformat())
    answer = put(client, name="Old Name", event_time=NOON.isoformat())
    assert (answer.status_code, answer.json()["outcome"]) == (200, "superseded")
    assert answer.json()["warnings"] == ["a newer version of this company is stored, so this write changed nothing"]
    assert stored(index).company.name == "Acme, Inc."


def test_other_content_at_the_same_time_is_rejected(client: TestClient) -> None:
    put(client, event_time=NOON.isoformat())
    answer = put(client, description="Makes boats.", event_time=NOON.isoformat())
    assert "send this content with a newer version" in problem(answer, "write-rejected")["detail"]


def test_a_description_with_too_few_words_is_stored_with_a_warning(client: TestClient, index: SqliteIndex) -> None:
    answer = put(client, description="Acme makes anvils.", event_time=NOON.isoformat())
    assert "fewer than 3 words that say what the company does" in answer.json()["warnings"][0]
    assert not stored(index).has_vector
    [line] = bulk(client, '{"id":"tiny","name":"Tiny","description":"Sells."}').text.splitlines()
    assert "is in no ranking" in json.loads(line)["reason"]
    older = put(client, description="Sells.", event_time="2020-01-01T00:00:00Z").json()
    assert [warning for warning in older["warnings"] if "words" in warning] == []


def test_a_website_without_a_host_is_left_out_with_a_warning(client: TestClient) -> None:
    assert "left empty" in put(client, domain="not a website").json()["warnings"][0]


def test_a_list_or_an_object_as_attribute_is_left_out_with_a_warning(client: TestClient, index: SqliteIndex) -> None:
    facts = {"offices": ["Oslo", "Rome"], "ceo": {"name": "Ann"}, "staff": 12}
    ignored = [f"attributes.{name}: must be text, a number, a date, true or false" for name in ("offices", "ceo")]
    answer = put(client, attributes=facts)
    assert answer.status_code == 200, answer.text
    assert [warning.partition(", not ")[0] for warning in answer.json()["warnings"]] == ignored
    assert stored(index).company.attributes == {"staff": 12}
    line = json.dumps({"id": "c1", **ANVILS, "attributes": facts})
    [result] = [json.loads(each) for each in bulk(client, line).text.splitlines()]
    assert result["outcome"] == "applied"
    assert all(warning in result["reason"] for warning in ignored)


def test_attributes_are_read_as_their_declared_types(client: TestClient, index: SqliteIndex) -> None:
    index.declare(parse_schema(["staff:number", "cap:ordinal=small,large"]))
    answer = put(client, attributes={"staff": "12,500", "cap": "Jumbo", "city": "12,500"})
    assert answer.json()["warnings"] == ["attributes.cap: 'Jumbo' is none of small, large; ignored"]
    assert stored(index).company.attributes == {"staff": 12_500, "city": "12,500"}
    facts = [{"staff": True, "cap": "Large Cap"}, {"staff": "1.200"}, {"staff": 7}]
    lines = [json.dumps({"id": f"c{number}", **ANVILS, "attributes": each}) for number, each in enumerate(facts)]
    results = [json.loads(line) for line in bulk(client, *lines).text.splitlines()]
    assert [result["reason"].partition(";")[0] for result in results] == [
        "attributes.staff: 'True' is not a number like 12500, 12,500 or 12.5",
        "attributes.staff: '1.200' is read as 1.2",
        "",
    ]
    found = index.get("first", ["c0", "c1", "c2"]).values()
    assert [each.company.attributes for each in found] == [{"cap": "Large Cap"}, {"staff": 1.2}, {"staff": 7}]


@pytest.mark.parametrize("name", ["staff", "Staff"])
def test_an_exact_name_is_that_attribute_beside_one_of_another_case(
    client: TestClient, index: SqliteIndex, name: str
) -> None:
    index.declare(parse_schema(["Staff:number", "staff:number"]))
    assert put(client, attributes={name: 77}).json()["warnings"] == []
    assert stored(index).company.attributes == {name: 77}


def test_a_delete_wins_over_what_is_older_and_repeats(client: TestClient, index: SqliteIndex) -> None:
    put(client, event_time=NOON.isoformat())
    answers = [client.delete("/companies/acme", params={"event_time": NOON.isoformat()}) for _ in range(2)]
    assert [answer.json()["outcome"] for answer in answers] == ["applied", "unchanged"]
    assert index.get("first", ["acme"]) == {}
    assert put(client, event_time=NOON.isoformat()).json()["outcome"] == "superseded"
    assert client.delete("/companies/never-there").json()["outcome"] == "applied"
    assert put(client).json()["outcome"] == "applied"
    assert client.delete("/companies/acme").json()["outcome"] == "applied"


@pytest.mark.parametrize(
    ("body", "parameter", "reason"),
    [
        (b'{"name": "A"}', "description", "is missing"),
        (b'{"name": 5, "description": "d"}', "name", "valid string"),
        (b'{"name": "A", "description": "  "}', "description", "must not be blank"),
        (b'{"name": "A", "description": "d", "naem": 1}', "naem", "free facts under attributes"),
        (b'{"name": "A", "description": "d", "website": "a.com"}', "website", "put a website into domain"),
        (b'{"name": "A", "description": "d", "id": "other"}', "id", "the path has 'acme', the body 'other'"),
        (b'{"name": "A", "description": "d", "id": "not an id"}', "id", "must be an id"),
        (b'{"name": "A", "description": "d", "event_time": "yesterday"}', "event_time", "is not ISO 8601"),
        (b'{"name": "A", "description": "d", "event_time": "2025-03-01"}', "event_time", "has no time zone"),
        (b'{"name": "A", "description": "d", "event_time": "2925-03-01T00:00Z"}', "event_time", "in the future"),
        (b'{"name": "A\\u0000", "description": "d"}', "name", "contains a NUL character"),
        (b'{"name": "A", "description": "d", "attributes": {"a b": 1}}', "attributes.a b", "must be a name"),
        (b'{"name": "A", "description": "d", "attributes": {"a": 1' + b"0" * 30 + b"}}", "attributes.a", "64 bits"),
        (b'{"name": "A", "description": "d", "tags": "tools"}', "tags", "must be a list"),
        (
            b'{"name": "A", "description": "d", "aliases": ["%s"]}' % (b"x" * 201),
            "aliases[0]",
            "at most 200 characters",
        ),
        (
            b'{"name": "A", "description": "d", "aliases": ["%s"]}' % b'", "'.join([b"x" * 199] * 26),
            "aliases",
            "have 5,174 characters in all; send at most 5,000",
        ),
        (b"[]", "body", "must be a JSON object, not list"),
        (b'{"name": "A", "name": "B", "description": "d"}', "body", "the member 'name' occurs twice"),
        (b'{"name": "\\ud800", "description": "d"}', "body", "half of a surrogate pair"),
        (b'{"name": "A", "description": "d", "\\ud800": 1}', "body", "half of a surrogate pair"),
        (b'{"name": "A", "description": "d", "attributes": {"a": NaN}}', "body", "NaN is not a number"),
        (b"[" * 9_000, "body", "nested too deeply"),
        (b"", "body", "Expecting value"),
    ],
)
def test_what_breaks_a_rule_is_named(
    client: TestClient, index: SqliteIndex, body: bytes, parameter: str, reason: str
) -> None:
    answer = client.put("/companies/acme", content=body, headers={"Content-Type": "application/json"})
    document = problem(answer, "invalid-request")
    assert (document["errors"][0]["parameter"], document["errors"][0]["where"]) == (parameter, "body")
    assert reason in document["errors"][0]["reason"]
    assert index.stats("first").companies == 0


@pytest.mark.parametrize("company_id", ["a b", "a%2Fb", "%00", "a" * 129, "%ED%A0%80", "é"])
def test_only_a_company_id_can_be_written_to(client: TestClient, company_id: str) -> None:
    assert 400 <= put(client, company_id).status_code < 500
    assert 400 <= client.delete(f"/companies/{company_id}").status_code < 500
    assert 400 <= client.post(f"/companies/{company_id}/erasure").status_code < 500


def test_an_event_time_of_a_delete_is_checked(client: TestClient) -> None:
    document = problem(client.delete("/companies/acme?event_time=soon"), "invalid-request")
    assert document["errors"][0]["where"] == "query"
    problem(client.delete("/companies/acme?evnet_time=soon"), "invalid-request")


def test_a_form_or_a_text_is_not_taken(client: TestClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        headers = {"Content-Type": kind}
        problem(client.put("/companies/acme", content=json.dumps(ANVILS), headers=headers), "wrong-media-type")
        problem(client.post("/companies/bulk", content=b"{}", headers=headers), "wrong-media-type")


def test_where_writing_is_off_it_says_how_to_turn_it_on(index: SqliteIndex) -> None:
    client = client_of(set_up_writing(WriteMode.OFF, index=index, encoders={}))
    for answer in (
        put(client),
        client.delete("/companies/acme"),
        bulk(client, "{}"),
        client.post("/companies/acme/erasure"),
    ):
        assert "SIMILARITY_SERVICE_WRITES=direct" in problem(answer, "writes-off")["detail"]
    assert (index.stats("first").companies, index.stats("first").deleted) == (0, 0)


def test_a_bulk_upload_answers_line_by_line_in_order(client: TestClient, index: SqliteIndex) -> None:
    put(client, "old", event_time=AFTERNOON.isoformat())
    answer = bulk(
        client,
        b'\xef\xbb\xbf{"id": "a", "name": "A", "description": "Makes anvils.", "schema": 1}',
        "not JSON",
        "",
        '{"id": "b", "name": "B"}',
        '{"id": "old", "name": "B", "description": "d", "event_time": "2025-03-01T12:00:00Z"}',
        '{"id": "a", "deleted": true, "name": "whatever"}',
        '{"name": "No id", "description": "d"}',
        '{"id": "c", "name": "C", "description": "d", "domain": "no host"}\r',
        b'{"id": "d", "name": "\xff"}',
    )
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    results = [json.loads(line) for line in answer.text.splitlines()]
    assert [(result["line"], result["id"], result["outcome"]) for result in results] == [
        (1, "a", "applied"),
        (2, None, "rejected"),
        (4, "b", "rejected"),
        (5, "old", "superseded"),
        (6, "a", "applied"),
        (7, None, "rejected"),
        (8, "c", "applied"),
        (9, None, "rejected"),
    ]
    reasons = [result["reason"] for result in results]
    assert reasons[1].startswith("the JSON cannot be used: Expecting value")
    assert (reasons[2], reasons[5]) == ("description: is missing", "id: is missing")
    assert "left empty" in reasons[6]
    assert "is not UTF-8" in reasons[7]
    assert set(index.get("first", ["a", "b", "c", "old"])) == {"c", "old"}


def test_a_company_of_more_than_32_kib_is_refused(client: TestClient) -> None:
    rest = len('{"name":"A","description":""}')
    longest = {"name": "A", "description": "makes anvils ".ljust(MAX_COMPANY_BYTES - rest, "s")}
    assert put(client, **longest).status_code == 200
    answer = put(client, **longest | {"name": "AB"})
    assert "at most 32,768 bytes of JSON, and this has 32,769" in problem(answer, "body-too-large")["detail"]
    [result] = [json.loads(line) for line in bulk(client, json.dumps(longest | {"id": "acme"})).text.splitlines()]
    assert (result["outcome"], "at most 32,768 bytes" in result["reason"]) == ("rejected", True)


def test_a_bulk_upload_of_many_parts_is_written_in_order(client: TestClient, index: SqliteIndex) -> None:
    lines = [json.dumps({"id": f"c{number % 400}", **ANVILS, "name": f"N{number}"}) for number in range(1_000)]
    results = [json.loads(line) for line in bulk(client, *lines).text.splitlines()]
    assert [result["line"] for result in results] == list(range(1, 1_001))
    assert index.stats("first").companies == 400
    assert outcomes(bulk(client, "")) == []


@pytest.mark.parametrize("body", [b'[{"id": "a"}]', b"id,name\n1,A\n", gzip.compress(b'{"id": "a"}\n'), b"7"])
def test_a_bulk_upload_without_any_object_says_how_to_send_them(client: TestClient, body: bytes) -> None:
    assert "send one JSON object in each line" in problem(bulk(client, body), "invalid-request")["detail"]


def test_a_line_that_is_nested_too_deeply_is_rejected_alone(client: TestClient) -> None:
    lines = [json.dumps({"id": f"c{number}", **ANVILS}) for number in range(2)]
    answer = bulk(client, lines[0], '{"id": "deep", "name": ' + "[" * 1_000, lines[1])
    assert outcomes(answer) == ["applied", "rejected", "applied"]
    assert "nested too deeply" in answer.text


def test_a_bulk_upload_of_too_many_lines_writes_nothing(client: TestClient, index: SqliteIndex) -> None:
    answer = bulk(client, *['{"id": "a", "name": "A", "description": "d"}'] * (MAX_BULK_LINES + 1))
    assert "10,000 lines" in problem(answer, "body-too-large")["detail"]
    assert index.stats("first").companies == 0
    assert bulk(client, *["{}"] * MAX_BULK_LINES, "").status_code == 200


class BrokenIndex(SqliteIndex):
    """Takes `good` batches, then none."""

    good = 0

    def upsert(self, generation: str, documents: Any) -> list[WriteResult]:
        if not self.good:
            raise IndexUnavailable("the index /secret/place is full")
        self.good -= 1
        return super().upsert(generation, documents)


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[BrokenIndex]:
    index = BrokenIndex(tmp_path / "broken.db")
    add_live(index, "first")
    yield index
    index.close()


def impatient_client(index: SqliteIndex) -> TestClient:
    """Tries a write only once."""
    commits = GroupCommit(IndexDestination(index, {ENCODER_ID: CountingEncoder()}, seconds_to_retry=0))
    writes = WriteService(commits, index)
    return client_of(Writing(writes, erasure_service(index, writes)))


def test_a_store_that_takes_nothing_is_said_without_its_secrets(broken: BrokenIndex) -> None:
    client = impatient_client(broken)
    for answer in (put(client), client.delete("/companies/acme"), bulk(client, '{"id": "a", "deleted": true}')):
        document = problem(answer, "index-unavailable")
        assert "send it again" in document["detail"]
        assert "secret" not in answer.text
        assert answer.headers["retry-after"] == "5"
    broken.good = 1
    assert put(client).json()["outcome"] == "applied"


def test_what_the_store_did_not_take_of_a_bulk_upload_is_named_and_not_tried_for_hours(broken: BrokenIndex) -> None:
    broken.good = 1
    lines = [json.dumps({"id": f"c{number}", **ANVILS}) for number in range(300)]
    found = outcomes(bulk(impatient_client(broken), *lines, "no JSON"))
    assert found == ["applied"] * 16 + ["failed"] * 284 + ["rejected"]
    assert broken.stats("first").companies == 16


def test_without_a_live_generation_there_is_nothing_to_write_to(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "empty.db")
    with writing_client(index, {}) as client:
        problem(put(client), "no-live-generation")
        problem(bulk(client, '{"id": "a", "deleted": true}'), "no-live-generation")
    index.close()


def test_an_acknowledged_write_is_in_every_generation(client: TestClient, index: SqliteIndex) -> None:
    put(client, event_time=NOON.isoformat())
    add_candidate(index, "second")
    index.promote("second")
    add_candidate(index, "third")
    put(client, name="New", event_time=AFTERNOON.isoformat())
    assert [stored(index, generation=name).company.name for name in ("first", "second", "third")] == ["New"] * 3
    client.delete("/companies/acme")
    assert [index.get(name, ["acme"]) for name in ("first", "second", "third")] == [{}] * 3


def test_without_the_encoder_of_a_candidate_nothing_is_written(client: TestClient, index: SqliteIndex) -> None:
    add_candidate(index, "second", encoder_id="encoder-2")
    for answer in (put(client), client.delete("/companies/acme"), bulk(client, json.dumps({"id": "a", **ANVILS}))):
        detail = problem(answer, "write-encoder-missing")["detail"]
        assert "generation second (candidate) holds vectors of encoder encoder-2" in detail
        assert "SIMILARITY_BUNDLES" in detail
    assert [index.stats(name).companies for name in ("first", "second")] == [0, 0]
    index.retire("second")
    assert put(client).json()["outcome"] == "applied"


def test_a_generation_without_encoder_that_is_added_during_a_write_is_not_told_that_nothing_is_stored(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `generations promote` does for a moment with imported vectors."""
    upsert = index.upsert

    def added_meanwhile(generation: str, documents: list[EmbeddedCompany | DeletedCompany]) -> list[WriteResult]:
        results = upsert(generation, documents)
        add_candidate(index, "second", encoder_id="encoder-2")
        return results

    monkeypatch.setattr(index, "upsert", added_meanwhile)
    with writing_client(index, {ENCODER_ID: CountingEncoder()}) as client:
        answer = put(client)
    assert stored(index).company.name == ANVILS["name"]
    assert "it may or may not be stored: send it again" in problem(answer, "write-encoder-missing")["detail"]
    assert "othing was written" not in answer.text


def test_the_bundle_of_a_candidate_is_found_when_it_appears(index: SqliteIndex, tmp_path: Path) -> None:
    store = store_folder(index.path)
    encoders = StoredEncoders(store, lambda bundle: TextEncoder(bundle, threads=1), opened=[CountingEncoder()])
    with writing_client(index, encoders) as client:
        put(client, event_time=NOON.isoformat())
        bundle = write_tiny_bundle(tmp_path / "tiny")
        add_candidate(index, "second", encoder_id=bundle.encoder_id, dimension=DIMENSION)
        problem(put(client, description="boats"), "write-encoder-missing")
        keep_bundle(bundle, store)
        put(client, description="boats cars cars", event_time=AFTERNOON.isoformat())
        assert stored(index).company.description == "boats cars cars"
        assert stored(index, generation="second").vector == pytest.approx(
            expected_vector("boats", "cars", "cars"), abs=1e-6
        )


def test_a_damaged_bundle_is_said_without_its_place(index: SqliteIndex) -> None:
    class Damaged(dict[str, Any]):
        def __contains__(self, encoder_id: object) -> bool:
            raise InvalidBundle("/secret/place: model.onnx does not match its SHA-256")

    with writing_client(index, Damaged()) as client:
        answer = put(client)
    assert "is damaged" in problem(answer, "write-encoder-missing")["detail"]
    assert "secret" not in answer.text


class PoisonedEncoder(CountingEncoder):
    """Fails on one word, and where `broken` on everything."""

    broken = False

    def encode(self, texts: Any, progress: Any = None) -> Any:
        if self.broken or any("poison" in text for text in texts):
            raise ValueError("/secret/place")
        return super().encode(texts, progress)


def test_a_text_that_no_encoder_takes_is_rejected_alone(index: SqliteIndex) -> None:
    encoder = PoisonedEncoder()
    with writing_client(index, {ENCODER_ID: encoder}) as client:
        lines = [
            json.dumps({"id": f"c{number}", **ANVILS, "description": f"Makes iron {number}."}) for number in range(9)
        ]
        lines[4] = json.dumps({"id": "c4", **ANVILS, "description": "Makes strong poison."})
        assert outcomes(bulk(client, *lines)) == ["applied"] * 4 + ["rejected"] + ["applied"] * 4
        assert "encoder failed" in problem(put(client, description="Makes strong poison."), "write-rejected")["detail"]
        encoder.broken = True
        answer = put(client, description="Makes new hammers.")
        problem(answer, "write-failed")
        assert "secret" not in answer.text


def test_a_service_that_idles_holds_no_lease_that_a_re_embed_would_wait_for(index: SqliteIndex) -> None:
    writing = direct_writing(index, {ENCODER_ID: CountingEncoder()})
    client = client_of(writing)
    assert writer_leases(index) == []
    put(client)
    assert len(writer_leases(index)) == 1
    writing.writes.close()
    assert writer_leases(index) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=8,
)
MEMBERS = st.sampled_from([*ANVILS, "id", "aliases", "domain", "tags", "attributes", "event_time", "deleted", "schema"])


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    index = SqliteIndex(tmp_path_factory.mktemp("fuzzed") / "index.db")
    add_live(index, "first")
    with writing_client(index, {ENCODER_ID: CountingEncoder()}) as client:
        yield client
    index.close()


@settings(max_examples=150, deadline=timedelta(seconds=5))
@given(changes=st.dictionaries(MEMBERS, JSON, max_size=4), raw=st.none() | st.binary(max_size=60))
def test_whatever_is_sent_is_answered_and_never_a_fault(
    fuzzed: TestClient, changes: dict[str, Any], raw: bytes | None
) -> None:
    content = raw if raw is not None else json.dumps({**ANVILS, **changes}).encode()
    answer = fuzzed.put("/companies/acme", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code in {200, 422}
    answer = bulk(fuzzed, content)
    assert answer.status_code in {200, 422}
    lines = answer.content.splitlines() if answer.status_code == 200 else []
    for line in lines:  # of bytes: a reason may hold what Unicode counts as a line break
        assert set(json.loads(line)) == {"line", "id", "outcome", "reason"}


def test_a_delete_of_an_unknown_id_says_so(client: TestClient) -> None:
    put(client, "NKE", name="Nike", event_time=NOON.isoformat())
    answer = client.delete("/companies/Nike", params={"event_time": NOON.isoformat()}).json()
    assert answer["outcome"] == "applied"
    assert answer["warnings"] == ["no company with the id 'Nike' is stored (ids are case-sensitive); did you mean NKE?"]
    deleted = [client.delete("/companies/NKE", params={"event_time": AFTERNOON.isoformat()}).json() for _ in range(2)]
    assert [(each["outcome"], each["warnings"]) for each in deleted] == [("applied", []), ("unchanged", [])]


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match", "If-Unmodified-Since"])
def test_a_conditional_write_is_refused(client: TestClient, index: SqliteIndex, header: str) -> None:
    put(client)
    before = stored(index).version
    for method, body in (("DELETE", None), ("PUT", ANVILS | {"name": "Other"})):
        answer = client.request(method, "/companies/acme", headers={header: "*"}, json=body)
        assert "nothing was changed" in problem(answer, "refused")["detail"]
    assert stored(index).version == before
