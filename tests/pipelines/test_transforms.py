"""Messages through Ingest on the in-process runner, into a real embedded index."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineResult
from apache_beam.testing.util import assert_that, equal_to

from pipelines.metrics import NAMESPACE
from pipelines.transforms import EmbedAndWrite, Ingest
from pipelines.worker_settings import WorkerSettings
from similarity.index.sqlite import SqliteIndex
from similarity.ingest.messages import Message

pytestmark = pytest.mark.pipelines

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def message(number: int, value: dict[str, Any] | bytes | None, *, key: str = "", minutes: int = 0) -> Message:
    raw = json.dumps(value).encode() if isinstance(value, dict) else value
    return Message(position=f"test#{number}", key=key.encode() or None, value=raw, time=T0 + timedelta(minutes=minutes))


def record(company_id: str, description: str = "Makes fast boats.") -> dict[str, Any]:
    return {"id": company_id, "name": f"Company {company_id}", "description": description}


def run(
    messages: Sequence[Message], worker_settings: WorkerSettings, *, ends: Sequence[tuple[str, str]], **options: Any
) -> PipelineResult:
    """Runs them all; `ends` are the expected positions, each with its outcome or the stage of its dead letter."""
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        ingested = pipeline | beam.Create(messages) | Ingest(worker_settings, **options)
        taken = ingested.stored | beam.Map(lambda each: (each.position, str(each.outcome)))
        dead = ingested.dead | beam.Map(lambda letter: (letter.message.position, str(letter.stage)))
        assert_that((taken, dead) | beam.Flatten(), equal_to(list(ends)))
    return pipeline.result


def counted(result: PipelineResult) -> dict[str, int]:
    counters = result.metrics().query(beam.metrics.MetricsFilter().with_namespace(NAMESPACE))["counters"]
    return {counter.key.metric.name: counter.committed for counter in counters}


def test_a_message_becomes_a_company_in_the_index(index: SqliteIndex, worker_settings: WorkerSettings) -> None:
    run([message(1, record("a"))], worker_settings, ends=[("test#1", "applied")])
    stored = index.get(index.live().name, ["a"])["a"]
    assert stored.company.description == "Makes fast boats."
    assert np.linalg.norm(stored.vector) == pytest.approx(1)


def test_an_instance_takes_its_lease_with_its_first_batch(index: SqliteIndex, worker_settings: WorkerSettings) -> None:
    # A runner also starts instances while the index is away.
    instance = EmbedAndWrite(worker_settings)
    instance.setup()
    assert index.leases() == []
    instance.teardown()


def test_what_cannot_be_understood_is_a_dead_letter_and_the_rest_goes_on(
    index: SqliteIndex, worker_settings: WorkerSettings
) -> None:
    run(
        [message(1, b"{"), message(2, record("b")), message(3, {"id": "c"}), message(4, None)],
        worker_settings,
        ends=[("test#1", "decode"), ("test#2", "applied"), ("test#3", "decode"), ("test#4", "decode")],
    )
    assert index.stats(index.live().name).companies == 1


@pytest.mark.parametrize("minutes", [5, 6])
def test_a_message_from_ahead_of_the_clock_is_a_dead_letter_that_can_be_replayed(
    index: SqliteIndex, worker_settings: WorkerSettings, monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    del index
    ahead = message(1, record("a"), minutes=minutes)
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.transforms.utc_now", lambda: T0)  # a worker whose clock is behind
        run([ahead], worker_settings, ends=[("test#1", "applied" if minutes == 5 else "decode")])
    run([ahead], worker_settings, ends=[("test#1", "unchanged" if minutes == 5 else "applied")])


def test_every_message_has_one_end_and_is_counted_under_it(index: SqliteIndex, worker_settings: WorkerSettings) -> None:
    del index
    run([message(1, record("a"), minutes=5)], worker_settings, ends=[("test#1", "applied")])
    result = run(
        [
            message(1, record("a"), minutes=5),  # read again
            message(2, record("a", "Makes fast cars."), minutes=1),  # late
            message(3, record("a", "Makes fast cars."), minutes=5),  # contradicts the first
            message(4, None, key="z"),
            message(5, b"[]"),
            message(6, record("b", "Makes iron anvils.")),
        ],
        worker_settings,
        ends=[
            ("test#1", "unchanged"),
            ("test#2", "superseded"),
            ("test#3", "write"),
            ("test#4", "applied"),
            ("test#5", "decode"),
            ("test#6", "applied"),
        ],
    )
    counts = counted(result)
    assert {name: count for name, count in counts.items() if name.startswith("messages_")} == {
        "messages_unchanged": 1,
        "messages_superseded": 1,
        "messages_applied": 2,
        "messages_dead": 2,
    }
    # Company a's text is stored; that of cars is read once, and b's.
    assert (counts["embedded_texts"], counts["reused_vectors"]) == (2, 2)


def test_batches_are_cut_and_nothing_is_left_in_one(index: SqliteIndex, worker_settings: WorkerSettings) -> None:
    messages = [message(n, record(f"c{n}")) for n in range(25)]
    run(messages, worker_settings, ends=[(each.position, "applied") for each in messages], batch_messages=10)
    assert index.stats(index.live().name).companies == 25


def test_a_worker_gives_its_lease_back(index: SqliteIndex, worker_settings: WorkerSettings) -> None:
    run([message(1, record("a"))], worker_settings, ends=[("test#1", "applied")])
    assert index.leases() == []
