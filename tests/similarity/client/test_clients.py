"""Both clients on a service that is played: what they send, and what they make of its answers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from inspect import signature
from typing import Any

import httpx2
import pytest

from similarity.client import (
    AsyncClient,
    Client,
    Retries,
    TimedOut,
    Unreachable,
    UnreadableAnswer,
)
from similarity.company import Company
from similarity.errors import InvalidInput
from tests.similarity.client.replies import problem, ranking

URL = "http://service"
AT_ONCE = Retries(first_pause=0)


class Played:
    """A service that gives the answers it was told, in order, and remembers the requests."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]


Asks = Callable[..., Any]


def ask_plainly(service: Played, method: str, *args: Any, **options: Any) -> Any:
    with (
        httpx2.Client(transport=httpx2.MockTransport(service)) as http,
        Client(URL, api_key="sim_1", retries=AT_ONCE, http=http) as client,
    ):
        answer = getattr(client, method)(*args, **options)
        return list(answer) if isinstance(answer, Iterator) else answer


def ask_with_async(service: Played, method: str, *args: Any, **options: Any) -> Any:
    async def run() -> Any:
        async with (
            httpx2.AsyncClient(transport=httpx2.MockTransport(service)) as http,
            AsyncClient(URL, api_key="sim_1", retries=AT_ONCE, http=http) as client,
        ):
            answer = getattr(client, method)(*args, **options)
            return [each async for each in answer] if isinstance(answer, AsyncIterator) else await answer

    return asyncio.run(run())


@pytest.fixture(params=[ask_plainly, ask_with_async], ids=["plain", "async"])
def ask(request: pytest.FixtureRequest) -> Asks:
    asks: Asks = request.param
    return asks


def fine(members: Any) -> httpx2.Response:
    return httpx2.Response(200, json=members)


def refused(status: int, kind: str, **members: Any) -> httpx2.Response:
    return httpx2.Response(status, json=problem(status, kind, **members))


def test_a_question_goes_out_with_the_key_and_an_id_of_its_own(ask: Asks) -> None:
    service = Played(fine(ranking("adidas")))
    found = ask(service, "similar", "nike", country="Germany", k=3)
    assert [hit.company.id for hit in found.hits] == ["adidas"]
    (request,) = service.requests
    assert (request.method, str(request.url)) == ("POST", "http://service/similar")
    assert request.headers["authorization"] == "Bearer sim_1"
    assert request.headers["content-type"] == "application/json"
    assert len(request.headers["x-request-id"]) == 32
    assert request.headers["user-agent"].startswith("company-similarity")
    assert service.bodies()[0]["filters"] == [{"field": "country", "any_of": ["Germany"]}]


def test_attempts_at_one_call_share_their_id(ask: Asks) -> None:
    service = Played(httpx2.ConnectError("refused"), refused(503, "overloaded"), fine(ranking("adidas")))
    assert ask(service, "similar", "nike").hits
    assert len({request.headers["x-request-id"] for request in service.requests}) == 1
    assert len(service.requests) == 3


def test_a_service_that_cannot_be_reached_is_tried_again_and_then_named(ask: Asks) -> None:
    service = Played(*[httpx2.ConnectError("connection refused")] * 4)
    with pytest.raises(Unreachable, match=r"http://service cannot be reached \(connection refused\)"):
        ask(service, "similar", "nike")
    assert len(service.requests) == 4


def test_a_silent_service_is_a_time_out(ask: Asks) -> None:
    with pytest.raises(TimedOut, match="http://service did not answer in time"):
        ask(Played(*[httpx2.ReadTimeout("")] * 4), "ready")


def test_an_answer_of_something_else_is_not_mistaken_for_one(ask: Asks) -> None:
    with pytest.raises(UnreadableAnswer, match="is this the URL of the search service"):
        ask(Played(httpx2.Response(200, text="<html>hello")), "ready")


def test_no_page_is_asked_for_before_it_is_needed() -> None:
    service = Played(fine(ranking("a", "b", next_cursor="c1")))
    with httpx2.Client(transport=httpx2.MockTransport(service)) as http:
        hits = Client(URL, http=http).hits("nike")
        assert service.requests == []
        assert [next(hits).company.id, next(hits).company.id] == ["a", "b"]
    assert len(service.requests) == 1


def test_names_of_companies_are_quoted_in_addresses(ask: Asks) -> None:
    stored = {"company": {"id": "as-nord"}, "generation": "first", "model": ranking()["model"]}
    service = Played(fine(stored), fine({"query": "a&b", "companies": []}))
    ask(service, "company", "A/S Nord?")
    ask(service, "find", "a&b", limit=5)
    paths = [request.url.raw_path for request in service.requests]
    assert paths == [b"/companies/A%2FS%20Nord%3F", b"/companies?q=a%26b&limit=5"]


def test_bulk_goes_in_parts_and_numbers_the_lines_over_all_of_them(ask: Asks) -> None:
    first = '{"line": 1, "id": "a", "outcome": "applied"}\n{"line": 2, "id": "b", "outcome": "applied"}\n'
    second = '{"line": 1, "id": "c", "outcome": "rejected", "reason": "description: is empty"}\n'
    service = Played(httpx2.Response(200, text=first), httpx2.Response(200, text=second))
    changes = [Company(id="a", name="A", description="Does a."), {"id": "b", "deleted": True}, {"id": "c"}]
    results = ask(service, "bulk", changes, at_once=2)
    assert [(each.line, each.id, each.outcome) for each in results] == [
        (1, "a", "applied"),
        (2, "b", "applied"),
        (3, "c", "rejected"),
    ]
    assert [request.content.count(b"\n") for request in service.requests] == [2, 1]
    assert service.requests[0].headers["content-type"] == "application/x-ndjson"


def test_pairs_that_are_no_json_are_unreadable(ask: Asks) -> None:
    with pytest.raises(UnreadableAnswer, match="Invalid JSON"):
        ask(Played(httpx2.Response(200, text="text_a,text_b\n")), "pairs")


def test_the_services_address_may_have_a_path() -> None:
    service = Played(fine(ranking("adidas")))
    with httpx2.Client(transport=httpx2.MockTransport(service)) as http:
        Client("https://example.com/competitors/", http=http).similar("nike")
    assert str(service.requests[0].url) == "https://example.com/competitors/similar"


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
        Client(URL, api_key=key)


def test_a_key_is_never_shown() -> None:
    client = Client(URL, api_key="sim_1")
    assert "sim_1" not in repr((client, vars(client)))


def test_a_number_that_json_has_not_is_refused_before_it_is_sent() -> None:
    service = Played()
    with (
        httpx2.Client(transport=httpx2.MockTransport(service)) as http,
        pytest.raises(InvalidInput, match="finite numbers"),
    ):
        Client(URL, http=http).similar("nike", min_probability=float("nan"))
    assert service.requests == []


def test_a_client_closes_its_own_connections_and_no_others() -> None:
    with httpx2.Client() as http:
        with Client(URL, http=http):
            pass
        assert not http.is_closed
    own = Client(URL)
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
    assert list(signature(Client(URL).put).parameters) == ["company", "event_time"]
    assert list(signature(Client.similar).parameters) == ["self", "anchors", "options"]
