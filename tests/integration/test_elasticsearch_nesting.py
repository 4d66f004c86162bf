"""Deeply nested JSON that another program wrote to a real server: an error of ours, whatever the depth."""

import json
from contextlib import closing

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.company import DeletedCompany
from similarity.errors import IndexUnavailable
from similarity.feedback.elastic import ElasticWorkspace
from similarity.formats.json_text import MOST_LEVELS
from similarity.index.elastic.documents import source_of
from tests.contract.steps import add_live, outcomes
from tests.factories import make_embedded
from tests.integration.elasticsearch_place import Place
from tests.services.search.wire.test_failures import problem

pytestmark = pytest.mark.integration

HEADERS = {"accept": "application/json", "content-type": "application/json"}
# One level too many, near Python's limit, near the server's own (1,000).
DEPTHS = [MOST_LEVELS + 1, 900, 980]
MARK = '"here"'


def write(place: Place, index: str, document_id: str, source: dict[str, object], depth: int) -> None:
    """Writes a document in which a nested value stands in place of the text "here"."""
    body = json.dumps(source).replace(MARK, "[" * depth + "1" + "]" * depth)
    place.client.perform_request("PUT", f"/{index}/_doc/{document_id}?refresh=true", headers=HEADERS, body=body)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_company(place: Place, depth: int) -> None:
    index = place.open()
    add_live(index, "first")
    index.upsert("first", [make_embedded("acme", name="Acme")])
    source = source_of(make_embedded("deep", name="Deep", attributes={"size": "here"}), packs_vectors=False)
    write(place, place.index_of("first"), "deep", {**source, "filters": {}, "company": {**source["company"]}}, depth)
    for ask in (
        lambda: index.get("first", ["deep"]),
        lambda: index.find("first", "Deep"),
        lambda: index.similar("first", make_embedded("deep").vector, k=2),
        lambda: list(index.scan("first")),
    ):
        with pytest.raises(IndexUnavailable, match=r"stored company 'deep' cannot be read|nested too deeply"):
            ask()
    with TestClient(create_app(index=index)) as client:
        for path in ("/companies/deep", "/similar/deep", "/similar/acme?k=5", "/companies?q=deep"):
            assert problem(client.get(path), "index-unavailable")["status"] == 503
        assert client.get("/companies/acme").status_code == 200
    # What the log tells to do helps.
    assert outcomes(index.upsert("first", [DeletedCompany(id="deep", version=2**40)])) == ["applied"]
    assert index.get("first", ["deep", "acme"]).keys() == {"acme"}


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_saved_list(place: Place, depth: int) -> None:
    index = place.open()
    add_live(index, "first")
    index.upsert("first", [make_embedded("acme", name="Acme")])
    with (
        closing(ElasticWorkspace(place.settings)) as workspace,
        TestClient(create_app(index=index, workspace=workspace)) as client,
    ):
        saved = client.put("/lists/shoes", json={"question": {"anchors": [{"company": "acme"}]}})
        assert saved.status_code in {200, 201}, saved.text
        [hit] = workspace._indices.listed("list")
        source = {**hit["_source"], "question": {"anchors": "here"}}
        write(place, hit["_index"], hit["_id"], source, depth)
        for path in ("/lists", "/lists/shoes"):
            assert problem(client.get(path), "index-unavailable")["status"] == 503
