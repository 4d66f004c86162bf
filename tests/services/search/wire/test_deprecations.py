"""What is to go is said in the description and in the answers."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from services.search.wire.deprecations import DEPRECATED, Deprecation, announce

SINCE = datetime(2027, 1, 1, tzinfo=UTC)
SUNSET = datetime(2027, 8, 1, tzinfo=UTC)
GUIDE = Path(__file__).parents[4] / "docs" / "api.md"


def deprecation(**fields: Any) -> Deprecation:
    told: dict[str, Any] = {"since": SINCE, "sunset": SUNSET, "instead": "use /new"}
    return Deprecation(method="GET", path="/old/{name}", **{**told, **fields})


def client_of(*deprecated: Deprecation) -> TestClient:
    app = FastAPI()

    @app.get("/old/{name:path}")
    def old(name: str, k: int = 1) -> str:
        """Something."""
        return name * k

    @app.put("/old/{name}")
    def put(name: str) -> str:
        return name

    announce(app, deprecated)
    return TestClient(app)


def test_an_operation_that_is_to_go_says_since_when_and_until_when() -> None:
    client = client_of(deprecation())
    headers = client.get("/old/a/b").headers
    assert headers["deprecation"] == "@1798761600"
    assert headers["sunset"] == "Sun, 01 Aug 2027 00:00:00 GMT"
    assert headers["link"] == '</docs>; rel="deprecation"; type="text/html"'
    assert "deprecation" not in client.put("/old/a").headers
    assert "deprecation" not in client.get("/nothing").headers


def test_a_parameter_that_is_to_go_is_told_only_to_those_who_use_it() -> None:
    client = client_of(deprecation(parameter="k"))
    assert "deprecation" not in client.get("/old/a?kk=1").headers
    assert "deprecation" in client.get("/old/a?k=1").headers
    # Also where the answer is a problem.
    assert "sunset" in client.get("/old/a?k=").headers


def test_of_several_the_first_to_go_is_told() -> None:
    sooner = deprecation(parameter="k", sunset=datetime(2027, 7, 10, tzinfo=UTC))
    assert client_of(deprecation(), sooner).get("/old/a?k=1").headers["sunset"] == "Sat, 10 Jul 2027 00:00:00 GMT"


def test_the_description_marks_operation_and_parameter() -> None:
    described = client_of(deprecation()).get("/openapi.json").json()["paths"]["/old/{name}"]
    assert described["get"]["deprecated"] is True
    assert described["get"]["description"] == "Something. Deprecated, ends on 2027-08-01: use /new"
    assert "deprecated" not in described["put"]
    of_parameter = client_of(deprecation(parameter="k")).get("/openapi.json").json()["paths"]["/old/{name}"]["get"]
    assert "deprecated" not in of_parameter
    assert [each["name"] for each in of_parameter["parameters"] if each.get("deprecated")] == ["k"]


def test_nothing_may_go_in_less_than_six_months() -> None:
    with pytest.raises(ValueError, match="a later sunset"):
        deprecation(sunset=datetime(2027, 6, 1, tzinfo=UTC))


def test_the_guide_says_so_where_nothing_is_deprecated() -> None:
    assert ("Nothing is deprecated today." in GUIDE.read_text(encoding="utf-8")) is not bool(DEPRECATED)
