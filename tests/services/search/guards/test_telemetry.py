"""What is noted of every request."""

import asyncio
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import generate_latest
from starlette.types import Receive, Scope, Send

from services.search.app import create_app
from services.search.guards.authentication import Authentication
from services.search.guards.callers import Caller
from services.search.guards.concurrency import Admission, Gate, Gates
from services.search.guards.envelope import Envelope
from services.search.guards.guards import Guards
from services.search.guards.logs import FIELDS, JsonLines
from services.search.guards.metrics import ServiceMetrics
from services.search.guards.rate_limits import OPEN_ALLOWANCE, TokenBuckets
from services.search.guards.refusals import refuse
from services.search.guards.telemetry import Telemetry, open_telemetry
from services.search.wire import problems
from services.search.wire.problem_documents import Problem
from similarity.errors import InvalidInput
from similarity.index.sqlite import SqliteIndex
from tests.services.search.asgi import Clock, Inner, ask, asked, http


class Case:
    """A small application behind telemetry, and what was noted."""

    def __init__(self, caplog: pytest.LogCaptureFixture, **options: Any) -> None:
        caplog.set_level(logging.INFO)
        self.caplog, self.metrics = caplog, ServiceMetrics()
        app = FastAPI()

        @app.get("/similar/{company_id:path}")
        def similar(company_id: str) -> str:
            if company_id == "bad":
                raise ValueError("broken")
            return company_id

        keys = {"right": Caller(name="ann", scopes=frozenset())}.get
        app.add_middleware(Authentication, keys=keys, strangers=TokenBuckets(OPEN_ALLOWANCE))
        app.add_middleware(Telemetry, metrics=self.metrics, **options)
        app.add_middleware(Envelope)
        self.client = TestClient(app, headers={"Authorization": "Bearer right"})

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [getattr(each, FIELDS) for each in self.caplog.records if each.name == "services.search.requests"]

    @property
    def text(self) -> str:
        text: str = generate_latest(self.metrics.registry).decode()
        return text

    def count(self, route: str, status: int) -> str:
        return f'search_request_seconds_count{{method="GET",route="{route}",status="{status}"}} 1.0'


@pytest.fixture
def case(caplog: pytest.LogCaptureFixture) -> Case:
    return Case(caplog)


def test_a_request_is_one_line_and_one_measurement_by_its_route(case: Case) -> None:
    case.client.get("/similar/some-secret-company?token=abc")
    (line,) = case.lines
    assert line.pop("ms") >= 0
    assert line == {"method": "GET", "route": "/similar/{company_id:path}", "status": 200, "caller": "ann"}
    assert case.count("/similar/{company_id:path}", 200) in case.text
    ours = [JsonLines().format(each) for each in case.caplog.records if each.name.startswith("services.")]
    for noted in (case.text, *ours):
        assert "some-secret-company" not in noted
        assert "abc" not in noted


def test_paths_that_do_not_exist_make_no_new_series(case: Case) -> None:
    for number in range(20):
        case.client.get(f"/nothing/{number}")
    assert 'search_request_seconds_count{method="GET",route="-",status="404"} 20.0' in case.text
    assert "/nothing" not in case.text


def test_methods_that_do_not_exist_make_no_new_series(case: Case) -> None:
    for method in ("SPAM", "EGGS"):
        case.client.request(method, "/similar/x")
    assert (
        'search_request_seconds_count{method="other",route="/similar/{company_id:path}",status="405"} 2.0' in case.text
    )


def test_a_refusal_is_counted_with_its_reason(case: Case) -> None:
    case.client.get("/similar/x", headers={"Authorization": "Bearer wrong"})
    assert 'search_rejected_total{reason="key-needed"} 1.0' in case.text
    assert case.lines[0]["refused"] == "key-needed"
    assert case.lines[0]["caller"] is None


def test_an_unforeseen_error_is_noted_as_500(case: Case) -> None:
    assert case.client.get("/similar/bad").status_code == 500
    assert case.count("/similar/{company_id:path}", 500) in case.text


def test_head_counts_as_the_get_it_is(case: Case) -> None:
    case.client.head("/similar/x")
    assert case.count("/similar/{company_id:path}", 200) in case.text


def test_the_client_address_is_noted_only_if_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    case = Case(caplog, clients=True)
    case.client.get("/similar/x")
    assert case.lines[0]["client"] == "testclient"


def test_the_time_is_until_the_answer_was_complete_even_if_work_goes_on() -> None:
    clock, metrics = Clock(), ServiceMetrics()

    async def answers_then_works(scope: Scope, receive: Receive, send: Send) -> None:
        clock.now += 2
        await refuse(Problem(problems.TOOK_TOO_LONG, "late"), scope, receive, send)
        clock.now += 50

    ask(Telemetry(answers_then_works, metrics=metrics, clock=clock), http())
    text = generate_latest(metrics.registry).decode()
    assert 'search_request_seconds_sum{method="GET",route="-",status="503"} 2.0' in text


def test_requests_under_way_are_counted_while_they_are() -> None:
    metrics = ServiceMetrics()

    async def look() -> tuple[float, float]:
        asking = asyncio.create_task(asked(Telemetry(Inner(seconds=0.02), metrics=metrics), http()))
        await asyncio.sleep(0.005)
        during = metrics.in_flight._value.get()
        await asking
        return during, metrics.in_flight._value.get()

    assert asyncio.run(look()) == (1, 0)


def test_a_client_that_hangs_up_is_noted_once_without_a_status() -> None:
    metrics = ServiceMetrics()

    async def answers_nothing(scope: Scope, receive: Receive, send: Send) -> None:
        return

    ask(Telemetry(answers_nothing, metrics=metrics), http())
    assert 'status="0"} 1.0' in generate_latest(metrics.registry).decode()


def test_a_request_given_up_is_one_line_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    gate = Gate(at_once=1, queue=0, seconds=1)
    app = Admission(Inner(seconds=0.05), gates=Gates(quick=gate, heavy=gate), seconds=0.01)
    ask(Telemetry(app, metrics=ServiceMetrics()), http())
    (record,) = [each for each in caplog.records if each.name == "services.search.requests"]
    assert getattr(record, FIELDS)["refused"] == "took-too-long"
    assert getattr(record, FIELDS)["status"] == 503


class SpanOfTest:
    def __init__(self, name: str) -> None:
        self.name = name
        self.attributes: dict[str, Any] = {}

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def update_name(self, name: str) -> None:
        self.name = name


def test_a_span_is_named_by_its_route(caplog: pytest.LogCaptureFixture) -> None:
    spans: list[SpanOfTest] = []

    @contextmanager
    def tracing(scope: Scope) -> Iterator[SpanOfTest]:
        spans.append(SpanOfTest(scope["method"]))
        yield spans[-1]

    Case(caplog, tracing=tracing).client.get("/similar/x")
    assert spans[0].name == "GET /similar/{company_id:path}"
    assert spans[0].attributes == {"http.route": "/similar/{company_id:path}", "http.response.status_code": 200}


def test_open_telemetry_gets_a_server_span_that_continues_the_callers_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    app = Telemetry(Inner(), metrics=ServiceMetrics(), tracing=open_telemetry())
    ask(app, http("/similar/some-secret-company", traceparent=parent, authorization="Bearer secret"))
    (span,) = exporter.get_finished_spans()
    context = span.get_span_context()
    assert context is not None
    assert format(context.trace_id, "032x") == "0af7651916cd43dd8448eb211c80319c"
    assert span.kind is trace.SpanKind.SERVER
    assert span.name == "GET -"
    assert dict(span.attributes or {}) == {
        "http.request.method": "GET",
        "http.route": "-",
        "http.response.status_code": 200,
    }


def spans_of_the_service(monkeypatch: pytest.MonkeyPatch, index: SqliteIndex, path: str) -> Sequence[ReadableSpan]:
    """What the whole service, asked for `path`, gives to an OpenTelemetry that is set up for the process."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    TestClient(create_app(index=index, guards=Guards(tracing=open_telemetry()))).get(path)
    return exporter.get_finished_spans()


def test_a_request_is_one_span_that_says_the_route_and_not_who_was_asked_about(
    monkeypatch: pytest.MonkeyPatch, read_only_index: SqliteIndex
) -> None:
    (span,) = spans_of_the_service(monkeypatch, read_only_index, "/similar/acme?exclude=some-secret-company")
    assert span.name == "GET /similar/{company_id:path}"
    assert dict(span.attributes or {}) == {
        "http.request.method": "GET",
        "http.route": "/similar/{company_id:path}",
        "http.response.status_code": 200,
    }


def test_a_span_of_a_failure_says_that_and_nothing_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)

    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("about some-secret-company")

    ask(Envelope(Telemetry(fails, metrics=ServiceMetrics(), tracing=open_telemetry())), http("/x"))
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is trace.StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "500"
    assert "secret" not in span.to_json()


def test_without_the_package_the_start_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(InvalidInput, match="pip install opentelemetry-distro"):
        open_telemetry()
