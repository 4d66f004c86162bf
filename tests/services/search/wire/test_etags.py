"""Whoever has an answer already is told so."""

import tracemalloc
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from services.search.app import create_app
from services.search.asking.ranking_schemas import BatchAnswer
from services.search.wire.etags import etag_of
from similarity.index.sqlite import SqliteIndex
from tests.services.search.corpus import VERSION, company

PATHS = ["/similar/acme", "/companies/acme", "/similar/acme?format=csv"]


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_that_has_not_changed_is_not_sent_again(client: TestClient, path: str) -> None:
    first = client.get(path)
    again = client.get(path, headers={"If-None-Match": f'"other", {first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert client.get(path, headers={"If-None-Match": "*"}).status_code == 304
    assert client.get(path, headers={"If-None-Match": 'W/"other"'}).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_that_has_changed_has_another_tag(index: SqliteIndex, path: str) -> None:
    client = TestClient(create_app(index=index))
    before = client.get(path).headers["etag"]
    index.upsert("first", [replace(company("acme", 1.0, 1, name="Acme Anew", country="Spain"), version=VERSION + 2)])
    after = client.get(path, headers={"If-None-Match": before})
    assert after.status_code == 200
    assert after.headers["etag"] != before


def test_an_answer_to_a_body_has_a_tag_but_is_always_sent(client: TestClient) -> None:
    body = {"anchors": [{"company": "acme"}]}
    tag = client.post("/similar", json=body).headers["etag"]
    assert client.post("/similar", json=body, headers={"If-None-Match": tag}).status_code == 200


def test_how_long_an_answer_took_does_not_count() -> None:
    one, other = (BatchAnswer(answers=[], generation="g", took_ms=took) for took in (1.5, 22.25e-7))
    assert etag_of(one.model_dump_json().encode()) == etag_of(other.model_dump_json().encode())


@given(st.text(max_size=20), st.text(max_size=20))
def test_what_a_company_is_called_does_count(one: str, other: str) -> None:
    def tag(name: str) -> str:
        return etag_of(BatchAnswer(answers=[], generation=f'"took_ms":{name}', took_ms=1).model_dump_json().encode())

    assert (tag(one) == tag(other)) is (one == other)


def test_a_large_answer_is_not_copied() -> None:
    body = b'{"hits":"' + b"x" * 5_000_000 + b'","took_ms":1.5}'
    tracemalloc.start()
    etag_of(body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000
