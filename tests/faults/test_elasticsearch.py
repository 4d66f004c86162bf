"""Single faults on a real Elasticsearch, each brought about on purpose. Random ones: `test_campaigns`."""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from similarity.company import EmbeddedCompany
from similarity.errors import IndexUnavailable, UnknownGeneration
from similarity.index.elastic import ElasticIndex, ElasticSettings
from similarity.index.protocol import WriteOutcome
from tests.factories import make_embedded, make_generation, make_refused
from tests.faults.conftest import LIVE
from tests.faults.fault_proxy import POISON, Disturbance, FaultProxy

pytestmark = pytest.mark.faults

APPLIED, UNCHANGED, REJECTED = WriteOutcome.APPLIED, WriteOutcome.UNCHANGED, WriteOutcome.REJECTED
SECONDS_TO_NOTICE = 90.0  # the server looks at its disk every 30 s


def companies(count: int, **poison: Mapping[str, Any]) -> list[EmbeddedCompany]:
    """c0, c1, ...; `poison` are fields of some of them, by id."""
    return [make_embedded(f"c{number}", **poison.get(f"c{number}", {})) for number in range(count)]


def outcomes(index: ElasticIndex, documents: Sequence[EmbeddedCompany]) -> list[WriteOutcome]:
    return [result.outcome for result in index.upsert(LIVE, documents)]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS_TO_NOTICE
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not in {SECONDS_TO_NOTICE:.0f} s"
        time.sleep(0.2)


@pytest.mark.parametrize("poisoned", [(0,), (317,), (499,), (3, 250, 251)])
def test_a_document_that_breaks_the_request_is_isolated_by_halving(
    index: ElasticIndex, proxy: FaultProxy, poisoned: tuple[int, ...]
) -> None:
    documents = companies(500, **{f"c{number}": {"description": f"Makes {POISON}."} for number in poisoned})
    before = proxy.bulk_requests
    results = index.upsert(LIVE, documents)
    requests = proxy.bulk_requests - before
    assert requests <= 1 + len(poisoned) * 2 * math.ceil(math.log2(500))
    rejected = [result for result in results if result.outcome is REJECTED]
    assert [result.id for result in rejected] == [f"c{number}" for number in poisoned]
    assert "answered 400" in rejected[0].reason
    assert sum(result.outcome is APPLIED for result in results) == 500 - len(poisoned)
    assert index.stats(LIVE).companies == 500 - len(poisoned)


def test_a_document_that_the_server_refuses_costs_no_further_request(index: ElasticIndex, proxy: FaultProxy) -> None:
    documents = companies(50, c7={"embedded_at": datetime(1969, 12, 31, tzinfo=UTC)})
    before = proxy.bulk_requests
    results = index.upsert(LIVE, documents)
    assert proxy.bulk_requests - before == 1
    [rejected] = [result for result in results if result.outcome is not APPLIED]
    assert (rejected.id, rejected.outcome) == ("c7", REJECTED)
    assert "1969" in rejected.reason


def test_a_number_too_long_for_the_server_stops_no_other_document(index: ElasticIndex) -> None:
    documents = companies(3)
    documents[1] = make_refused("c1")
    results = index.upsert(LIVE, documents)
    assert [result.outcome for result in results] == [APPLIED, REJECTED, APPLIED]
    assert "1501" in results[1].reason


def test_requests_that_are_too_large_on_the_way_are_made_smaller(index: ElasticIndex, proxy: FaultProxy) -> None:
    documents = companies(200, c150={"description": "long " * 10_000})
    proxy.disturb(Disturbance(kind="too_large", bytes=20_000))
    results = index.upsert(LIVE, documents)
    assert [result.id for result in results if result.outcome is not APPLIED] == ["c150"]
    assert results[150].outcome is REJECTED
    assert "413" in results[150].reason


@pytest.mark.parametrize("kind", ["answer_lost", "answer_cut", "request_repeated"])
def test_an_answer_that_did_not_arrive_is_no_loss(index: ElasticIndex, proxy: FaultProxy, kind: str) -> None:
    documents = companies(20)
    outcomes(index, documents[:1])
    proxy.disturb(Disturbance(kind=kind, chance=0.5))
    found = outcomes(index, documents)
    proxy.calm()
    assert set(found) <= {APPLIED, UNCHANGED}
    assert proxy.done[kind] or found
    assert outcomes(index, documents) == [UNCHANGED] * 20


@contextmanager
def full_disk(client: Elasticsearch) -> Iterator[None]:
    """The server takes its disk for full: it wants more free than any disk has."""
    prefix = "cluster.routing.allocation.disk"
    limits = {f"{prefix}.watermark.{name}": "100000tb" for name in ("low", "high", "flood_stage")}
    everything = {f"{prefix}.threshold_enabled": True, **limits, "cluster.info.update.interval": "10s"}
    client.cluster.put_settings(persistent=everything)
    try:
        yield
    finally:
        client.cluster.put_settings(persistent=dict.fromkeys(everything))


def test_a_full_disk_loses_nothing_and_is_named(
    index: ElasticIndex, client: Elasticsearch, settings: ElasticSettings
) -> None:
    def blocked() -> bool:
        found = client.indices.get_settings(index=f"{settings.name}-*", name="index.blocks.*")
        return bool(found)

    documents = companies(40)
    assert outcomes(index, documents[:20]) == [APPLIED] * 20
    with full_disk(client):
        wait_until(blocked, "the server notices that its disk is full")
        with pytest.raises(IndexUnavailable, match="disk usage exceeded flood-stage watermark"):
            index.upsert(LIVE, documents)
        with pytest.raises(IndexUnavailable, match=r"registry .*disk usage exceeded flood-stage watermark"):
            index.take_lease("x", holder="y", seconds=5)
        assert index.stats(LIVE).companies == 20
        assert len(index.similar(LIVE, documents[0].vector, k=5).hits) == 5
    wait_until(lambda: not blocked(), "the server notices that there is room again")
    assert outcomes(index, documents) == [UNCHANGED] * 20 + [APPLIED] * 20
    assert index.stats(LIVE).companies == 40


def test_an_index_deleted_by_hand_is_not_made_anew_by_a_write(
    index: ElasticIndex, client: Elasticsearch, settings: ElasticSettings
) -> None:
    outcomes(index, companies(1))
    [name] = client.indices.get(index=f"{settings.name}-{LIVE}-*")
    client.indices.delete(index=name)
    with pytest.raises(UnknownGeneration, match="does not exist"):
        index.upsert(LIVE, companies(3))
    assert not client.indices.exists(index=name)


@contextmanager
def answering(status: int, body: bytes, headers: Mapping[str, str]) -> Iterator[str]:
    """The URL of a server that always says the same."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        # The names that the standard library looks for.
        do_GET = do_PUT = do_POST = answer  # noqa: N815

        def log_message(self, *arguments: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


OLD_ELASTICSEARCH = b"""{"status": 400, "error": {
    "type": "media_type_header_exception",
    "reason": "Invalid media-type value on headers",
    "caused_by": {"type": "status_exception", "reason": "Accept version must be either version 8 or 7, but found 9"}
}}"""
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("status", "body", "headers", "message"),
    [
        (400, OLD_ELASTICSEARCH, {**JSON, "x-elastic-product": "Elasticsearch"}, "must be either version 8 or 7"),
        (200, b'{"cluster_name": "another product"}', JSON, "not Elasticsearch"),
        (405, b'{"error": "Incorrect HTTP method"}', JSON, "answered 405"),
        (301, b"moved", {"content-type": "text/plain", "location": "https://elsewhere"}, "answered 301"),
    ],
)
def test_a_server_of_another_version_or_kind_is_named(
    status: int, body: bytes, headers: Mapping[str, str], message: str
) -> None:
    with (
        answering(status, body, headers) as url,
        closing(ElasticIndex(ElasticSettings(hosts=(url,), name="x"))) as index,
    ):
        for step in (
            index.live,
            lambda: index.create_generation(make_generation(LIVE)),
            lambda: index.upsert(LIVE, companies(1)),
        ):
            with pytest.raises(IndexUnavailable, match=message):
                step()
