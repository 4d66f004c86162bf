"""Both clients: what they send, and what they make of the answers."""

import json
import time
from datetime import date
from decimal import Decimal
from inspect import signature
from typing import Any

import httpx2
import pytest

from similarity.client import AsyncClient, Client, Retries, Unreachable, UnreadableAnswer
from similarity.company import Company
from similarity.errors import InvalidInput
from tests.similarity.client.replies import ranking
from tests.similarity.client.service import Calls, Service, answering, both_clients, fine, hanging_up, refused


def client_of(service: Service, *, path: str = "") -> dict[str, Any]:
    return {"url": service.url + path, "api_key": "sim_1", "retries": Retries(first_pause=0)}


@both_clients
def test_a_question_goes_out_with_the_key_and_an_id_of_its_own(call: Calls) -> None:
    with Service(fine(ranking("adidas"))) as service:
        found = call(client_of(service), "similar", "nike", country="Germany", k=3)
    assert [hit.company.id for hit in found.hits] == ["adidas"]
    (request,) = service.requests
    assert (request.method, request.path) == ("POST", "/similar")
    assert request.headers["authorization"] == "Bearer sim_1"
    assert request.headers["content-type"] == "application/json"
    assert len(request.headers["x-request-id"]) == 32
    assert request.headers["user-agent"].startswith("company-similarity")
    assert json.loads(request.body)["filters"] == [{"field": "country", "any_of": ["Germany"]}]


@both_clients
def test_a_company_is_put_as_a_dict_too(call: Calls) -> None:
    given = {"id": "acme", "name": "Acme", "description": "Makes anvils."}
    written = answering(b'{"outcome": "applied", "id": "acme"}')
    with Service(written, written) as service:
        for company in (given, Company(id="acme", name="Acme", description="Makes anvils.")):
            assert call(client_of(service), "put", company).outcome == "applied"
    assert [(each.method, each.path, json.loads(each.body)["name"]) for each in service.requests] == [
        ("PUT", "/companies/acme", "Acme")
    ] * 2
    with pytest.raises(InvalidInput, match="the company has no id"):
        call({"url": "http://service"}, "put", {"name": "Acme"})


@both_clients
def test_ids_may_be_whole_numbers_as_data_frames_have_them(call: Calls) -> None:
    written = answering(b'{"outcome": "applied", "id": "7"}')
    with Service(written, written) as service:
        call(client_of(service), "put", {"id": 7, "name": "Acme"}, event_time="2026-01-31T12:00:00Z")
        call(client_of(service), "delete", 7)
    assert [each.path for each in service.requests] == ["/companies/7"] * 2
    body = json.loads(service.requests[0].body)
    assert (body["id"], body["event_time"]) == ("7", "2026-01-31T12:00:00Z")


@both_clients
def test_attempts_at_one_call_share_their_id(call: Calls) -> None:
    with Service(hanging_up, refused(503, "overloaded"), fine(ranking("adidas"))) as service:
        assert call(client_of(service), "similar", "nike").hits
    assert len({request.headers["x-request-id"] for request in service.requests}) == 1
    assert len(service.requests) == 3


@both_clients
def test_a_service_that_cannot_be_reached_is_tried_again_and_then_named(call: Calls) -> None:
    with Service(hanging_up) as service, pytest.raises(Unreachable, match=f"{service.url} cannot be reached \\(Server"):
        call(client_of(service), "similar", "nike")
    assert len(service.requests) == 4


@both_clients
def test_a_client_waits_as_long_as_the_service_asks(call: Calls) -> None:
    busy = answering(b"{}", "retry-after: 1", status="503 Service Unavailable")
    with Service(busy, fine(ranking("adidas"))) as service:
        start = time.monotonic()
        call(client_of(service), "similar", "nike")
    assert time.monotonic() - start >= 1


@both_clients
def test_an_answer_of_something_else_is_not_mistaken_for_one(call: Calls) -> None:
    with (
        Service(answering(b"<html>hello")) as service,
        pytest.raises(UnreadableAnswer, match="is this the URL of the search service"),
    ):
        call(client_of(service), "ready")
    assert len(service.requests) == 1


def test_no_page_is_asked_for_before_it_is_needed() -> None:
    with Service(fine(ranking("a", "b", next_cursor="c1"))) as service, Client(service.url) as client:
        hits = client.hits("nike")
        assert service.requests == []
        assert [next(hits).company.id, next(hits).company.id] == ["a", "b"]
    assert len(service.requests) == 1


@both_clients
@pytest.mark.parametrize("name", [".", ".."])
def test_an_id_that_would_address_something_else_is_not_sent(call: Calls, name: str) -> None:
    with Service() as service, pytest.raises(InvalidInput, match="cannot be an id"):
        call(client_of(service), "delete", name)
    assert service.requests == []


@both_clients
def test_a_cursor_that_leads_to_itself_ends_the_pages(call: Calls) -> None:
    page = fine(ranking("a", next_cursor="c1"))
    with Service(page, page, page) as service, pytest.raises(UnreadableAnswer, match="leads to itself"):
        call(client_of(service), "hits", "nike")
    assert len(service.requests) == 2


@both_clients
def test_names_of_companies_are_quoted_in_addresses_that_may_have_a_path(call: Calls) -> None:
    with Service(fine({"query": "a&b", "companies": []})) as service:
        call(client_of(service, path="/competitors/"), "find", "a&b", limit=5)
        call(client_of(service), "delete_list", "A/S Nord?")
    paths = [request.path for request in service.requests]
    assert paths == ["/competitors/companies?q=a%26b&limit=5", "/lists/A%2FS%20Nord%3F"]


@both_clients
def test_bulk_goes_in_parts_and_numbers_the_lines_over_all_of_them(call: Calls) -> None:
    first = b'{"line": 1, "id": "a", "outcome": "applied"}\n{"line": 2, "id": "b", "outcome": "applied"}\n'
    second = b'{"line": 1, "id": "c", "outcome": "rejected", "reason": "description: is empty"}\n'
    changes = [Company(id="a", name="A", description="Does a."), {"id": "b", "deleted": True}, {"id": "c"}]
    with Service(answering(first), answering(second)) as service:
        results = call(client_of(service), "bulk", changes, at_once=2)
    assert [(each.line, each.id, each.outcome) for each in results] == [
        (1, "a", "applied"),
        (2, "b", "applied"),
        (3, "c", "rejected"),
    ]
    assert [request.body.count(b"\n") for request in service.requests] == [2, 1]
    assert service.requests[0].headers["content-type"] == "application/x-ndjson"


@both_clients
def test_nan_of_a_data_frame_is_no_value_and_what_cannot_be_sent_is_a_result_of_its_own(call: Calls) -> None:
    def applied(*ids: str) -> bytes:
        lines = (f'{{"line": {line}, "id": "{each}", "outcome": "applied"}}\n' for line, each in enumerate(ids, 1))
        return "".join(lines).encode()

    nan = float("nan")
    changes = [
        {"id": "a", "country": nan, "attributes": {"staff": nan, "city": "Oslo"}, "tags": ["x", nan]},
        {"id": "b", "attributes": {"staff": float("inf")}},
        {"id": "c", "attributes": {"founded": date(1999, 5, 1), "revenue": Decimal("1.5")}},
        {"id": "d", "name": object()},
        {"id": 5, "name": object()},
    ]
    with Service(answering(applied("a")), answering(applied("c"))) as service:
        results = call(client_of(service), "bulk", changes)
    assert [(each.line, each.id, each.outcome) for each in results] == [
        (1, "a", "applied"),
        (2, "b", "rejected"),
        (3, "c", "applied"),
        (4, "d", "rejected"),
        (5, None, "rejected"),
    ]
    assert results[1].reason.startswith("not sent: Out of range float")
    assert [json.loads(request.body) for request in service.requests] == [
        {"id": "a", "country": None, "attributes": {"staff": None, "city": "Oslo"}, "tags": ["x", None]},
        {"id": "c", "attributes": {"founded": "1999-05-01", "revenue": 1.5}},
    ]


@both_clients
def test_nan_in_one_company_is_no_value(call: Calls) -> None:
    with Service(answering(b'{"outcome": "applied", "id": "acme"}')) as service:
        call(client_of(service), "put", {"id": "acme", "name": "Acme", "country": float("nan")})
    assert json.loads(service.requests[0].body)["country"] is None


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("service:8080", "not the URL of a service"),
        ("ftp://service", "not the URL of a service"),
        ("", "not the URL of a service"),
        ("http://user:secret@service", "must not have '\\?', '#' or a password"),
        ("http://service/?k=1", "must not have '\\?', '#' or a password"),
        ("http://ser vice\n", "not a URL"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_at_once(url: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        Client(url)


@pytest.mark.parametrize("key", ["", "two\nlines", "schlüssel"])
def test_a_key_that_cannot_be_a_header_is_refused_at_once(key: str) -> None:
    with pytest.raises(InvalidInput, match="API key"):
        Client("http://service", api_key=key)


def test_a_key_is_never_shown() -> None:
    assert "sim_1" not in repr(Client("http://service", api_key="sim_1"))


@both_clients
def test_a_number_that_json_has_not_is_refused_before_it_is_sent(call: Calls) -> None:
    with pytest.raises(InvalidInput, match="finite numbers"):
        call({"url": "http://127.0.0.1:1"}, "similar", "nike", min_probability=float("nan"))


def test_a_client_closes_its_own_connections_and_no_others() -> None:
    with httpx2.Client() as http:
        with Client("http://service", http=http):
            pass
        assert not http.is_closed
    own = Client("http://service")
    with own:
        pass
    with pytest.raises(RuntimeError):
        own.ready()


def public_methods(client: type) -> set[str]:
    return {name for name in dir(client) if not name.startswith("_")}


def test_both_clients_have_the_same_methods() -> None:
    assert public_methods(Client) - {"close"} == public_methods(AsyncClient) - {"aclose"}


def test_methods_say_what_they_do() -> None:
    for client in (Client, AsyncClient):
        for name in public_methods(client):
            assert getattr(client, name).__doc__, f"{client.__name__}.{name} has no docstring"


def test_methods_show_the_parameters_they_take() -> None:
    assert list(signature(Client("http://service").put).parameters) == ["company", "event_time"]
    assert list(signature(Client.similar).parameters) == ["self", "anchors", "options"]
