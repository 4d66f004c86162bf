"""The guards together, around the real application."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from services.search.guards import guards
from services.search.guards.callers import Caller, Scope
from services.search.guards.guards import Guards, host_names, limited
from services.search.guards.heads import ANY
from services.search.guards.rate_limits import Allowance
from services.search.settings import Address, ServiceSettings
from similarity.index.sqlite import SqliteIndex

HEALTH = {"/healthz", "/readyz"}
KEY = {"Authorization": "Bearer reader"}
READERS = {"reader": Caller(name="reader", scopes=frozenset({Scope.READ}))}.get

MakeClient = Callable[..., TestClient]


@pytest.fixture
def client_of(read_only_index: SqliteIndex) -> MakeClient:
    """Makes a client of an application with guards; members of Guards by name, settings in a dict."""

    def make(settings: dict[str, Any] | None = None, **given: Any) -> TestClient:
        made = Guards(settings=ServiceSettings(**(settings or {})), **given)
        return TestClient(
            create_app(index=made.metrics.timed_index(read_only_index), guards=made), base_url="http://localhost:8080"
        )

    return make


def test_as_they_stand_the_guards_let_everybody_in(client_of: MakeClient) -> None:
    answer = client_of().get("/similar/acme?k=1")
    assert answer.status_code == 200
    assert "ratelimit" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers


def test_no_operation_answers_without_a_key_but_the_health_checks(client_of: MakeClient) -> None:
    client = client_of(keys=READERS)
    operations = [
        (method.upper(), path)
        for path, methods in client.get("/openapi.json").json()["paths"].items()
        for method in methods
    ]
    assert len(operations) >= 6
    for method, path in operations:
        answer = client.request(method, re.sub(r"\{\w+\}", "acme", path))
        assert (answer.status_code == 401) is (path not in HEALTH), (method, path)


def test_every_operation_but_the_health_checks_asks_for_one_scope(client_of: MakeClient) -> None:
    paths = client_of().get("/openapi.json").json()["paths"]
    for path, methods in paths.items():
        for method, operation in methods.items():
            scopes = [scope for each in operation.get("security", []) for scope in each["ApiKey"]]
            assert len(scopes) == (0 if path in HEALTH else 1), (method, path)
            assert path in HEALTH or scopes[0] in set(Scope)


def test_the_page_can_be_loaded_to_ask_for_the_key(client_of: MakeClient) -> None:
    client = client_of(keys=READERS)
    for path in ("/", "/docs", "/openapi.json", "/assets/page.js"):
        assert client.get(path).status_code == 200
    refusal = client.get("/similar/acme")
    assert refusal.status_code == 401
    assert refusal.headers["www-authenticate"].startswith("Bearer ")
    assert refusal.headers["x-content-type-options"] == "nosniff"
    assert client.get("/similar/acme", headers=KEY).status_code == 200


def test_requests_are_refused_for_the_first_reason_in_order(client_of: MakeClient) -> None:
    client = client_of({"burst": 1, "rate": 0.01, "body_bytes": 10}, keys=READERS, limited=True, names=["localhost"])
    large = b"x" * 100

    def status(**headers: str) -> int:
        return client.post("/similar", content=large, headers=headers).status_code

    assert status(host="evil.example", origin="http://evil.example") == 421
    assert status(origin="http://evil.example") == 403
    assert status() == 401
    assert status(**KEY) == 413
    assert status(**KEY) == 429


def test_a_body_is_not_looked_at_before_the_scope_of_the_key(client_of: MakeClient) -> None:
    upload = {"Content-Type": "application/x-ndjson", **KEY}
    answer = client_of(keys=READERS).post("/companies/bulk", content=b"[" * 10_000, headers=upload)
    assert (answer.status_code, answer.json()["type"]) == (403, "/docs#scope-missing")


def test_every_answer_of_a_limited_caller_says_what_is_left(client_of: MakeClient) -> None:
    client = client_of({"rate": 0.5}, keys=READERS, limited=True)
    for path in ("/similar/acme", "/similar/nobody", "/similar/acme?k=0", "/nothing"):
        headers = client.get(path, headers=KEY).headers
        assert headers["ratelimit-policy"] == '"caller";q=100;w=200'
        assert headers["ratelimit"].startswith('"caller";r=9')


def test_every_refusal_is_a_problem_with_the_security_headers_and_an_id(client_of: MakeClient) -> None:
    client = client_of(keys=READERS, names=["localhost"])
    for headers in ({"Host": "evil.example"}, {}, {"Authorization": "Bearer wrong"}):
        answer = client.get("/similar/acme", headers=headers)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-request-id"]
        assert answer.json()["instance"] == "/similar/acme"


def test_other_sites_pages_may_ask_only_where_their_origin_is_named(client_of: MakeClient) -> None:
    client = client_of({"origins": ("https://tools.example",)}, keys=READERS)
    preflight = {"Origin": "https://tools.example", "Access-Control-Request-Method": "POST"}
    preflight["Access-Control-Request-Headers"] = "authorization"
    allowed = client.options("/similar", headers=preflight)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == "https://tools.example"
    refused = client.options("/similar", headers={**preflight, "Origin": "https://evil.example"})
    assert refused.status_code == 400
    assert "access-control-allow-origin" not in refused.headers
    answer = client.get("/similar/acme", headers={**KEY, "Origin": "https://tools.example"})
    assert "RateLimit" in answer.headers["access-control-expose-headers"]
    assert "access-control-allow-credentials" not in answer.headers


def test_preflights_are_limited_and_refusals_of_keyed_requests_can_be_read_by_named_origins(
    client_of: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "OPEN_ALLOWANCE", Allowance(rate=0.01, burst=2))
    client = client_of({"origins": ("https://tools.example",), "burst": 1, "rate": 0.01}, keys=READERS, limited=True)
    origin = {"Origin": "https://tools.example"}
    preflight = {**origin, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    answers = [client.options("/similar/acme", headers=preflight) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[-1].headers["connection"] == "close"
    # Preflights have used up nothing of the keyed requests, and a page may read why it is refused.
    statuses = []
    for headers in (KEY, KEY, {}):
        answer = client.get("/similar/acme", headers={**origin, **headers})
        assert answer.headers["access-control-allow-origin"] == "https://tools.example"
        statuses.append(answer.status_code)
    # What has no key shares the tokens of preflights.
    assert statuses == [200, 429, 429]


def test_metrics_are_not_among_the_addresses(client_of: MakeClient) -> None:
    client = client_of(keys=READERS)
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers=KEY).status_code == 404


@pytest.mark.parametrize(
    ("address", "hosts", "names", "counted"),
    [
        (Address(), (), {"localhost", "127.0.0.1", "::1"}, False),
        (Address(), ("Box",), {"localhost", "127.0.0.1", "::1", "box"}, False),
        (Address(host="127.0.0.2"), (), {"localhost", "127.0.0.1", "127.0.0.2", "::1"}, False),
        (Address(authenticated=True), (), {"localhost", "127.0.0.1", "::1"}, True),
        (Address(host="0.0.0.0", authenticated=True), (), {ANY}, True),
        (Address(host="0.0.0.0", authenticated=True), ("box",), {"localhost", "127.0.0.1", "::1", "box"}, True),
        (Address(host="0.0.0.0", published="127.0.0.1"), (), {"localhost", "127.0.0.1", "::1"}, True),
        (Address(host="0.0.0.0", published="127.0.0.1"), ("box",), {"localhost", "127.0.0.1", "::1", "box"}, True),
        (Address(host="0.0.0.0", published="10.0.0.7", authenticated=True), (), {ANY}, True),
    ],
)
def test_rates_are_off_only_on_loopback_and_names_are_checked_there(
    address: Address, hosts: tuple[str, ...], names: set[str], counted: bool
) -> None:
    assert set(host_names(ServiceSettings(hosts=hosts), address)) == names
    assert limited(address) is counted
