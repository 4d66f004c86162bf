"""Metrics of a job: as Beam counters, which the runner aggregates, and for Prometheus, from each worker process.

    similarity_messages_total{end="applied"}   messages by outcome; their sum is the number of messages read
    similarity_embedded_texts_total            texts that were encoded
    similarity_reused_vectors_total            stored vectors that were reused because the text had not changed
    similarity_warned_values_total             values that were ignored because they are invalid, or are ambiguous
    similarity_retries_total                   changes sent again because the index did not accept them
    similarity_batch_messages                  messages per batch
    similarity_batch_seconds                   seconds per batch, from encoding to the answer of the index
    similarity_delay_seconds                   from the time of a message to its write (the index refresh comes after)
    similarity_lag_messages{partition="0"}     messages of a partition that are not read yet, at the last read
    similarity_source_failures_total           reads that failed because Kafka was unavailable
    similarity_lost_offsets_total              offsets that retention deleted before they were read
    process_...                                memory, CPU time, open files of the process

Beam's metrics, in the namespace "similarity", have these names without `similarity_` and `_total`. A label is a part of
the name (`messages_applied`), and the delay is in milliseconds. Durations of batches and failed reads are not there.
"""

import threading
from functools import cache

from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.runners.runner import PipelineResult
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, start_http_server

NAMESPACE = "similarity"
ENDS = ("applied", "unchanged", "superseded", "dead")
# The first worker process of a machine uses the requested port, the next ones the ports above it.
PORTS_TRIED = 32
BATCH_SIZES = (1, 4, 16, 64, 128, 256, 512, 1024)
SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)


class WorkerMetrics:
    """The Prometheus metrics of a process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.messages = Counter("similarity_messages", "Messages by end", ["end"], registry=self.registry)
        self.counters = {
            "embedded_texts": Counter("similarity_embedded_texts", "Texts the encoder read", registry=self.registry),
            "reused_vectors": Counter("similarity_reused_vectors", "Vectors taken over", registry=self.registry),
            "warned_values": Counter("similarity_warned_values", "Ignored or ambiguous", registry=self.registry),
            "retries": Counter("similarity_retries", "Changes sent again", registry=self.registry),
        }
        """Counters without labels, by the names of Beam's counters."""
        self.batch = Histogram("similarity_batch_messages", "Batch sizes", buckets=BATCH_SIZES, registry=self.registry)
        self.seconds = Histogram("similarity_batch_seconds", "Batch times", buckets=SECONDS, registry=self.registry)
        self.delay = Histogram("similarity_delay_seconds", "Age when written", buckets=SECONDS, registry=self.registry)
        self.lag = Gauge("similarity_lag_messages", "Left of a partition", ["partition"], registry=self.registry)
        self.source_failures = Counter("similarity_source_failures", "Kafka was away", registry=self.registry)
        self.lost_offsets = Counter("similarity_lost_offsets", "Deleted before read", registry=self.registry)
        for end in ENDS:
            # Create the counters at 0: Prometheus sees no increase if a counter first appears with a count.
            self.messages.labels(end)
        self._serving = threading.Lock()
        self.port: int | None = None

    def counts(self) -> dict[str, int]:
        """Return the counts of this process so far, by the names of Beam's counters."""
        ends = [sample for sample in self.messages.collect()[0].samples if sample.name.endswith("_total")]
        return {
            **{f"messages_{sample.labels['end']}": int(sample.value) for sample in ends if sample.value},
            **{name: int(counter.collect()[0].samples[0].value) for name, counter in self.counters.items()},
        }

    def serve(self, port: int) -> int:
        """Serve the metrics over HTTP on the first free port from `port` up, once; return the port."""
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
                raise OSError(f"no port from {port} to {port + PORTS_TRIED - 1} is free for metrics; choose another")
            return self.port


@cache
def worker_metrics() -> WorkerMetrics:
    """Return the metrics of this process."""
    return WorkerMetrics()


class JobMetrics:
    """Updates Beam's and Prometheus' metrics. Use it only in a DoFn: Beam counts by the current Beam bundle."""

    def __init__(self) -> None:
        self._worker = worker_metrics()
        self._batch = Metrics.distribution(NAMESPACE, "batch_messages")
        self._delay = Metrics.distribution(NAMESPACE, "delay_milliseconds")

    def ended(self, end: str) -> None:
        """Count one message by its outcome: applied, unchanged, superseded or dead."""
        Metrics.counter(NAMESPACE, f"messages_{end}").inc()
        self._worker.messages.labels(end).inc()

    def count(self, name: str, number: int) -> None:
        """Count embedded_texts, reused_vectors, warned_values, or retries: changes that are sent again."""
        Metrics.counter(NAMESPACE, name).inc(number)
        self._worker.counters[name].inc(number)

    def batch(self, messages: int, seconds: float) -> None:
        """Record the size and the duration of a batch."""
        self._batch.update(messages)
        self._worker.batch.observe(messages)
        self._worker.seconds.observe(seconds)

    def delay(self, seconds: float) -> None:
        """Record the seconds from the time of a message to its write."""
        self._delay.update(round(1000 * seconds))
        self._worker.delay.observe(seconds)


def counted(result: PipelineResult) -> dict[str, int]:
    """Return the counters of a job so far, by name.

    The in-process runner sums its counters with one nested generator for each Beam bundle (Beam 2.77), so after about
    900 bundles Python raises RecursionError. The runner's workers are threads of this process, so the counts of this
    process are returned then.
    """
    try:
        counters = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]
    except RecursionError:
        return worker_metrics().counts()
    return {counter.key.metric.name: counter.result for counter in counters}
