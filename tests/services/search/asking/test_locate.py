"""Where a company is in a ranking, and which attributes are declared, over HTTP."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from similarity.index.attributes import parse_schema
from similarity.index.sqlite import SqliteIndex
from tests.services.search.asking.test_routes import AxisEncoder
from tests.services.search.corpus import CALIBRATION, filled_index
from tests.services.search.test_openapi import check
from tests.services.search.wire.test_failures import problem


def located(client: TestClient, company: str, **members: Any) -> dict[str, Any]:
    answer = client.post("/similar/locate", json={"anchors": [{"company": "acme"}], "company": company, **members})
    check("POST /similar/locate", answer)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_rank_comes_with_scores_and_reasons(tmp_path: Path) -> None:
    index = filled_index(tmp_path / "index.db", calibration=CALIBRATION)
    with TestClient(create_app(index=index, encoder=AxisEncoder())) as client:
        found = located(client, "Zapatos")
        hit = client.get("/similar/acme", params={"reasons": 5}).json()["hits"][2]
        assert (found["rank"], found["nearer"]) == (3, 2)
        assert (found["company"]["id"], found["redirected_from"]) == ("zapatos", "Zapatos")
        assert [found[name] for name in ("score", "probability", "reason")] == [
            hit[name] for name in ("score", "probability", "reason")
        ]
    index.close()


def test_what_removes_it_is_named(client: TestClient) -> None:
    filters = [{"field": "country", "any_of": ["Germany"]}]
    found = located(client, "clogs", filters=filters, exclude=["clogs"])
    assert found["rank"] is None
    assert found["removed_by"] == [
        {"by": "exclude", "company": "clogs", "field": None},
        {"by": "filter", "company": None, "field": "country"},
    ]


@pytest.mark.parametrize(
    ("company", "kind"), [("nobody at all", "unknown-company"), ("Delta", "contested-name"), ("", "invalid-request")]
)
def test_a_company_that_cannot_be_found_is_a_problem(client: TestClient, company: str, kind: str) -> None:
    problem(client.post("/similar/locate", json={"anchors": [{"company": "acme"}], "company": company}), kind)


def test_the_declared_attributes_are_told(index: SqliteIndex) -> None:
    with TestClient(create_app(index=index)) as client:
        assert client.get("/attributes").json() == {"types": {}, "size": None}
        index.declare(parse_schema(["employees:number", "market_cap:ordinal=small,large"], "market_cap"))
        answer = client.get("/attributes")
        check("GET /attributes", answer)
        assert answer.json() == {
            "types": {
                "employees": {"type": "number", "levels": []},
                "market_cap": {"type": "ordinal", "levels": ["small", "large"]},
            },
            "size": "market_cap",
        }


def test_a_search_box_shows_large_companies_first(index: SqliteIndex) -> None:
    with TestClient(create_app(index=index)) as client:
        index.declare(parse_schema(["employees:number"], "employees"))
        names = [each["name"] for each in client.get("/companies", params={"q": "b"}).json()["companies"]]
        assert names[0] == "Boots GmbH"
