"""Requests that their Host or Origin forbids."""

from typing import Any

import pytest

from services.search.guards.heads import ANY, LOCAL_NAMES, Heads, host_name
from services.search.guards.lifecycle import Lifecycle
from tests.services.search.asgi import Inner, ask, http


def heads(inner: Inner, **limits: Any) -> Heads:
    return Heads(inner, **{"names": [ANY], "lifecycle": Lifecycle(), **limits})


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost", "localhost"),
        ("localhost:8080", "localhost"),
        ("localhost.:8080", "localhost"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("[::1]:8080", "::1"),
        ("[::1]", "::1"),
        ("", ""),
        ("[", ""),
    ],
)
def test_the_name_in_a_host_header(header: str, name: str) -> None:
    assert host_name(header) == name


@pytest.mark.parametrize("host", ["localhost:8080", "LocalHost", "127.0.0.1:9", "[::1]:8080"])
def test_this_machines_names_are_answered(host: str) -> None:
    assert ask(heads(Inner(), names=LOCAL_NAMES), http(host=host)).status == 200


@pytest.mark.parametrize("host", ["10.1.2.3:8080", "[fd00::7]:8080"])
def test_who_asks_by_address_was_misled_by_no_name(host: str) -> None:
    assert ask(heads(Inner(), names=["search.example"]), http("/readyz", host=host)).status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "", "localhost@evil"],
)
def test_a_name_that_was_made_to_point_here_is_refused(host: str) -> None:
    inner = Inner()
    refusal = ask(heads(inner, names=LOCAL_NAMES), http(host=host))
    assert refusal.status == 421
    assert refusal.problem == "unknown-host"
    assert refusal.headers["connection"] == "close"
    assert inner.scopes == []


def test_a_request_without_a_host_is_refused() -> None:
    assert ask(heads(Inner(), names=LOCAL_NAMES), http()).status == 421


def test_any_name_will_do_where_the_settings_say_so() -> None:
    assert ask(heads(Inner(), names=[ANY]), http(host="search.internal")).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:9999", "http://localhost", ""])
def test_a_strangers_page_changes_nothing(method: str, origin: str) -> None:
    inner = Inner()
    refusal = ask(heads(inner, names=LOCAL_NAMES), http("/feedback", method, host="localhost:8080", origin=origin))
    assert refusal.status == 403
    assert refusal.problem == "foreign-page"
    assert refusal.headers["connection"] == "close"
    assert inner.scopes == []


def test_the_services_own_page_and_programs_may_change_things() -> None:
    app = heads(Inner(), names=LOCAL_NAMES)
    assert ask(app, http("/feedback", "POST", host="localhost:8080", origin="http://localhost:8080")).status == 200
    assert ask(app, http("/feedback", "POST", host="localhost:8080")).status == 200


def test_a_page_of_a_trusted_origin_may_too() -> None:
    app = heads(Inner(), names=[ANY], origins=["https://tools.example"])
    assert ask(app, http("/feedback", "POST", host="search.example", origin="https://tools.example")).status == 200
    assert ask(app, http("/feedback", "POST", host="search.example", origin="https://other.example")).status == 403


def test_reading_is_left_to_the_browsers_own_rules() -> None:
    app = heads(Inner(), names=LOCAL_NAMES)
    assert ask(app, http(host="localhost:8080", origin="https://evil.example")).status == 200


def test_readiness_ends_first_and_requests_go_on() -> None:
    lifecycle = Lifecycle(drain_seconds=5)
    app = heads(Inner(), lifecycle=lifecycle)
    assert ask(app, http("/readyz")).status == 200
    lifecycle.stop()
    refusal = ask(app, http("/readyz"))
    assert (refusal.status, refusal.problem) == (503, "stopping")
    assert ask(app, http("/healthz")).status == 200
    assert ask(app, http()).status == 200
