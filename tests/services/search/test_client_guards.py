"""The Python client before the real guards: keys, what they allow, and how often one may ask."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from services.search.guards.callers import Caller, Scope
from services.search.guards.guards import Guards
from services.search.settings import ServiceSettings
from similarity.client import Client, Forbidden, RateLimited, Retries, Unauthorized
from similarity.index.sqlite import SqliteIndex

URL = "http://testserver"


READERS = {"good": Caller(name="ann", scopes=frozenset({Scope.READ}))}.get


@pytest.fixture(scope="module")
def http(read_only_index: SqliteIndex) -> Iterator[TestClient]:
    with TestClient(create_app(index=read_only_index, guards=Guards(keys=READERS))) as http:
        yield http


def test_a_good_key_is_let_in(http: TestClient) -> None:
    assert Client(URL, api_key="good", http=http).company("acme").company.id == "acme"


@pytest.mark.parametrize("key", [None, "unknown-key"])
def test_no_key_and_a_bad_one_are_turned_away_at_once(http: TestClient, key: str | None) -> None:
    with pytest.raises(Unauthorized) as raised:
        Client(URL, api_key=key, http=http, retries=Retries(deadline=1)).company("acme")
    assert raised.value.kind == "key-needed"
    assert "unknown-key" not in str(raised.value)


def test_a_key_that_may_only_read_is_told_so(http: TestClient) -> None:
    with pytest.raises(Forbidden) as raised:
        Client(URL, api_key="good", http=http).delete("acme")
    assert raised.value.kind == "scope-missing"


def test_an_error_carries_the_id_by_which_the_services_log_knows_the_request(http: TestClient) -> None:
    with pytest.raises(Unauthorized) as raised:
        Client(URL, http=http).company("acme")
    assert len(raised.value.request_id) == 32
    assert raised.value.request_id in str(raised.value)


def test_who_asks_too_often_learns_when_to_go_on(read_only_index: SqliteIndex) -> None:
    slow = Guards(settings=ServiceSettings(rate=0.1, burst=1), keys=READERS, limited=True)
    with TestClient(create_app(index=read_only_index, guards=slow)) as http:
        client = Client(URL, api_key="good", http=http, retries=Retries(deadline=5))
        client.company("acme")
        with pytest.raises(RateLimited) as raised:
            client.company("acme")
    assert raised.value.retry_after == pytest.approx(10, abs=1)
