"""Telemetry of each request: a measurement, a line in the log and, if enabled, a span."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeAlias

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from similarity.errors import InvalidInput

from .callers import CALLER
from .logs import FIELDS
from .metrics import ServiceMetrics
from .refusals import OPEN_FOLDER, REFUSED

NO_ROUTE = "-"
"""The route in logs and metrics for a request that no route matched."""

METHODS = frozenset({"GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})

log = logging.getLogger("services.search.requests")


Tracing: TypeAlias = Callable[[Scope], AbstractContextManager[Any]]
"""Opens the OpenTelemetry span of a request."""


@dataclass(eq=False)
class Telemetry:
    """Records each request when its answer has ended: its route template, never its path or body.

    `clients`: whether the log also holds the address of the client.
    """

    app: ASGIApp
    _: KW_ONLY
    metrics: ServiceMetrics
    tracing: Tracing | None = None
    clients: bool = False
    clock: Callable[[], float] = time.perf_counter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or connection (ASGI)."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        with (self.tracing or nullcontext)(scope) as span:
            await self._answer(scope, receive, send, span)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, span: Any) -> None:
        started, status, is_recorded = self.clock(), 0, False

        def record_once() -> None:
            nonlocal is_recorded
            if not is_recorded:
                is_recorded = True
                self._record(scope, status, self.clock() - started, span)

        async def send_and_record(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                record_once()

        self.metrics.in_flight.inc()
        try:
            await self.app(scope, receive, send_and_record)
        except Exception:
            status = 500
            raise
        finally:
            self.metrics.in_flight.dec()
            # The answer is incomplete after an error, or if the client hung up.
            record_once()

    def _record(self, scope: Scope, status: int, seconds: float, span: Any) -> None:
        route, caller, refused = route_of(scope), scope.get(CALLER), scope.get(REFUSED)
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.metrics.request_seconds.labels(route, method, str(status)).observe(seconds)
        if refused is not None:
            self.metrics.rejected(refused)
        if self.tracing is not None:
            span.update_name(f"{method} {route}")
            span.set_attribute("http.route", route)
            span.set_attribute("http.response.status_code", status)
            if status >= 500:
                span.set_attribute("error.type", str(status))
        if log.isEnabledFor(logging.INFO):
            fields = {"method": method, "route": route, "status": status, "ms": round(seconds * 1000, 2)}
            fields["caller"] = caller.name if caller else None
            if refused is not None:
                fields["refused"] = refused
            if self.clients:
                # Without blanks: a client may have written it into X-Forwarded-For, and a blank begins the next field.
                fields["client"] = "".join(str((scope.get("client") or ("unknown",))[0]).split())
            log.info("request", extra={FIELDS: fields})


def route_of(scope: Scope) -> str:
    """Return the template of the route that a request reached; NO_ROUTE if none."""
    route = scope.get("route")
    if route is not None:
        return str(route.path)
    return OPEN_FOLDER if scope["path"].startswith(OPEN_FOLDER) else NO_ROUTE


def open_telemetry() -> Tracing:
    """Return the function that opens spans with the OpenTelemetry API. It configures no exporter.

    `opentelemetry-instrument python -m services.search` configures one from OTEL_ variables.

    Raises:
        InvalidInput: the package opentelemetry-api is not installed.
    """
    try:
        from opentelemetry import propagate, trace
    except ImportError as error:
        raise InvalidInput(
            "SIMILARITY_SERVICE_OTEL=1 needs OpenTelemetry: "
            "pip install opentelemetry-distro opentelemetry-exporter-otlp"
        ) from error
    tracer = trace.get_tracer("services.search")

    @contextmanager
    def spans(scope: Scope) -> Iterator[Any]:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with tracer.start_as_current_span(
            "HTTP",
            context=propagate.extract(headers),
            kind=trace.SpanKind.SERVER,
            attributes={"http.request.method": scope["method"] if scope["method"] in METHODS else "_OTHER"},
            # The message of an error may quote the request; the log has it, under the id of the request.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except Exception:
                span.set_status(trace.StatusCode.ERROR)
                raise

    return spans
