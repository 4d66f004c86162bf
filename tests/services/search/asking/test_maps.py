"""Maps: the hits of a question on a plane, with those they were asked for."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from services.search.asking.map_routes import map_routes
from services.search.asking.maps import MapService
from services.search.asking.service import SearchService
from services.search.wire.failures import answer_failures
from similarity.company import DeletedCompany
from similarity.index.sqlite import SqliteIndex
from similarity.search.queries.encoders import QueryEncoders
from similarity.search.searcher import Searcher
from tests.fakes import CountingEncoder
from tests.services.search.corpus import VERSION, filled_index

Ask = Callable[..., dict[str, Any]]


def client_of(index: SqliteIndex, *, encoder: CountingEncoder | None = None) -> TestClient:
    app = FastAPI()
    answer_failures(app)
    models = QueryEncoders({encoder.encoder_id: encoder} if encoder else {})
    app.include_router(map_routes(MapService(SearchService(Searcher(index, models)))))
    return TestClient(app)


@pytest.fixture(scope="module")
def client(read_only_index: SqliteIndex) -> Iterator[TestClient]:
    with client_of(read_only_index, encoder=CountingEncoder()) as client:
        yield client


@pytest.fixture
def ask(client: TestClient) -> Ask:
    def ask(**question: Any) -> dict[str, Any]:
        response = client.post("/map", json=question)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    return ask


def test_a_company_stands_on_the_map_with_its_hits(client: TestClient) -> None:
    answer = client.get("/map/acme", params={"k": 3}).json()
    assert [(point["role"], point["id"]) for point in answer["points"]] == [
        ("anchor", "acme"),
        ("hit", "boots"),
        ("hit", "clogs"),
        ("hit", "zapatos"),
    ]
    assert [point["name"] for point in answer["points"]] == ["Acme Shoes, Inc.", "Boots GmbH", "Clogs", "Zapatos SA"]
    assert answer["generation"] == "first"


def test_hits_have_scores_and_anchors_have_none(client: TestClient) -> None:
    points = client.get("/map/acme", params={"k": 2}).json()["points"]
    assert [point["score"] for point in points] == [None, pytest.approx(0.9), pytest.approx(0.8)]


def test_several_anchors_free_words_and_negatives_are_points_too(ask: Ask) -> None:
    points = ask(
        anchors=[{"company": "acme.com"}, {"text": "sells leather shoes"}], negatives=[{"company": "delta-air"}], k=1
    )["points"]
    assert [(point["role"], point["id"], point["name"]) for point in points] == [
        ("anchor", "acme", "Acme Shoes, Inc."),
        ("anchor", None, "sells leather shoes"),
        ("negative", "delta-air", "Delta"),
        ("hit", points[3]["id"], points[3]["name"]),
    ]


@pytest.mark.parametrize("params", [{"format": "csv"}, {"k": 251}, {"colour": "red"}])
def test_what_a_map_cannot_do_is_refused(client: TestClient, params: dict[str, Any]) -> None:
    assert client.get("/map/acme", params=params).status_code == 422


def test_who_has_the_map_already_is_told_so(client: TestClient) -> None:
    first = client.get("/map/acme")
    again = client.get("/map/acme", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


class ForgetfulIndex(SqliteIndex):
    """Deletes `boots` between the search and the reading of vectors."""

    def similar(self, generation: str, *args: Any, **options: Any) -> Any:
        found = super().similar(generation, *args, **options)
        self.upsert(generation, [DeletedCompany(id="boots", version=VERSION + 1)])
        return found


def test_a_hit_that_was_deleted_meanwhile_has_no_point(tmp_path: Any) -> None:
    filled_index(tmp_path / "own.db").close()
    index = ForgetfulIndex(tmp_path / "own.db")
    points = client_of(index).get("/map/acme", params={"k": 2}).json()["points"]
    assert [point["id"] for point in points] == ["acme", "clogs"]
    index.close()
