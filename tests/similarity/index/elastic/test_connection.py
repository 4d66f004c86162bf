import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import ApiError, ConnectionTimeout, SSLError, TransportError
from elasticsearch import ConnectionError as NoConnection

from similarity.errors import IndexUnavailable, InvalidInput, SimilarityError, UnknownGeneration
from similarity.index.elastic.connection import Cluster, error_text
from similarity.index.elastic.settings import PREFIX, ElasticSettings
from tests.similarity.client.service import Service, answering
from tests.similarity.index.elastic.answers import refusal

SECRET = "swordfish"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    settings = ElasticSettings(hosts=("https://localhost:9200",), name="companies", username="elastic", password=SECRET)
    with closing(Cluster(settings)) as cluster:
        yield cluster


def explained(cluster: Cluster, error: Exception) -> SimilarityError:
    """What the caller gets for an error of the client."""
    with pytest.raises(SimilarityError) as raised, cluster.explained():
        raise error
    assert raised.value.__cause__ is error
    assert SECRET not in "".join(traceback.format_exception(raised.value))
    return raised.value


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("plain text", ("error", "plain text")),
        ({"type": "a", "reason": "b"}, ("a", "b")),
        ({"type": "a"}, ("a", "")),
        ({}, ("error", "")),
        ({"type": "a", "reason": "b", "caused_by": {"type": "c", "reason": "d"}}, ("a", "b (c: d)")),
        (
            {"type": "a", "reason": "b", "caused_by": {"type": "c", "reason": "d", "caused_by": {"reason": "e"}}},
            ("a", "b (c: d (error: e))"),
        ),
        ({"type": "a", "reason": "b", "root_cause": [{"type": "a", "reason": "b"}]}, ("a", "b")),
        ({"type": "a", "reason": "b", "root_cause": [{"type": "c", "reason": "d"}]}, ("a", "b (c: d)")),
        ({"type": "a", "reason": "b", "caused_by": "text"}, ("a", "b")),
    ],
)
def test_an_error_is_told_with_the_cause_that_helps(error: Any, text: tuple[str, str]) -> None:
    assert error_text(error) == text


@pytest.mark.parametrize("status", [401, 403])
def test_refused_access_says_what_to_set(cluster: Cluster, status: int) -> None:
    problem = explained(cluster, refusal(status, {"error": {"type": "security_exception", "reason": SECRET[:4]}}))
    assert isinstance(problem, IndexUnavailable)
    for name in ("API_KEY", "USERNAME", "PASSWORD"):
        assert PREFIX + name in str(problem)
    assert "https://localhost:9200 (companies)" in str(problem)
    assert "companies-*" in str(problem)


def test_a_missing_index_is_a_generation_that_is_gone(cluster: Cluster) -> None:
    body = {"error": {"type": "index_not_found_exception", "reason": "no such index [companies-first-1]"}}
    problem = explained(cluster, refusal(404, body))
    assert isinstance(problem, UnknownGeneration)
    assert "companies-first-1" in str(problem)


@pytest.mark.parametrize("place", ["caused_by", "root_cause"])
def test_an_index_that_vanished_meanwhile_is_a_generation_that_is_gone(cluster: Cluster, place: str) -> None:
    gone = {"type": "index_not_found_exception", "reason": "no such index [companies-first-1]"}
    error = {"type": "no_shard_available_action_exception", place: gone if place == "caused_by" else [gone]}
    assert isinstance(explained(cluster, refusal(503, {"error": error})), UnknownGeneration)


@pytest.mark.parametrize("body", [None, "text", {"error": "text"}, {}, {"error": {"type": "a", "reason": "b" * 9999}}])
def test_any_other_answer_is_told_with_its_status(cluster: Cluster, body: Any) -> None:
    problem = explained(cluster, refusal(503, body))
    assert isinstance(problem, IndexUnavailable)
    assert "answered 503" in str(problem)
    assert len(str(problem)) < 500


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionTimeout("took too long"), "did not answer in time"),
        (NoConnection("refused"), "cannot be reached"),
        (SSLError("self-signed certificate in certificate chain"), "certificate"),
    ],
)
def test_a_cluster_that_does_not_answer_is_named(cluster: Cluster, error: TransportError, words: str) -> None:
    problem = explained(cluster, error)
    assert isinstance(problem, IndexUnavailable)
    assert words in str(problem)
    assert "https://localhost:9200 (companies)" in str(problem)


@pytest.mark.parametrize("content", [None, "no certificate"], ids=["missing", "empty"])
def test_a_file_of_authorities_that_cannot_be_used_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidInput, match=rf"{PREFIX}CA_CERTS is '{path}'"):
        Cluster(ElasticSettings(hosts=("https://localhost:9200",), name="companies", ca_certs=str(path)))


class Nodes:
    """Stands in for the client's `nodes`: nodes of these versions, or an error."""

    def __init__(self, answer: dict[str, Any] | Exception) -> None:
        self.answer = answer
        self.asked = 0

    def info(self, **_: Any) -> dict[str, Any]:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def nodes(*versions: str) -> dict[str, Any]:
    return {"nodes": {f"node-{number}": {"version": version} for number, version in enumerate(versions)}}


@pytest.mark.parametrize(
    ("answer", "packs"),
    [
        (nodes("9.5.0"), True),
        (nodes("9.3.0", "9.10.1", "10.0.0-SNAPSHOT"), True),
        (nodes("9.2.8"), False),
        (nodes("9.5.0", "9.2.8"), False),
        (refusal(403, {}), False),
        ({}, False),
    ],
    ids=["new", "newer", "old", "mixed", "not allowed", "nothing told"],
)
def test_vectors_are_packed_only_where_every_node_reads_them(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any] | ApiError, packs: bool
) -> None:
    told = Nodes(answer)
    monkeypatch.setattr(cluster.retrying, "nodes", told)
    assert [cluster.packs_vectors, cluster.packs_vectors] == [packs, packs]
    assert told.asked == 1


def test_a_cluster_that_cannot_be_asked_is_asked_again_next_time(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Nodes(NoConnection("refused"))
    monkeypatch.setattr(cluster.retrying, "nodes", told)
    for _ in range(2):
        with pytest.raises(IndexUnavailable, match="cannot be reached"):
            _ = cluster.packs_vectors
    assert told.asked == 2


CONTEXT_MISSING = {"type": "search_context_missing_exception", "reason": "No search context found for id [7]"}
INTERRUPTED = {"type": "search_phase_execution_exception", "reason": "all shards failed", "caused_by": CONTEXT_MISSING}
GONE = {"type": "index_not_found_exception", "reason": "no such index"}
FOUND = {"_shards": {"failed": 0}, "hits": {}}


class Searches:
    """Stands in for the client's `msearch`: gives these answers, one after the other, then the last for ever."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self, *, searches: list[Any]) -> dict[str, Any]:
        self.asked += 1
        return {"responses": [self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]]}


@pytest.mark.parametrize(
    "interrupted",
    [
        {"error": INTERRUPTED, "status": 404},
        {"_shards": {"failed": 1, "failures": [{"reason": INTERRUPTED}]}, "hits": {}},
    ],
    ids=["of all shards", "of one shard"],
)
def test_a_search_that_lost_its_shard_on_the_way_is_asked_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, interrupted: dict[str, Any]
) -> None:
    told = Searches(interrupted, FOUND)
    monkeypatch.setattr(cluster.retrying, "msearch", told)
    assert cluster.search("companies-first-1", {}) == FOUND
    assert told.asked == 2
    monkeypatch.setattr(cluster.retrying, "msearch", Searches(interrupted, {"error": GONE, "status": 404}))
    with pytest.raises(UnknownGeneration):
        cluster.search("companies-first-1", {})
    monkeypatch.setattr(cluster.retrying, "msearch", Searches(interrupted))
    with pytest.raises(IndexUnavailable, match="search_context_missing_exception"):
        cluster.search("companies-first-1", {})


FROM_ELASTICSEARCH = ("content-type: application/json", "x-elastic-product: Elasticsearch")


def test_only_the_retrying_client_repeats_a_write() -> None:
    busy = answering(b"{}", *FROM_ELASTICSEARCH, status="503 Service Unavailable")
    stored = answering(b'{"result": "created"}', *FROM_ELASTICSEARCH)
    with Service(busy, stored) as server, closing(_cluster_at(server)) as cluster:
        assert cluster.retrying.index(index="companies-lists", id="a", document={})["result"] == "created"
        assert len(server.requests) == 2
    with Service(busy, stored) as server, closing(_cluster_at(server)) as cluster:
        with pytest.raises(ApiError):
            cluster.client.index(index="companies-lists", id="a", document={})
        assert len(server.requests) == 1


def _cluster_at(server: Service) -> Cluster:
    return Cluster(ElasticSettings(hosts=(server.url,), name="companies"))
