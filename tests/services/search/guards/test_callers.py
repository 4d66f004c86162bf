"""What a caller may do, and what a route hears of it."""

from typing import Annotated

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from services.search.guards.authentication import Authentication
from services.search.guards.callers import LOCAL, Caller, Scope, needs
from services.search.guards.rate_limits import OPEN_ALLOWANCE, TokenBuckets
from services.search.wire.failures import answer_failures

READER = Caller(name="reader", scopes=frozenset({Scope.READ}))
CHIEF = Caller(name="chief", scopes=frozenset({Scope.ADMIN}))
KNOWN_NAMES = {"reader": READER, "chief": CHIEF}.get


@pytest.fixture
def app() -> FastAPI:
    app = FastAPI()
    answer_failures(app)

    @app.get("/read")
    def read(caller: Annotated[Caller, needs(Scope.READ)]) -> str:
        return caller.name

    @app.get("/write")
    def write(caller: Annotated[Caller, needs(Scope.WRITE)]) -> str:
        return caller.name

    return app


@pytest.mark.parametrize("scope", list(Scope))
def test_an_admin_and_whoever_is_on_this_machine_may_do_everything(scope: Scope) -> None:
    assert CHIEF.may(scope)
    assert LOCAL.may(scope)


def test_without_keys_everybody_is_the_local_caller(app: FastAPI) -> None:
    assert TestClient(app).get("/write").json() == "local"


def test_a_route_hears_who_asks(app: FastAPI) -> None:
    app.add_middleware(Authentication, keys=KNOWN_NAMES, strangers=TokenBuckets(OPEN_ALLOWANCE))
    answer = TestClient(app).get("/read", headers={"Authorization": "Bearer reader"})
    assert answer.json() == "reader"


def test_a_key_without_the_scope_is_refused_with_its_name_and_the_scope(app: FastAPI) -> None:
    app.add_middleware(Authentication, keys=KNOWN_NAMES, strangers=TokenBuckets(OPEN_ALLOWANCE))
    client = TestClient(app)
    answer = client.get("/write", headers={"Authorization": "Bearer reader"})
    assert answer.status_code == 403
    assert answer.json()["type"] == "/docs#scope-missing"
    assert "'reader' may not do this; it needs the scope 'write'" in answer.json()["detail"]
    assert client.get("/write", headers={"Authorization": "Bearer chief"}).json() == "chief"


def test_the_api_description_names_the_scope_of_each_route(app: FastAPI) -> None:
    document = app.openapi()
    assert document["paths"]["/write"]["get"]["security"] == [{"ApiKey": ["write"]}]
    assert document["components"]["securitySchemes"]["ApiKey"]["scheme"] == "bearer"
