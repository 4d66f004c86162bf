"""What the API says about itself is made once, and asking for it keeps nobody else waiting."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from services.search import description
from services.search.app import create_app
from services.search.description import DescriptionCache
from services.search.guards.callers import Caller, Scope
from services.search.guards.guards import Guards
from services.search.manual import manual_page
from services.search.settings import ServiceSettings
from similarity.index.sqlite import SqliteIndex

KEY = {"Authorization": "Bearer reader"}


READERS = {"reader": Caller(name="reader", scopes=frozenset({Scope.READ}))}.get


def described() -> dict[str, Any]:
    """A small document, as FastAPI makes it."""
    app = FastAPI(title="T", description="D")

    @app.get("/things", tags=["Companies"], responses={404: {"model": dict[str, str]}})
    def things() -> dict[str, str]:
        """All things."""
        return {}

    return {"components": {"schemas": {}}} | app.openapi()


def test_many_who_ask_at_once_get_one_finished_document() -> None:
    calls, begun, may_end = [], threading.Event(), threading.Event()

    def describe() -> dict[str, Any]:
        calls.append(threading.get_ident())
        begun.set()
        assert may_end.wait(timeout=10)
        return described()

    asked = DescriptionCache(describe)
    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(asked.get) for _ in range(8)]
        assert begun.wait(timeout=10)
        may_end.set()
        made = [each.result(timeout=10) for each in waiting]
    assert len(calls) == 1
    assert all(each is made[0] for each in made)
    assert list(made[0].document["paths"]["/things"]["get"]["responses"]["404"]["content"]) == [
        "application/problem+json"
    ]


def test_manual_and_document_are_made_once(read_only_index: SqliteIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    def page(document: dict[str, Any]) -> str:
        made.append(document)
        return manual_page(document)

    monkeypatch.setattr(description, "manual_page", page)
    app = create_app(index=read_only_index)
    client = TestClient(app)
    pages = {client.get("/docs").text for _ in range(3)}
    documents = {client.get("/openapi.json").text for _ in range(3)}
    assert (len(pages), len(documents), len(made)) == (1, 1, 1)
    assert json.loads(documents.pop()) == app.openapi() is made[0]
    assert client.head("/docs").headers["content-type"] == "text/html; charset=utf-8"
    assert client.get("/openapi.json").headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", ["/docs", "/openapi.json"])
def test_who_has_no_key_uses_up_nothing_of_those_who_have_one(read_only_index: SqliteIndex, path: str) -> None:
    settings = ServiceSettings(service_rate=0.001, service_burst=1, at_once=1)
    guards = Guards(settings=settings, keys=READERS, limited=True)
    client = TestClient(create_app(index=read_only_index, guards=guards))
    # The only place is taken: a request that needed one would wait in vain.
    assert asyncio.run(guards.gates.quick.enter())
    assert [client.get(path).status_code for _ in range(3)] == [200, 200, 200]
    guards.gates.quick.leave()
    assert client.get("/similar/acme?k=1", headers=KEY).status_code == 200
    assert client.get("/similar/acme?k=1", headers=KEY).status_code == 429
