"""What scheduled runs come to is counted, whatever they end with. Times: tests/pipelines/test_reembed.py."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry

from pipelines.schedule import End, RunMetrics, cron_trigger
from similarity.errors import InvalidInput
from tests.servers.ports import free_ports

pytestmark = pytest.mark.pipelines

SATURDAY = datetime(2026, 1, 3, 3, tzinfo=UTC)
WEEK = timedelta(weeks=1)


class Clock:
    """Friday, until it is set."""

    def __init__(self) -> None:
        self.now = SATURDAY - timedelta(days=1)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> RunMetrics:
    return RunMetrics(cron_trigger("0 3 * * sat", zone="UTC"), now=clock)


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    found: float | None = registry.get_sample_value(f"similarity_reembed_{name}", labels)
    return found


def ends(metrics: RunMetrics) -> dict[End, float | None]:
    kinds: tuple[End, ...] = ("done", "refused", "failed")
    return {end: value(metrics.registry, "last", end=end) for end in kinds}


def ending(end: End) -> Callable[[], End]:
    return lambda: end


def test_before_the_first_run_nothing_has_ended_and_one_is_due(metrics: RunMetrics) -> None:
    assert ends(metrics) == {"done": 0, "refused": 0, "failed": 0}
    assert value(metrics.registry, "runs_total", end="failed") == 0
    assert value(metrics.registry, "due_timestamp_seconds") == SATURDAY.timestamp()
    assert value(metrics.registry, "success_timestamp_seconds") == 0


def test_the_last_end_is_one_of_them_and_all_are_counted(metrics: RunMetrics) -> None:
    planned: list[End] = ["failed", "refused", "done", "refused"]
    for end in planned:
        metrics.counted(ending(end))()
        assert ends(metrics) == {each: each == end for each in ("done", "refused", "failed")}
    assert value(metrics.registry, "runs_total", end="refused") == 2


def test_a_run_that_raises_has_failed(metrics: RunMetrics) -> None:
    def broken() -> End:
        raise RuntimeError("the runner died")

    with pytest.raises(RuntimeError, match="the runner died"):
        metrics.counted(broken)()
    assert ends(metrics)["failed"] == 1
    assert value(metrics.registry, "running") == 0


def test_what_is_due_stays_behind_until_the_run_has_ended(metrics: RunMetrics, clock: Clock) -> None:
    def job() -> End:
        clock.now = SATURDAY + timedelta(hours=2)
        assert value(metrics.registry, "running") == 1
        assert value(metrics.registry, "due_timestamp_seconds") == SATURDAY.timestamp()
        return "done"

    metrics.counted(job)()
    assert value(metrics.registry, "due_timestamp_seconds") == (SATURDAY + WEEK).timestamp()
    assert value(metrics.registry, "success_timestamp_seconds") == clock.now.timestamp()


def test_a_run_that_was_not_done_is_no_success(metrics: RunMetrics, clock: Clock) -> None:
    metrics.counted(ending("done"))()
    before, clock.now = clock.now, SATURDAY
    metrics.counted(ending("refused"))()
    assert value(metrics.registry, "success_timestamp_seconds") == before.timestamp()


def test_times_that_never_come_are_never_overdue(clock: Clock) -> None:
    metrics = RunMetrics(cron_trigger("0 0 30 2 *", zone="UTC"), now=clock)
    assert value(metrics.registry, "due_timestamp_seconds") == float("inf")


def test_the_metrics_are_served_on_the_port_that_was_named_or_not_at_all(metrics: RunMetrics) -> None:
    [port] = free_ports(1)
    metrics.serve(port)
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        served = answer.read().decode()
    assert 'similarity_reembed_runs_total{end="done"} 0.0' in served
    assert "process_resident_memory_bytes" in served
    with pytest.raises(InvalidInput, match=f"port {port} .* name another one"):
        metrics.serve(port)
