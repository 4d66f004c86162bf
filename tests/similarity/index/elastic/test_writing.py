"""The bulk writer against answers that no real server can be made to give at will."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from math import log2
from typing import Any

import pytest
from elasticsearch import ConnectionTimeout
from hypothesis import given
from hypothesis import strategies as st

from similarity.company import DeletedCompany, EmbeddedCompany
from similarity.errors import IndexUnavailable, UnknownGeneration
from similarity.index.elastic.connection import Cluster
from similarity.index.elastic.settings import ElasticSettings
from similarity.index.elastic.writing import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, BulkWriter, Target
from similarity.index.protocol import WriteOutcome, WriteResult
from tests.factories import DIMENSION, make_embedded
from tests.similarity.index.elastic.answers import refusal

Body = dict[str, Any]
APPLIED, UNCHANGED = WriteOutcome.APPLIED, WriteOutcome.UNCHANGED
SUPERSEDED, REJECTED, FAILED = WriteOutcome.SUPERSEDED, WriteOutcome.REJECTED, WriteOutcome.FAILED
TARGET = Target(index="companies-first-1", alias="companies-first-1-write", dimension=DIMENSION)
WRITE_SECONDS = 60.0


@dataclass
class Server:
    """Stands in for the cluster: keeps the newest version, and fails where a test says so.

    `refuse` sees the ids of a request and how many came before it, and returns what to raise; `lose`
    likewise, after the documents were taken. `status` gives a document's status instead of taking it.
    """

    refuse: Callable[[list[str], int], Exception | None] = lambda ids, before: None
    lose: Callable[[list[str], int], Exception | None] = lambda ids, before: None
    status: Callable[[str, int], int] = lambda company_id, before: 0
    documents: dict[str, Body] = field(default_factory=dict)
    requests: list[list[str]] = field(default_factory=list)
    bytes_sent: list[int] = field(default_factory=list)
    aliases: set[tuple[str, bool]] = field(default_factory=set)
    looked_up: list[list[str]] = field(default_factory=list)
    look_up_problem: Exception | None = None

    def bulk(self, *, index: str, operations: Sequence[bytes], require_alias: bool, **_: Any) -> Body:
        pairs = [[json.loads(line) for line in each.split(b"\n")] for each in operations]
        ids = [action["index"]["_id"] for action, _ in pairs]
        before = len(self.requests)
        self.requests.append(ids)
        self.bytes_sent.append(sum(map(len, operations)))
        self.aliases.add((index, require_alias))
        if error := self.refuse(ids, before):
            raise error
        items = [self._take(action["index"], source, before) for action, source in pairs]
        if error := self.lose(ids, before):
            raise error
        return {"items": [{"index": item} for item in items]}

    def _take(self, action: Body, source: Body, before: int) -> Body:
        company_id, version = action["_id"], action["version"]
        if status := self.status(company_id, before):
            return {"status": status, "error": {"type": "planned", "reason": "as the test says"}}
        held = self.documents.get(company_id)
        if held is not None and held["version"] >= version:
            return {"status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "newer"}}
        self.documents[company_id] = source
        return {"status": 201 if held is None else 200}

    def look_up(self, index: str, ids: Sequence[str], *, vectors: bool) -> dict[str, Body]:
        self.looked_up.append(list(ids))
        if self.look_up_problem:
            raise self.look_up_problem
        return {each: self.documents[each] for each in ids if each in self.documents}


@dataclass
class Clock:
    """Moves only when somebody sleeps."""

    now: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


Write = Callable[..., list[WriteResult]]


@pytest.fixture
def write(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    settings = ElasticSettings(hosts=("http://localhost:9200",), name="companies", write_seconds=WRITE_SECONDS)
    with closing(Cluster(settings)) as cluster:
        cluster.packs_vectors = True

        def write_to(server: Server, documents: Sequence[Any], **limits: int) -> list[WriteResult]:
            monkeypatch.setattr(cluster.client, "bulk", server.bulk)
            monkeypatch.setattr(cluster, "documents", server.look_up)
            writer = BulkWriter(cluster, sleep=clock.sleep, monotonic=clock.monotonic, **limits)
            return writer.write(TARGET, documents)

        yield write_to


def companies(count: int) -> list[EmbeddedCompany]:
    return [make_embedded(f"c{number:03}") for number in range(count)]


def outcomes(results: Sequence[WriteResult]) -> list[WriteOutcome]:
    return [result.outcome for result in results]


def test_all_go_through_the_alias_that_must_exist(write: Write, clock: Clock) -> None:
    server = Server()
    assert outcomes(write(server, companies(3))) == [APPLIED] * 3
    assert server.aliases == {(TARGET.alias, True)}
    assert clock.pauses == []


def test_what_cannot_be_stored_is_rejected_without_being_sent(write: Write) -> None:
    server = Server()
    results = write(server, [make_embedded("bad", version=-1), make_embedded("good")])
    assert outcomes(results) == [REJECTED, APPLIED]
    assert server.requests == [["good"]]


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_cluster_gets_the_same_documents_again_after_a_pause(write: Write, clock: Clock, status: int) -> None:
    server = Server(refuse=lambda ids, before: refusal(status) if before < 3 else None)
    assert outcomes(write(server, companies(4))) == [APPLIED] * 4
    assert len({tuple(ids) for ids in server.requests}) == 1
    assert len(clock.pauses) == 3
    assert all(0 <= pause <= FIRST_PAUSE_SECONDS * 2**place for place, pause in enumerate(clock.pauses))


@pytest.mark.parametrize("status", [429, 503])
def test_only_documents_that_were_not_taken_are_sent_again(write: Write, status: int) -> None:
    server = Server(status=lambda company_id, before: status if before == 0 and company_id >= "c005" else 0)
    assert outcomes(write(server, companies(10))) == [APPLIED] * 10
    assert [len(ids) for ids in server.requests] == [10, 5]
    assert server.requests[1] == ["c005", "c006", "c007", "c008", "c009"]


def test_pauses_are_capped_and_end_with_the_time_for_writing(write: Write, clock: Clock) -> None:
    with pytest.raises(IndexUnavailable, match="answered 429"):
        write(Server(refuse=lambda ids, before: refusal(429)), companies(2))
    assert max(clock.pauses) <= LONGEST_PAUSE_SECONDS
    assert WRITE_SECONDS - LONGEST_PAUSE_SECONDS <= clock.now <= WRITE_SECONDS


def test_what_is_not_taken_in_time_has_failed_and_it_alone(write: Write) -> None:
    server = Server(status=lambda company_id, before: 503 if company_id == "c001" else 0)
    results = write(server, companies(3))
    assert outcomes(results) == [APPLIED, FAILED, APPLIED]
    assert "503" in results[1].reason
    assert "as the test says" in results[1].reason


def test_where_everything_fails_the_index_is_unavailable(write: Write) -> None:
    with pytest.raises(IndexUnavailable, match="did not answer in time"):
        write(Server(refuse=lambda ids, before: ConnectionTimeout("timed out")), companies(3))


def test_each_chunk_has_its_own_time(write: Write) -> None:
    """One chunk that fails does not take the others' time away."""
    server = Server(refuse=lambda ids, before: refusal(429) if "c000" in ids else None)
    results = write(server, companies(6), max_documents=2)
    assert outcomes(results) == [FAILED, FAILED, APPLIED, APPLIED, APPLIED, APPLIED]


@pytest.mark.parametrize("status", [400, 413])
@pytest.mark.parametrize(("count", "place"), [(1, 0), (2, 1), (500, 0), (500, 250), (500, 499), (333, 17)])
def test_a_poison_document_is_found_in_few_requests(write: Write, status: int, count: int, place: int) -> None:
    poison = f"c{place:03}"
    server = Server(refuse=lambda ids, before: refusal(status, {"error": "poison"}) if poison in ids else None)
    results = write(server, companies(count))
    assert [result.id for result in results if result.outcome is not APPLIED] == [poison]
    assert results[place].outcome is REJECTED
    assert str(status) in results[place].reason
    assert len(server.requests) <= 2 * log2(count) + 2
    assert len(server.documents) == count - 1


def test_a_request_that_is_too_large_is_split_until_it_fits(write: Write, clock: Clock) -> None:
    server = Server(refuse=lambda ids, before: refusal(413) if len(ids) > 3 else None)
    assert outcomes(write(server, companies(12))) == [APPLIED] * 12
    assert [len(ids) for ids in server.requests] == [12, 6, 3, 3, 6, 3, 3]
    assert clock.pauses == []


def test_a_document_that_is_refused_is_rejected_with_the_reason(write: Write) -> None:
    server = Server(status=lambda company_id, before: 400 if company_id == "c001" else 0)
    results = write(server, companies(3))
    assert outcomes(results) == [APPLIED, REJECTED, APPLIED]
    assert results[1].reason == "planned: as the test says"


def test_a_lost_answer_is_found_to_have_been_taken(write: Write) -> None:
    server = Server(lose=lambda ids, before: ConnectionTimeout("timed out") if before == 0 else None)
    assert outcomes(write(server, companies(3))) == [UNCHANGED] * 3
    assert len(server.requests) == 2
    assert server.looked_up == [["c000", "c001", "c002"]]


def test_conflicts_are_told_apart_by_what_is_stored(write: Write) -> None:
    server = Server()
    write(server, [make_embedded("same"), make_embedded("newer", version=8), make_embedded("other", name="Other")])
    write(server, [DeletedCompany(id="deleted", version=3)])
    documents = [make_embedded("same"), make_embedded("newer"), make_embedded("other"), make_embedded("deleted")]
    results = write(server, [*documents, make_embedded("new")])
    assert outcomes(results) == [UNCHANGED, SUPERSEDED, REJECTED, SUPERSEDED, APPLIED]
    assert "newer version" in results[2].reason


def test_a_conflict_that_cannot_be_looked_up_is_sent_again(write: Write) -> None:
    server = Server()
    write(server, companies(2))
    server.look_up_problem = IndexUnavailable("planned")
    with pytest.raises(IndexUnavailable, match="planned"):
        write(server, companies(2))
    results = write(server, [*companies(2), make_embedded("new")])
    assert outcomes(results) == [FAILED, FAILED, APPLIED]


def test_a_conflict_with_something_that_is_gone_is_sent_again(write: Write) -> None:
    """A tombstone that was purged between the conflict and the look-up."""
    server = Server(status=lambda company_id, before: 409 if before == 0 else 0)
    assert outcomes(write(server, companies(2))) == [APPLIED] * 2
    assert len(server.requests) == 2


def test_a_conflict_with_something_older_is_sent_again(write: Write) -> None:
    """A look-up that met a copy which has not caught up must not pass for the newest state."""
    server = Server(status=lambda company_id, before: 409 if before == 1 else 0)
    write(server, [make_embedded("a", version=2)])
    assert outcomes(write(server, [make_embedded("a", version=4)])) == [APPLIED]
    assert server.documents["a"]["version"] == 4


def test_documents_of_one_id_are_written_one_after_the_other(write: Write) -> None:
    server = Server()
    documents = [make_embedded("a", version=2), make_embedded("b"), make_embedded("a", version=6)]
    results = write(server, [*documents, make_embedded("a", version=4), DeletedCompany(id="b", version=3)])
    assert outcomes(results) == [APPLIED, APPLIED, APPLIED, SUPERSEDED, APPLIED]
    assert [sorted(ids) for ids in server.requests] == [["a", "b"], ["a", "b"], ["a"]]
    assert [each["version"] for each in server.documents.values()] == [6, 3]


def test_requests_are_bounded_by_documents_and_by_bytes(write: Write) -> None:
    server = Server()
    write(server, companies(10), max_documents=4)
    assert [len(ids) for ids in server.requests] == [4, 4, 2]
    server = Server()
    one = Server()
    write(one, companies(1))
    write(server, companies(10), max_bytes=3 * one.bytes_sent[0])
    assert max(server.bytes_sent) <= 3 * one.bytes_sent[0]
    assert [len(ids) for ids in server.requests] == [3, 3, 3, 1]


def test_a_document_above_the_bound_goes_alone(write: Write) -> None:
    server = Server()
    large = make_embedded("large", description="word " * 2000)
    assert outcomes(write(server, [make_embedded("a"), large, make_embedded("b")], max_bytes=5000)) == [APPLIED] * 3
    assert server.requests == [["a"], ["large"], ["b"]]


@pytest.mark.parametrize("status", [401, 403])
def test_refused_access_is_not_tried_again(write: Write, clock: Clock, status: int) -> None:
    server = Server(refuse=lambda ids, before: refusal(status, {}))
    with pytest.raises(IndexUnavailable, match="refused access"):
        write(server, companies(3))
    assert len(server.requests) == 1
    assert clock.pauses == []


def test_an_index_that_is_gone_is_not_tried_again(write: Write) -> None:
    body = {"error": {"type": "index_not_found_exception", "reason": "no such index"}}
    server = Server(refuse=lambda ids, before: refusal(404, body))
    with pytest.raises(UnknownGeneration):
        write(server, companies(3))
    assert len(server.requests) == 1


SCRIPTS = st.lists(st.sampled_from(["ok", "busy", "lost", "large", "half"]), max_size=6)


@given(script=SCRIPTS, numbers=st.lists(st.integers(0, 5), min_size=1, max_size=12), chunk=st.integers(1, 5))
def test_whatever_happens_each_document_has_one_true_outcome(script: list[str], numbers: list[int], chunk: int) -> None:
    """After troubles that end, the newest version of each id is stored, and every result says what became of it."""

    def step(before: int) -> str:
        return script[before] if before < len(script) else "ok"

    def refuse(ids: list[str], before: int) -> Exception | None:
        if step(before) == "large" and len(ids) > 1:
            return refusal(413)
        return refusal(429) if step(before) == "busy" else None

    server = Server(
        refuse=refuse,
        lose=lambda ids, before: ConnectionTimeout("lost") if step(before) == "lost" else None,
        status=lambda company_id, before: 503 if step(before) == "half" and company_id < "c3" else 0,
    )
    documents = [make_embedded(f"c{number}", version=2 * place % 7) for place, number in enumerate(numbers)]
    clock = Clock()
    with closing(Cluster(ElasticSettings(hosts=("http://localhost:9200",), name="c"))) as cluster:
        cluster.packs_vectors = True
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cluster.client, "bulk", server.bulk)
            patch.setattr(cluster, "documents", server.look_up)
            writer = BulkWriter(cluster, max_documents=chunk, sleep=clock.sleep, monotonic=clock.monotonic)
            results = writer.write(TARGET, documents)
    newest: dict[str, EmbeddedCompany] = {}
    for document, result in zip(documents, results, strict=True):
        held = newest.get(document.id)
        assert result.id == document.id
        if held is None or document.version > held.version:
            newest[document.id] = document
            assert result.outcome in {APPLIED, UNCHANGED}
        else:
            assert result.outcome is (UNCHANGED if document.version == held.version else SUPERSEDED)
    stored = {each: server.documents[each]["version"] for each in server.documents}
    assert stored == {each: document.version for each, document in newest.items()}
