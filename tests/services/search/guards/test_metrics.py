"""What is counted and measured."""

import socket
from urllib.request import urlopen

import pytest
from prometheus_client import generate_latest

from services.search.guards.concurrency import Gate, Gates
from services.search.guards.lifecycle import Lifecycle
from services.search.guards.metrics import ServiceMetrics
from similarity.errors import UnknownGeneration
from similarity.index.sqlite import SqliteIndex


def exposed(metrics: ServiceMetrics) -> str:
    text: str = generate_latest(metrics.registry).decode()
    return text


def test_two_applications_in_one_process_count_apart() -> None:
    one, other = ServiceMetrics(), ServiceMetrics()
    one.rejected("overloaded")
    assert 'search_rejected_total{reason="overloaded"} 1.0' in exposed(one)
    assert "overloaded" not in exposed(other)


def test_calls_of_the_index_are_timed_and_answered_as_before(read_only_index: SqliteIndex) -> None:
    metrics = ServiceMetrics()
    index = metrics.timed_index(read_only_index)
    assert index.live() == read_only_index.live()
    assert set(index.get("first", ["acme"])) == {"acme"}
    assert index.generations() == read_only_index.generations()
    text = exposed(metrics)
    assert 'search_index_seconds_count{call="live"} 1.0' in text
    assert 'search_index_seconds_count{call="get"} 1.0' in text


def test_a_call_that_raises_is_timed_and_counted_too(read_only_index: SqliteIndex) -> None:
    metrics = ServiceMetrics()
    with pytest.raises(UnknownGeneration):
        metrics.timed_index(read_only_index).get("none", ["acme"])
    text = exposed(metrics)
    assert 'search_index_seconds_count{call="get"} 1.0' in text
    assert 'search_part_failures_total{error="UnknownGeneration",part="index"} 1.0' in text


class Encoder:
    encoder_id = "e"

    def encode(self, texts: list[str]) -> list[str]:
        return texts


def test_calls_of_the_encoder_are_timed_and_its_other_members_are_its_own() -> None:
    metrics = ServiceMetrics()
    encoder = metrics.timed_encoder(Encoder())
    assert encoder.encode(["a"]) == ["a"]
    assert encoder.encoder_id == "e"
    assert 'search_encoder_seconds_count{call="encode"} 1.0' in exposed(metrics)
    with pytest.raises(AttributeError):
        encoder.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_caches_are_counted_by_hit_and_miss() -> None:
    metrics = ServiceMetrics()
    for hit in (True, True, False):
        metrics.cache_asked("text", hit=hit)
    assert 'search_cache_requests_total{cache="text",result="hit"} 2.0' in exposed(metrics)
    assert 'search_cache_requests_total{cache="text",result="miss"} 1.0' in exposed(metrics)


def test_how_full_the_gates_are_and_whether_it_stops_is_read_at_each_scrape() -> None:
    metrics = ServiceMetrics()
    gates = Gates(quick=Gate(at_once=2, queue=1, seconds=1), heavy=Gate(at_once=1, queue=1, seconds=1))
    lifecycle = Lifecycle()
    metrics.watch(gates, lifecycle)
    assert 'search_inside{gate="quick"} 0.0' in exposed(metrics)
    gates.quick.inside = 2
    assert 'search_inside{gate="quick"} 2.0' in exposed(metrics)
    assert 'search_waiting{gate="heavy"} 0.0' in exposed(metrics)
    assert "search_accepting 1.0" in exposed(metrics)
    lifecycle.stop()
    assert "search_accepting 0.0" in exposed(metrics)


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
    return number


def test_they_are_served_on_a_port_of_their_own_until_stopped(port: int) -> None:
    metrics = ServiceMetrics()
    stop = metrics.serve("127.0.0.1", port)
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            assert b"search_in_flight 0.0" in answer.read()
    finally:
        stop()
    with pytest.raises(OSError, match="refused"):
        urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5)
