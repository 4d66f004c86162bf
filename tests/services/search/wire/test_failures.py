"""Every error is a problem document that says what to do, and none tells what is inside."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from services.search.wire.failures import allowed_methods
from services.search.wire.problems import KINDS
from similarity.company import Vector
from similarity.errors import IndexUnavailable, UnknownGeneration
from similarity.index.protocol import Generation, SimilarCompanies
from similarity.index.sqlite import SqliteIndex
from tests.services.search.asking.test_routes import AxisEncoder
from tests.services.search.corpus import add_generation, companies, company, filled_index

STATUS_OF = {kind.slug: kind.status for kind in KINDS}


def problem(answer: Any, slug: str) -> dict[str, Any]:
    """The problem document, checked in all that every one of them keeps."""
    document: dict[str, Any] = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert document["type"] == f"/docs#{slug}"
    assert document["status"] == answer.status_code == STATUS_OF[slug]
    assert document["instance"] == answer.request.url.path
    assert document["title"]
    assert document["detail"]
    return document


class FailingIndex(SqliteIndex):
    """Fails on every question."""

    error: Exception = IndexUnavailable("the index /secret/place does not answer: the disk is full")

    def live(self) -> Generation:
        raise self.error


class VanishingIndex(SqliteIndex):
    """The live generation is promoted over and retired between reading the anchor and comparing it."""

    times = 1

    def similar(self, generation: str, vector: Vector, **options: Any) -> SimilarCompanies:
        if self.times:
            self.times -= 1
            self.promote("second")
            self.retire("first")
        return super().similar(generation, vector, **options)


class AlwaysVanishingIndex(SqliteIndex):
    """Every generation is gone by the time it is compared with."""

    def similar(self, generation: str, vector: Vector, **options: Any) -> SimilarCompanies:
        raise UnknownGeneration(f"there is no generation {generation!r}")


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[FailingIndex]:
    index = FailingIndex(tmp_path / "failing.db")
    yield index
    index.close()


def test_an_unknown_company_is_404_with_what_may_be_meant(client: TestClient) -> None:
    document = problem(client.get("/similar/boot"), "unknown-company")
    assert document["detail"] == (
        "no company has the id, domain, name or alias 'boot'; did you mean Boots GmbH (boots)?"
    )
    assert document["suggestions"] == [
        {"id": "boots", "name": "Boots GmbH", "domain": "boots.de", "country": "Germany", "industry": "Footwear"}
    ]


def test_a_contested_name_is_409_with_the_candidates(client: TestClient) -> None:
    for path in ("/similar/Delta", "/companies/delta"):
        document = problem(client.get(path), "contested-name")
        assert document["detail"].startswith("2 companies match")
        assert [each["id"] for each in document["candidates"]] == ["clogs", "delta-air"]


@pytest.mark.parametrize(
    ("path", "errors"),
    [
        ("/similar/acme?k=0", [("k", "query", "must be greater than or equal to 1")]),
        ("/similar/acme?k=251", [("k", "query", "must be less than or equal to 250")]),
        ("/similar/acme?k=ten", [("k", "query", "must be a whole number")]),
        ("/similar/acme?k=", [("k", "query", "must be a whole number")]),
        ("/similar/acme?limit=3", [("limit", "query", "there is no such parameter here; see /docs")]),
        (
            "/similar/acme?k=x&colour=red",
            [
                ("k", "query", "must be a whole number"),
                ("colour", "query", "there is no such parameter here; see /docs"),
            ],
        ),
        ("/similar/acme?text=shoes", [("text", "query", "there is no such parameter here; see /docs")]),
        (f"/similar/{'x' * 513}", [("company_id", "path", "must have at most 512 characters")]),
        (f"/similar/acme?country={'x' * 513}", [("country", "query", "must have at most 512 characters")]),
        ("/similar/", [("company_id", "path", "must have at least 1 character")]),
        ("/similar", [("text", "query", "is missing")]),
        ("/similar?text=%20", [("text", "query", "must have at least 1 character")]),
        (f"/similar?text={'x' * 5001}", [("text", "query", "must have at most 5000 characters")]),
        ("/companies", [("q", "query", "is missing")]),
        ("/companies?q=x&limit=-1", [("limit", "query", "must be greater than or equal to 1")]),
        ("/companies/acme?k=3", [("k", "query", "there is no such parameter here; see /docs")]),
    ],
)
def test_a_bad_request_is_422_with_each_offending_parameter(
    client: TestClient, path: str, errors: list[tuple[str, str, str]]
) -> None:
    document = problem(client.get(path), "invalid-request")
    assert [(each["parameter"], each["where"], each["reason"]) for each in document["errors"]] == errors
    assert document["detail"] == "; ".join(f"{name}: {reason}" for name, _, reason in errors)


def test_too_many_filter_values_are_422(client: TestClient) -> None:
    document = problem(client.get("/similar/acme", params={"country": ["x"] * 101}), "invalid-request")
    assert document["errors"][0]["reason"] == "must have at most 100 items, not 101"


@pytest.mark.parametrize("path", ["/nothing", "/similars/acme", "/assets/none.js", "/assets/../app.py", "/docs/more"])
def test_an_unknown_address_is_a_problem(client: TestClient, path: str) -> None:
    document = problem(client.get(path), "unknown-address")
    assert document["detail"].endswith("; /docs lists the addresses")


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("PUT", "/companies/a%2Fb", "method-not-allowed"),
        ("POST", "/companies/a/b/erasure", "method-not-allowed"),
        ("PUT", "/lists/a%2Fb", "unknown-address"),
    ],
)
def test_a_slash_in_an_id_or_the_name_of_a_list_is_named(client: TestClient, method: str, path: str, kind: str) -> None:
    assert "no id or name of a list has a slash" in problem(client.request(method, path), kind)["detail"]


@pytest.mark.parametrize(
    ("path", "body", "parameter", "reason"),
    [
        ("/similar", [], "body", "must be a JSON object; /docs#Question describes it"),
        ("/match", {"rows": ["nike"]}, "rows[0]", "must be a JSON object; /docs#MatchRow describes it"),
        ("/similar", {"anchors": "nike"}, "anchors", "must be a list"),
        ("/similar", {"anchors": ["nike"]}, "anchors[0]", "must be a JSON object; /docs#Anchor describes it"),
    ],
)
def test_what_is_wrong_with_a_body_is_said_in_plain_words(
    client: TestClient, path: str, body: Any, parameter: str, reason: str
) -> None:
    [error] = problem(client.post(path, json=body), "invalid-request")["errors"]
    assert (error["parameter"], error["reason"]) == (parameter, reason)


@pytest.mark.parametrize("path", ["/similar/acme", "/companies", "/healthz", "/"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_another_method_is_405_and_says_which_is_allowed(client: TestClient, path: str, method: str) -> None:
    answer = client.request(method, path)
    detail = f"{path} does not accept {method}, but GET; /docs lists the addresses"
    assert problem(answer, "method-not-allowed")["detail"] == detail
    assert answer.headers["allow"] == "GET"


PATHS: dict[str, dict[str, Any]] = {
    "/things": {"get": {}, "post": {}},
    "/things/all": {"post": {}},
    "/things/{id}": {"get": {}, "put": {}},
    "/things/{id}/parts": {"delete": {}},
}


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/things", ["GET", "POST"]),
        ("/things/all", ["POST"]),
        ("/things/one", ["GET", "PUT"]),
        ("/things/a/b\nc", ["GET", "PUT"]),
        ("/things/one/parts", ["DELETE"]),
        ("/things/", []),
        ("/elsewhere", []),
    ],
)
def test_the_allowed_methods_are_all_those_of_the_address(path: str, methods: list[str]) -> None:
    assert allowed_methods(PATHS, path) == methods


def test_an_address_that_is_asked_by_get_and_by_post_says_so(client: TestClient) -> None:
    assert client.put("/similar").headers["allow"] == "GET, POST"
    assert client.put("/similar/batch").headers["allow"] == "POST"


@pytest.mark.parametrize("address", ["/companies/a%0Ab", "/similar/a%0Ab", "/map/a%0Ab"])
def test_a_reference_with_a_line_break_finds_its_route(client: TestClient, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 404, answer.text
    assert answer.json()["type"].endswith("#unknown-company")


def test_free_text_without_an_encoder_is_503_with_the_reason(client: TestClient) -> None:
    answer = client.get("/similar", params={"text": "makes leather shoes"})
    assert problem(answer, "encoder-not-loaded")["detail"] == (
        "the bundle of encoder encoder-1, which generation first needs, is not loaded; give its folder with "
        "--bundle FOLDER or SIMILARITY_BUNDLE (in Python: Searcher(index, {encoder.encoder_id: encoder}))"
    )
    assert answer.headers["retry-after"] == "300"


def test_free_text_with_another_encoder_is_503_and_companies_still_answer(read_only_index: SqliteIndex) -> None:
    encoder = AxisEncoder()
    encoder.encoder_id = "encoder-2"
    client = TestClient(create_app(index=read_only_index, encoder=encoder))
    detail = problem(client.get("/similar", params={"text": "makes leather shoes"}), "encoder-not-loaded")["detail"]
    assert detail.startswith("the bundle of encoder encoder-1, which generation first needs, is not loaded")
    assert client.get("/similar/acme").status_code == 200
    assert encoder.texts == []


QUESTIONS = ["/similar/acme", "/similar?text=makes leather shoes", "/companies/acme", "/companies?q=acme", "/readyz"]


@pytest.mark.parametrize("path", QUESTIONS)
def test_an_index_without_companies_is_503_and_says_how_to_fill_it(tmp_path: Path, path: str) -> None:
    index = SqliteIndex(tmp_path / "empty.db")
    answer = TestClient(create_app(index=index)).get(path)
    index.close()
    document = problem(answer, "no-live-generation")
    assert document["detail"] == "the index holds no companies yet; fill it with: similarity ingest FILE"
    assert answer.headers["retry-after"] == "30"


@pytest.mark.parametrize("path", QUESTIONS)
def test_a_store_that_does_not_answer_is_503_and_its_place_stays_in_the_log(
    failing: FailingIndex, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = TestClient(create_app(index=failing)).get(path)
    problem(answer, "index-unavailable")
    assert answer.headers["retry-after"] == "5"
    assert "secret" not in answer.text
    assert "/secret/place does not answer" in caplog.text


@pytest.mark.parametrize("path", QUESTIONS)
def test_an_unforeseen_error_is_500_and_its_trace_stays_in_the_log(
    failing: FailingIndex, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    failing.error = RuntimeError("the password is swordfish")
    answer = TestClient(create_app(index=failing)).get(path)
    assert problem(answer, "internal-error")["detail"] == "the service failed on this request; its log says why"
    assert "swordfish" not in answer.text
    assert "swordfish" in caplog.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_generation_that_vanishes_between_two_steps_is_asked_anew(tmp_path: Path) -> None:
    filled_index(tmp_path / "index.db").close()
    index = VanishingIndex(tmp_path / "index.db")
    add_generation(index, "second", [*companies(), company("better", 0.95, 6)])
    answer = TestClient(create_app(index=index)).get("/similar/acme", params={"k": 1})
    index.close()
    assert answer.status_code == 200
    assert answer.json()["generation"] == "second"
    assert [hit["company"]["id"] for hit in answer.json()["hits"]] == ["better"]
    assert index.times == 0


def test_a_generation_that_vanishes_again_and_again_is_503(tmp_path: Path) -> None:
    filled_index(tmp_path / "index.db").close()
    index = AlwaysVanishingIndex(tmp_path / "index.db")
    answer = TestClient(create_app(index=index)).get("/similar/acme")
    index.close()
    assert problem(answer, "generation-gone")["detail"] == "the index was replaced while this was answered; ask again"
    assert answer.headers["retry-after"] == "1"
