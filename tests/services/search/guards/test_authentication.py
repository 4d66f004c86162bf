"""Who gets past the door."""

import pytest
from starlette.types import Scope

from services.search.guards.authentication import Authentication
from services.search.guards.callers import CALLER, LOCAL, Caller
from services.search.guards.rate_limits import OPEN_ALLOWANCE, TokenBuckets
from tests.services.search.asgi import Answer, Clock, Inner, ask, http

ANN = Caller(name="ann", scopes=frozenset())


class Case:
    def __init__(self) -> None:
        self.inner, self.clock = Inner(), Clock()
        strangers = TokenBuckets(OPEN_ALLOWANCE, clock=self.clock)
        self.app = Authentication(self.inner, keys={"right": ANN}.get, strangers=strangers)

    def ask(self, authorization: str = "", address: str = "10.0.0.1", path: str = "/similar/acme") -> Answer:
        scope: Scope = http(path, authorization=authorization) if authorization else http(path)
        return ask(self.app, {**scope, "client": (address, 1)})


def test_a_valid_key_comes_through_with_its_caller() -> None:
    case = Case()
    assert case.ask("Bearer right").status == 200
    assert case.ask("bearer  right ").status == 200
    assert [scope[CALLER] for scope in case.inner.scopes] == [ANN, ANN]


@pytest.mark.parametrize("authorization", ["", "right", "Basic right", "Bearer", "Bearer  ", "Basic cmlnaHQ="])
def test_without_a_key_it_is_401_with_a_challenge(authorization: str) -> None:
    case = Case()
    answer = case.ask(authorization)
    assert answer.status == 401
    assert answer.problem == "key-needed"
    assert answer.headers["www-authenticate"] == 'Bearer realm="company similarity"'
    assert case.inner.scopes == []


def test_a_wrong_key_is_401_and_is_not_repeated() -> None:
    case = Case()
    answer = case.ask("Bearer wrong-secret")
    assert answer.status == case.ask("Bearer \xa0right").status == 401  # otherwise limits would count two keys
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert b"wrong-secret" not in answer.body
    assert case.inner.scopes == []


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/healthz", "/readyz", "/assets/page.js"])
def test_the_page_the_manual_and_health_need_no_key(path: str) -> None:
    assert Case().ask(path=path).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/similar",
        "/companies/x",
        "/docs/",
        "/healthz/",
        "//",
        "/HEALTHZ",
        "/assets",
        "/nothing",
        "/assetsx/",
        "",
        "/lists/docs",
    ],
)
def test_everything_else_does_even_where_there_is_nothing(path: str) -> None:
    assert Case().ask(path=path).status == 401


@pytest.mark.parametrize("authorization", ["", "Bearer wrong"])
def test_refusals_are_limited_per_address(authorization: str) -> None:
    case = Case()
    answers = [case.ask(authorization) for _ in range(105)]
    assert [answer.status for answer in answers] == [401] * 100 + [429] * 5
    assert answers[-1].headers["retry-after"] == "1"
    # What the client has pipelined behind it is not answered.
    assert answers[-1].headers["connection"] == "close"
    assert case.ask(authorization, address="10.0.0.2").status == 401
    case.clock.now += 0.05
    assert [case.ask(authorization).status for _ in range(2)] == [401, 429]


def test_a_valid_key_passes_where_others_failed_so_nobody_is_locked_out() -> None:
    case = Case()
    for _ in range(120):
        case.ask("Bearer wrong")
    assert case.ask("Bearer right").status == 200


def test_without_keys_everybody_is_local() -> None:
    inner = Inner()
    assert (
        ask(
            Authentication(inner, keys=None, strangers=TokenBuckets(OPEN_ALLOWANCE)),
            http(authorization="Bearer whatever"),
        ).status
        == 200
    )
    assert inner.scopes[0][CALLER] is LOCAL
