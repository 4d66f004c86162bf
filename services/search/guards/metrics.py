"""Prometheus metrics of the service.

They are served on a port of their own, so that only operators reach them. Labels hold route templates, never paths,
ids or names of callers, so that no caller can make the number of series grow.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, start_http_server

from .concurrency import Gates
from .lifecycle import Lifecycle

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
INDEX_CALLS = ("similar", "get", "resolve", "resolve_many", "find", "live", "upsert", "stats")
ENCODER_CALLS = ("encode",)

Part = TypeVar("Part")


class ServiceMetrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.request_seconds = Histogram(
            "search_request_seconds",
            "From a request's arrival to the end of its answer.",
            ("route", "method", "status"),
            buckets=SECONDS,
            registry=self.registry,
        )
        self._index_seconds = Histogram(
            "search_index_seconds", "A call of the index.", ("call",), buckets=SECONDS, registry=self.registry
        )
        self._encoder_seconds = Histogram(
            "search_encoder_seconds", "A call of the encoder.", ("call",), buckets=SECONDS, registry=self.registry
        )
        self._failures = Counter(
            "search_part_failures", "Calls that raised.", ("part", "error"), registry=self.registry
        )
        self._cache = Counter(
            "search_cache_requests", "Questions to a cache.", ("cache", "result"), registry=self.registry
        )
        self._rejected = Counter(
            "search_rejected",
            "Requests that were refused before their work, by reason.",
            ("reason",),
            registry=self.registry,
        )
        self.in_flight = Gauge("search_in_flight", "Requests under way, waiting ones too.", registry=self.registry)

    def rejected(self, reason: str) -> None:
        """Count a request that was refused before its work."""
        self._rejected.labels(reason).inc()

    def cache_asked(self, cache: str, *, hit: bool) -> None:
        """Count a look-up in a cache."""
        self._cache.labels(cache, "hit" if hit else "miss").inc()

    def watch(self, gates: Gates, lifecycle: Lifecycle) -> None:
        """Add gauges of the gates and of the state of the service, read at each scrape."""
        accepting = Gauge(
            "search_accepting", "1, or 0 from the moment the service was told to stop.", registry=self.registry
        )
        accepting.set_function(lambda: not lifecycle.stopping)
        inside = Gauge("search_inside", "Requests that hold a place.", ("gate",), registry=self.registry)
        waiting = Gauge("search_waiting", "Requests that wait for a place.", ("gate",), registry=self.registry)
        for name, gate in (("quick", gates.quick), ("heavy", gates.heavy)):
            inside.labels(name).set_function(lambda gate=gate: gate.inside)
            waiting.labels(name).set_function(lambda gate=gate: gate.waiting)

    def timed_index(self, index: Part) -> Part:
        """Return `index` with its calls timed."""
        return self._timed(index, INDEX_CALLS, "index", self._index_seconds)

    def timed_encoder(self, encoder: Part) -> Part:
        """Return `encoder` with its calls timed."""
        return self._timed(encoder, ENCODER_CALLS, "encoder", self._encoder_seconds)

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Serve the metrics at `http://host:port/metrics` from a thread; return a function that stops it."""
        server, thread = start_http_server(port, host, registry=self.registry)

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop

    def _timed(self, part: Part, names: tuple[str, ...], kind: str, seconds: Histogram) -> Part:
        def timed(name: str) -> Callable[..., Any]:
            call: Callable[..., Any] = getattr(part, name)

            @wraps(call)
            def timed_call(*arguments: Any, **named: Any) -> Any:
                with seconds.labels(name).time():
                    try:
                        return call(*arguments, **named)
                    except Exception as error:
                        self._failures.labels(kind, type(error).__name__).inc()
                        raise

            return timed_call

        return cast("Part", Timed(part, {name: timed(name) for name in names}))


class Timed:
    """A stand-in for an object: `calls` replace methods of it, every other attribute is its own."""

    def __init__(self, part: object, calls: dict[str, Callable[..., Any]]) -> None:
        self._part = part
        self.__dict__.update(calls)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)
