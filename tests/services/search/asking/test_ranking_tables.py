"""A ranking as a table."""

import codecs
import csv
import io
import re
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import openpyxl
import pytest
from fastapi.testclient import TestClient

from services.search.app import create_app
from services.search.asking.ranking_schemas import PhraseRecord, RankFactRecord, Reason, SharedFactRecord
from services.search.asking.ranking_tables import COLUMNS, MAX_ATTRIBUTE_COLUMNS, attribute_columns, reason_words
from services.search.wire.tables import BYTE_ORDER_MARK, XLSX, Format, wanted_format
from similarity.index.sqlite import SqliteIndex
from similarity.search.reranking.fact_effects import Relation
from tests.services.search.asking.test_routes import AxisEncoder
from tests.services.search.corpus import CALIBRATION, company, filled_index


def rows(answer: Any) -> list[dict[str, str]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.content.startswith(codecs.BOM_UTF8)  # without it, Excel reads another encoding
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))


def cells(answer: Any) -> list[tuple[Any, ...]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == XLSX
    return list(openpyxl.load_workbook(io.BytesIO(answer.content)).worksheets[0].values)


def test_a_table_has_a_row_for_each_hit(client: TestClient) -> None:
    answer = client.get("/similar/zapatos", params={"format": "csv", "k": 5})
    assert answer.text.splitlines()[0] == BYTE_ORDER_MARK + ",".join(COLUMNS)
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


@pytest.mark.parametrize("chosen", ["csv", "xlsx"])
def test_a_header_of_a_table_names_the_misses(client: TestClient, chosen: str) -> None:
    answer = client.get("/similar/acme", params={"format": chosen, "also": "Ünknown & Co", "exclude": "nobody"})
    assert answer.headers["misses"] == "%C3%9Cnknown%20%26%20Co, nobody"
    assert "misses" not in client.get("/similar/acme", params={"format": chosen}).headers


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
        ("text/csv", "csv"),
        ("text/csv, application/json;q=0.5", "csv"),
        ("text/csv;q=0.5, */*;q=0.1", "csv"),
        ("TEXT/CSV ; Q=1", "csv"),
        ("text/csv;q=0", "json"),
        ("text/csv;q=0.5, application/json", "json"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "json"),
        ("text/*", "json"),
        ("*/*", "json"),
        ("", "json"),
        ("text/csv;q=nonsense", "json"),
        (";;,,q=", "json"),
        (XLSX, "xlsx"),
        (f"text/csv;q=0.5, {XLSX}", "xlsx"),
        (f"application/*, {XLSX};q=0.9", "json"),
    ],
)
def test_what_an_accept_header_likes_better(accept: str, expected: Format) -> None:
    assert wanted_format(None, accept) == expected
    assert wanted_format("csv", accept) == "csv"


def test_an_excel_file_has_attributes_and_the_verdicts_of_the_caller(index: SqliteIndex) -> None:
    index.upsert("first", [company("evil", 0.99, 6, name="=1+1", attributes={"employees": 12, "listed": True})])
    client = TestClient(create_app(index=index))
    assert client.post(
        "/feedback", json={"anchor": "acme", "hit": "boots", "verdict": "competitor", "note": "=1+1"}
    ).is_success
    answer = client.get("/similar/acme?format=xlsx&k=2&reasons=0")
    assert answer.headers["content-disposition"] == 'attachment; filename="competitors-acme.xlsx"'
    header, evil, boots = cells(answer)
    named = dict(zip(header, evil, strict=True))
    assert (named["rank"], named["id"], named["name"], named["domain"]) == (1, "evil", "=1+1", None)
    assert (named["employees"], named["listed"], named["verdict"]) == (12, True, None)
    assert named["score"] == pytest.approx(0.99, abs=1e-3)
    assert boots[list(header).index("verdict") :][:2] == ("competitor", "=1+1")
    assert list(header) == [
        *("rank", "id", "name", "domain", "country", "industry", "employees", "listed", "score", "probability"),
        *("verdict", "note", "reason", "warning"),
    ]


def question_of(answer: Any) -> list[tuple[Any, ...]]:
    """The rows of the sheet "question" but those that change: date, index and encoder."""
    [_, sheet] = openpyxl.load_workbook(io.BytesIO(answer.content)).worksheets
    assert sheet.title == "question"
    named: dict[Any, Any] = {row[0]: row[1] for row in sheet.values}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", named["date (UTC)"])
    assert (named["part"], named["index"]) == ("value", "first")
    return [row for row in sheet.values if row[0] not in {"part", "date (UTC)", "index", "encoder"}]


def test_an_excel_file_has_its_question_on_a_sheet(client: TestClient) -> None:
    body = {
        "anchors": [{"company": "Acme", "weight": 2}, {"company": "clogs"}, {"company": "nobody at all"}],
        "negatives": [{"company": "delta-air"}],
        "filters": [
            {"field": "country", "any_of": ["Germany", "Spain"], "none_of": ["Japan"]},
            {"field": "attributes.employees", "at_least": 10, "below": 20.5},
        ],
        "exclude": ["boots"],
        "rank": "cosine",
    }
    answer = client.post("/similar?format=xlsx", json=body)
    rows = question_of(answer)
    assert rows[:8] == [
        ("like", "Acme Shoes, Inc. (acme), weight 2"),
        ("like", "Clogs (clogs), weight 1"),
        ("unlike", "Delta (delta-air)"),
        ("filter", "country: Germany or Spain, not Japan"),
        ("filter", "employees: >= 10, < 20.5"),
        ("without the companies", "boots"),
        ("ranked by", "cosine"),
        ("companies", 0),
    ]
    further = [(part, value.split(":")[0]) for part, value in rows[8:]]
    assert ("left out", "nobody at all (anchor)") in further
    assert {part for part, _ in further} <= {"left out", "warning"}


def test_a_question_in_an_address_and_a_saved_one_are_on_the_sheet_too(index: SqliteIndex) -> None:
    client = TestClient(create_app(index=index))
    rows = [
        ("like", "Acme Shoes, Inc. (acme)"),
        ("filter", "country: Germany"),
        ("ranked by", "business"),
        ("companies", 1),
    ]
    assert question_of(client.get("/similar/Acme?format=xlsx&country=Germany&reasons=0")) == rows
    question = {"anchors": [{"company": "acme"}], "filters": [{"field": "country", "any_of": ["Germany"]}]}
    assert client.put("/lists/shoes", json={"question": question}).is_success
    assert question_of(client.get("/lists/shoes/hits?format=xlsx&reasons=0")) == rows


def test_a_reason_says_whose_phrase_is_whose() -> None:
    def phrase(text: str, of: Literal["anchor", "hit"]) -> PhraseRecord:
        return PhraseRecord(text=text, of=of, anchor=0, start=0, end=1, weight=0.1)

    reason = Reason(
        shared=[SharedFactRecord(field="industry", values=("Apparel",))],
        moved=[RankFactRecord(field="industry", relation=Relation.OTHER, effect=-0.3)],
        phrases=[
            phrase("runs ski lifts", "anchor"),
            phrase("operates cable cars", "hit"),
            phrase("in the Alps", "anchor"),
        ],
    )
    assert reason_words(reason) == (
        "“operates cable cars” ↔ “runs ski lifts”; anchor: “in the Alps”; industry: Apparel; other finer industry -0.30"
    )
    reason.shared = []
    reason.phrases = None
    assert reason_words(reason) == "other industry -0.30"


def test_an_excel_file_of_a_description_has_no_verdicts(tmp_path: Path) -> None:
    with closing(filled_index(tmp_path / "index.db", calibration=CALIBRATION)) as index:
        client = TestClient(create_app(index=index, encoder=AxisEncoder()))
        answer = client.post("/similar?format=xlsx", json={"anchors": [{"text": "sells leather shoes"}], "k": 1})
    header, hit = cells(answer)
    assert dict(zip(header, hit, strict=True))["verdict"] is None
    assert isinstance(dict(zip(header, hit, strict=True))["probability"], float)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "=cmd|' /C calc'!A0"])
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


def test_rare_attributes_share_a_column_where_there_are_too_many() -> None:
    many = {f"a{number:03}": number for number in range(MAX_ATTRIBUTE_COLUMNS)}
    names, values = attribute_columns([many, {**many, "rare": "x", "rarer": 1}, {}], ())
    assert names == [*many, "further attributes"]
    assert values[0] == [*many.values(), ""]
    assert values[1][-1] == "rare: x; rarer: 1"
    assert attribute_columns([{"b": 1}, {"a": 2}], ("b",)) == (["a", "attributes.b"], [[None, 1], [2, None]])
