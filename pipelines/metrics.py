"""What a job counts: as Beam counters, which the runner adds up, and for Prometheus, from each worker process.

    similarity_messages_total{end="applied"}   messages by how they ended; the sum of all ends is what came in
    similarity_embedded_texts_total            texts that the encoder read
    similarity_reused_vectors_total            vectors that were taken over because the text was the same
    similarity_retries_total                   changes sent again because the store did not take them
    similarity_batch_messages                  how many messages a batch held
    similarity_batch_seconds                   how long a batch took, from the encoder to the store's answer
    similarity_delay_seconds                   from a message's time to its being searchable, but for the refresh
    similarity_lag_messages{partition="0"}     what a partition of the topic has left, as of its last reading
    similarity_source_failures_total           attempts to read that found Kafka away
    similarity_lost_offsets_total              offsets that retention deleted before they were read
    process_...                                memory, processor time, open files of the process

Beam's have the same names without `similarity_` and unit endings, in the namespace "similarity".
"""

import threading
from functools import cache

from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.runners.runner import PipelineResult
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, start_http_server

NAMESPACE = "similarity"
ENDS = ("applied", "unchanged", "superseded", "dead")
# The first worker process of a machine has the port asked for, the next ones those above it.
PORTS_TRIED = 32
BATCH_SIZES = (1, 4, 16, 64, 128, 256, 512, 1024)
SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)


class WorkerMetrics:
    """Prometheus' side, one of each process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.messages = Counter("similarity_messages", "Messages by end", ["end"], registry=self.registry)
        self.embedded = Counter("similarity_embedded_texts", "Texts the encoder read", registry=self.registry)
        self.reused = Counter("similarity_reused_vectors", "Vectors taken over", registry=self.registry)
        self.retries = Counter("similarity_retries", "Changes sent again", registry=self.registry)
        self.batch = Histogram("similarity_batch_messages", "Batch sizes", buckets=BATCH_SIZES, registry=self.registry)
        self.seconds = Histogram("similarity_batch_seconds", "Batch times", buckets=SECONDS, registry=self.registry)
        self.delay = Histogram("similarity_delay_seconds", "Age when written", buckets=SECONDS, registry=self.registry)
        self.lag = Gauge("similarity_lag_messages", "Left of a partition", ["partition"], registry=self.registry)
        self.source_failures = Counter("similarity_source_failures", "Kafka was away", registry=self.registry)
        self.lost_offsets = Counter("similarity_lost_offsets", "Deleted before read", registry=self.registry)
        for end in ENDS:
            # At 0 from the start: of a counter that appears with its first count, Prometheus sees no increase.
            self.messages.labels(end)
        self._serving = threading.Lock()
        self.port: int | None = None

    def counts(self) -> dict[str, int]:
        """What this process has counted so far, under the names that Beam's counters have."""
        found = {"embedded_texts": self.embedded, "reused_vectors": self.reused, "retries": self.retries}
        ends = [sample for sample in self.messages.collect()[0].samples if sample.name.endswith("_total")]
        return {
            **{f"messages_{sample.labels['end']}": int(sample.value) for sample in ends if sample.value},
            **{name: int(counter.collect()[0].samples[0].value) for name, counter in found.items()},
        }

    def serve(self, port: int) -> int:
        """Serves the metrics over HTTP on this port or one of those above it, once; returns which."""
        with self._serving:
            for candidate in range(port, port + PORTS_TRIED):
                if self.port is not None:
                    break
                try:
                    start_http_server(candidate, registry=self.registry)
                except OSError:
                    continue  # another worker process of this machine has it
                self.port = candidate
            if self.port is None:
                raise OSError(f"no port from {port} to {port + PORTS_TRIED - 1} is free for metrics")
            return self.port


@cache
def worker_metrics() -> WorkerMetrics:
    """Those of this process."""
    return WorkerMetrics()


class JobMetrics:
    """Counts for both sides at once. Use it inside a transform only: Beam counts by the bundle under way."""

    def __init__(self) -> None:
        self._worker = worker_metrics()
        self._embedded = Metrics.counter(NAMESPACE, "embedded_texts")
        self._reused = Metrics.counter(NAMESPACE, "reused_vectors")
        self._retries = Metrics.counter(NAMESPACE, "retries")
        self._batch = Metrics.distribution(NAMESPACE, "batch_messages")
        self._delay = Metrics.distribution(NAMESPACE, "delay_milliseconds")

    def ended(self, end: str) -> None:
        """One message ended: applied, unchanged, superseded or dead."""
        Metrics.counter(NAMESPACE, f"messages_{end}").inc()
        self._worker.messages.labels(end).inc()

    def embedded(self, texts: int) -> None:
        """The encoder read so many texts."""
        self._embedded.inc(texts)
        self._worker.embedded.inc(texts)

    def reused(self, vectors: int) -> None:
        """So many vectors were taken over from what is stored."""
        self._reused.inc(vectors)
        self._worker.reused.inc(vectors)

    def retried(self, changes: int) -> None:
        """So many changes are sent again."""
        self._retries.inc(changes)
        self._worker.retries.inc(changes)

    def batch(self, messages: int, seconds: float) -> None:
        """A batch was settled."""
        self._batch.update(messages)
        self._worker.batch.observe(messages)
        self._worker.seconds.observe(seconds)

    def delay(self, seconds: float) -> None:
        """A message was written so long after its time."""
        self._delay.update(round(1000 * seconds))
        self._worker.delay.observe(seconds)


def counted(result: PipelineResult) -> dict[str, int]:
    """What a job has counted so far, by name.

    The in-process runner adds its counters up by one nested generator for each bundle (Beam 2.77), so after
    some 900 of them Python refuses. Its workers are threads of this process, whose own counts then serve.
    """
    try:
        counters = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]
    except RecursionError:
        return worker_metrics().counts()
    return {counter.key.metric.name: counter.result for counter in counters}
