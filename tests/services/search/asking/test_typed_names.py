"""Names as people type them, over HTTP: read with a confidence, never where something is changed."""

import pytest
from fastapi.testclient import TestClient

from tests.services.search.wire.test_failures import problem


@pytest.mark.parametrize("address", ["/companies/Zapatos", "/similar/Zapatos"])
def test_a_similar_name_opens_its_company_and_says_how_sure_that_is(client: TestClient, address: str) -> None:
    answer = client.get(address).json()
    assert (answer["company"]["id"], answer["redirected_from"]) == ("zapatos", "Zapatos")
    assert 0.9 <= answer["confidence"] < 1


@pytest.mark.parametrize("reference", ["zapatos", "Zapatos SA"])
def test_an_id_and_a_whole_name_are_certain(client: TestClient, reference: str) -> None:
    assert client.get(f"/companies/{reference}").json()["confidence"] == 1


def test_anchors_and_negatives_may_be_similar_names_but_exclusions_may_not(client: TestClient) -> None:
    question = {"anchors": [{"company": "Acme Shoes"}], "negatives": [{"company": "Boots"}], "exclude": ["Zapatos"]}
    answer = client.post("/similar", json=question).json()
    understood = [(each["company"]["id"], each["confidence"] < 1) for each in answer["anchors"] + answer["negatives"]]
    assert understood == [("acme", True), ("boots", True)]
    assert [(miss["asked"], miss["role"]) for miss in answer["misses"]] == [("Zapatos", "exclude")]
    assert "zapatos" in [hit["company"]["id"] for hit in answer["hits"]]


@pytest.mark.parametrize("address", ["/companies/Zapatos", "/similar/Zapatos"])
def test_an_exact_question_only_suggests(client: TestClient, address: str) -> None:
    document = problem(client.get(address, params={"resolve": "exact"}), "unknown-company")
    assert [each["id"] for each in document["suggestions"]] == ["zapatos"]
    body = {"anchors": [{"company": "Zapatos"}], "resolve": "exact"}
    problem(client.post("/similar", json=body), "unknown-company")


@pytest.mark.parametrize("reference", ["ZAPATOS", "Zapatos SA"])
def test_by_id_no_other_name_is_a_company(client: TestClient, reference: str) -> None:
    by_id = {"resolve": "id"}
    assert client.get("/companies/zapatos", params=by_id).json() == client.get("/companies/zapatos").json()
    document = problem(client.get(f"/companies/{reference}", params=by_id), "unknown-company")
    assert f"no company has the id {reference!r}" in document["detail"]
    assert [each["id"] for each in document["suggestions"]] == ["zapatos"]
