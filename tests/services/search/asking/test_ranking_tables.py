"""A ranking as a table."""

import csv
import io
from typing import Any

import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from services.search.asking.csv_answers import COLUMNS
from services.search.wire.tables import wants_csv
from similarity.index.sqlite import SqliteIndex
from tests.services.search.corpus import company


def rows(answer: Any) -> list[dict[str, str]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.text, newline="")))


def test_a_table_has_a_row_for_each_hit(client: TestClient) -> None:
    answer = client.get("/similar/zapatos", params={"format": "csv", "k": 5})
    assert answer.text.splitlines()[0] == ",".join(COLUMNS)
    table = rows(answer)
    assert [row["rank"] for row in table] == ["1", "2", "3", "4", "5"]
    [boots] = [row for row in table if row["id"] == "boots"]
    assert (boots["name"], boots["domain"], boots["country"]) == ("Boots GmbH", "boots.de", "Germany")
    assert boots["reason"] == "industry: Footwear"
    assert float(boots["score"]) == pytest.approx(0.45, abs=1e-3)
    assert boots["probability"] == ""


def test_a_table_is_saved_under_the_name_of_its_anchor(client: TestClient) -> None:
    answer = client.get("/similar/Acme", params={"format": "csv"})
    assert answer.headers["content-disposition"] == 'attachment; filename="competitors-acme.csv"'


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_accept_header_asks_for_a_table_and_the_parameter_wins(client: TestClient, method: str) -> None:
    path = "/similar/acme" if method == "GET" else "/similar"
    body = None if method == "GET" else {"anchors": [{"company": "acme"}]}
    assert len(rows(client.request(method, path, json=body, headers={"Accept": "text/csv"}))) == 5
    answer = client.request(method, f"{path}?format=json", json=body, headers={"Accept": "text/csv"})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["vary"] == "Accept"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("text/csv", True),
        ("text/csv, application/json;q=0.5", True),
        ("text/csv;q=0.5, */*;q=0.1", True),
        ("TEXT/CSV ; Q=1", True),
        ("text/csv;q=0", False),
        ("text/csv;q=0.5, application/json", False),
        ("text/html,application/xhtml+xml,*/*;q=0.8", False),
        ("text/*", False),
        ("*/*", False),
        ("", False),
        ("text/csv;q=nonsense", False),
        (";;,,q=", False),
    ],
)
def test_what_an_accept_header_likes_better(accept: str, expected: bool) -> None:
    assert wants_csv(None, accept) is expected


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0"])
def test_a_name_that_a_spreadsheet_would_run_is_quoted(index: SqliteIndex, name: str) -> None:
    index.upsert("first", [company("evil", 0.99, 6, name=name, country=name)])
    answer = TestClient(create_app(index=index)).get("/similar/acme?format=csv&k=1")
    [row] = rows(answer)
    assert (row["name"], row["country"]) == (f"'{name}", f"'{name}")


def test_members_that_were_not_asked_for_are_empty(client: TestClient) -> None:
    [row] = rows(client.get("/similar/acme?format=csv&k=1&fields=country"))
    assert (row["id"], row["name"], row["country"]) == ("boots", "", "Germany")


def test_a_problem_is_no_table(client: TestClient) -> None:
    answer = client.get("/similar/nobody?format=csv")
    assert answer.headers["content-type"] == "application/problem+json"
