"""What a worker process shows from its first moment on."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pipelines import metrics, schedule
from pipelines.metrics import ENDS, WorkerMetrics
from pipelines.schedule import RunMetrics, cron_trigger
from tests.deploy.observe_files import PROCESS_METRICS, declared_metrics

pytestmark = pytest.mark.pipelines


def served(registry: CollectorRegistry) -> set[str]:
    """The names of what a registry gives, without suffixes of histograms and times of creation."""
    types = (line.split() for line in generate_latest(registry).decode().splitlines() if line.startswith("# TYPE"))
    return {name for _, _, name, _ in types if not name.endswith("_created")}


@pytest.mark.parametrize(
    ("module", "registry"),
    [
        (metrics, WorkerMetrics().registry),
        (schedule, RunMetrics(cron_trigger("0 3 * * sat", zone="UTC")).registry),
    ],
)
def test_what_dashboards_are_checked_against_is_what_is_served(module: object, registry: CollectorRegistry) -> None:
    read = declared_metrics(Path(str(module.__file__)).read_text(encoding="utf-8"))  # type: ignore[attr-defined]
    families = {name.removesuffix("_bucket") for name in read if not name.endswith(("_sum", "_count"))}
    assert served(registry) == families | PROCESS_METRICS


def test_every_end_is_there_before_the_first_message_came_to_it() -> None:
    registry = WorkerMetrics().registry
    assert [registry.get_sample_value("similarity_messages_total", {"end": end}) for end in ENDS] == [0, 0, 0, 0]


def test_ends_that_no_message_came_to_are_not_told() -> None:
    worker = WorkerMetrics()
    worker.messages.labels("applied").inc(2)
    assert worker.counts() == {
        "messages_applied": 2,
        "embedded_texts": 0,
        "reused_vectors": 0,
        "warned_values": 0,
        "retries": 0,
    }
