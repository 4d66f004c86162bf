"""Matching a list over HTTP, on a small real index."""

import csv
import gzip
import io
import json
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import chain, repeat
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from services.search.guards.envelope import Envelope
from services.search.matches import match_rows
from services.search.matches.match_routes import match_routes
from services.search.matches.match_schemas import MAX_ROWS
from services.search.matches.matching import MatchService
from services.search.wire.failures import answer_failures
from services.search.wire.problem_documents import Problem
from similarity.company import EmbeddedCompany
from similarity.index.attributes import parse_schema
from similarity.index.sqlite import SqliteIndex
from tests.factories import make_embedded, make_generation
from tests.services.search.corpus import add_generation
from tests.services.search.wire.test_failures import problem


def companies() -> list[EmbeddedCompany]:
    return [
        make_embedded("cola", name="The Coca-Cola Company", aliases=("Coke",), domain="coca-cola.com"),
        make_embedded("cola-hbc", name="Coca-Cola HBC AG", domain="coca-colahellenic.com"),
        make_embedded("delta", name="Delta", domain="delta.com", country="United States"),
        make_embedded("delta-gr", name="Delta", domain="delta.gr", country="Greece"),
        make_embedded("globex", name="Globex Corporation", domain="globex.com"),
        make_embedded("globex-labs", name="Globex Laboratories", domain="globex.com"),
        make_embedded("volvo", name="Volvo Group", country="Sweden"),
        make_embedded("AAPL", name="Apple Inc.", aliases=("Apple Computer",)),
        make_embedded("booking", name="Booking.com", domain="bookingholdings.com"),
        make_embedded("stark-1", name="Stark Tower Holdings Inc."),
        make_embedded("stark-2", name="Stark Tower Towers Inc."),
        make_embedded("wayne", name="Wayne Heavy Works"),
        make_embedded("Coke", name="Its Id Is Another's Name"),
        make_embedded("formula", name="=SUM(A1)", domain="sum.com"),
    ]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteIndex]:
    index = SqliteIndex(tmp_path_factory.mktemp("match") / "index.db")
    add_generation(index, "first", companies())
    index.promote("first")
    yield index
    index.close()


def client_of(service: MatchService) -> TestClient:
    app = FastAPI()
    app.add_middleware(Envelope)
    answer_failures(app)
    app.include_router(match_routes(service))
    return TestClient(app)


@pytest.fixture(scope="module")
def client(index: SqliteIndex) -> TestClient:
    return client_of(MatchService(index))


def match(client: TestClient, *rows: dict[str, str], **parameters: str) -> list[dict[str, Any]]:
    answer = client.post("/match", json={"rows": rows}, params=parameters)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["rows"]
    return found


def send(client: TestClient, content: str | bytes, kind: str, **headers: str) -> Any:
    return client.post("/match", content=content, headers={"Content-Type": kind, **headers})


@pytest.mark.parametrize(
    ("row", "company_id", "how"),
    [
        ({"domain": "https://www.Coca-Cola.com/en"}, "cola", "domain"),
        ({"name": "coca-cola.com"}, "cola", "domain"),
        ({"name": "THE COCA-COLA COMPANY"}, "cola", "name"),
        ({"name": "booking.com"}, "booking", "name"),
        ({"name": "coke"}, "cola", "alias"),
        ({"name": "Coke"}, "cola", "alias"),
        ({"name": "AAPL"}, "AAPL", "id"),
        ({"name": "aapl"}, "AAPL", "id"),
        ({"name": "Coca Cola"}, "cola", "legal_form"),
        ({"name": "Globex GmbH"}, "globex", "legal_form"),
        ({"name": "Group Volvo"}, "volvo", "words"),
        ({"name": "VolvoGroup"}, "volvo", "words"),
        ({"name": "Apple Compute"}, "AAPL", "spelling"),
        ({"name": "Globex Laboratoires"}, "globex-labs", "spelling"),
        ({"name": "Delta", "country": "greece"}, "delta-gr", "name"),
        ({"name": "Delta, USA"}, "delta", "name"),
        ({"name": "Delta (Greece)"}, "delta-gr", "name"),
        ({"name": "Delta (Greece)", "country": "USA"}, None, None),
        ({"name": "Delta, SA"}, None, None),
        ({"name": "Delta", "domain": "delta.gr"}, "delta-gr", "domain"),
        ({"name": "Globex Labs", "domain": "unknown.com"}, None, None),
        ({"name": "Globex GmbH", "domain": "globex.de"}, "globex", "legal_form"),
        ({"name": "Globex", "domain": "facebook.com/globex"}, "globex", "legal_form"),
        ({"name": "Globex Laboratories Inc", "domain": "globex.com"}, "globex-labs", "domain"),
        ({"name": "Volvo Group", "domain": "unknown.com"}, "volvo", "name"),
    ],
)
def test_the_surest_evidence_decides(
    client: TestClient, row: dict[str, str], company_id: str | None, how: str | None
) -> None:
    [found] = match(client, row)
    assert (found["id"], found["how"]) == (company_id, how)
    assert (found["confidence"] is None) == (company_id is None) == (found["company"] is None) == bool(found["miss"])
    assert found["asked"] == {"name": "", "domain": "", "country": "", "id": "", **row}


def test_the_beginning_of_one_companys_name_only_is_a_match(client: TestClient) -> None:
    one, several, word = match(client, {"name": "Wayne Heavy"}, {"name": "Stark Tower"}, {"name": "Stark"})
    assert (one["id"], one["how"]) == ("wayne", "prefix")
    assert several["miss"].startswith("2 companies may be meant by 'Stark Tower'")
    assert word["id"] is None


@pytest.mark.parametrize(
    ("row", "reason", "candidates"),
    [
        ({"name": "delta"}, "2 companies have the name 'delta'; choose one", ["delta", "delta-gr"]),
        ({"name": "delta", "country": "Spain"}, "2 companies have the name", ["delta", "delta-gr"]),
        ({"domain": "globex.com"}, "2 companies have the domain globex.com", ["globex", "globex-labs"]),
        (
            {"name": "Volvo Group", "domain": "delta.gr"},
            "the domain belongs to one company and the name to another",
            ["delta-gr", "volvo"],
        ),
        ({"name": "Globex Foods"}, "the nearest is 'Globex Corporation'", ["globex", "globex-labs"]),
        ({"domain": "globex.org"}, "no company has the domain globex.org", ["globex", "globex-labs"]),
        ({"domain": "not a website"}, "is not a website", []),
        ({"name": "Zyzzyva"}, "no company has that name or a similar one", []),
        ({"name": "  "}, "neither a name nor a domain", []),
        ({"name": "!?"}, "no company has that name", []),
        ({"country": "Greece"}, "neither a name nor a domain", []),
    ],
)
def test_a_miss_has_its_reason_and_who_may_be_meant(
    client: TestClient, row: dict[str, str], reason: str, candidates: list[str]
) -> None:
    [found] = match(client, row)
    assert found["id"] is None
    assert reason in found["miss"]
    assert [each["id"] for each in found["candidates"]] == candidates


def test_a_word_with_a_website_that_no_company_has_is_not_the_company_of_another_website(client: TestClient) -> None:
    [row] = match(client, {"name": "Globex", "domain": "globex.de"})
    assert (row["id"], [each["id"] for each in row["candidates"]]) == (None, ["globex"])
    assert row["miss"] == "no company has both; 'Globex Corporation' has another website, globex.com"


def test_the_miss_of_a_shared_domain_does_not_advise_to_give_the_domain(client: TestClient) -> None:
    [found] = match(client, {"domain": "globex.com"})
    assert found["miss"] == "2 companies have the domain globex.com; choose one"


def test_a_table_is_read_by_its_headings(client: TestClient) -> None:
    table = "\ufeffRank;Company;Web site;Country\r\n1;Coca Cola;;\r\n2;;www.delta.gr;\r\n3;a;b\r\n4;Delta;;Greece\r\n"
    answer = send(client, table.encode(), "text/csv; charset=utf-8").json()
    assert [row["id"] for row in answer["rows"]] == ["cola", "delta-gr", None, "delta-gr"]
    assert [row["row"] for row in answer["rows"]] == [1, 2, 3, 4]
    assert "has 3 values for 4 columns" in answer["rows"][2]["miss"]
    assert (answer["matched"], answer["generation"]) == (3, "first")


def test_an_id_that_no_company_has_is_not_taken_for_a_name(client: TestClient) -> None:
    answer = send(client, b"ticker\nGlobex Corporation\nVOLVO GROUP\n", "text/csv").json()
    assert [row["id"] for row in answer["rows"]] == [None, None]
    assert [row["candidates"][0]["id"] for row in answer["rows"]] == ["globex", "volvo"]
    assert "no company has the id 'VOLVO GROUP'" in answer["rows"][1]["miss"]


@pytest.mark.parametrize("heading", ["ticker", "Symbol", "Ticker Symbol", "ID", "Company ID"])
def test_a_column_of_ids_decides_and_other_letters_are_found_too(client: TestClient, heading: str) -> None:
    table = f"{heading},price\nAAPL,200\naapl,200\nCoke,1\nMSFT,400\n"
    answer = send(client, table.encode(), "text/csv").json()
    assert [row["id"] for row in answer["rows"]] == ["AAPL", "AAPL", "Coke", None]  # "Coke" is another's alias
    assert [row["how"] for row in answer["rows"]] == ["id", "id", "id", None]
    assert answer["unused_columns"] == ["price"]
    [_, first, *_] = csv.reader(send(client, table.encode(), "text/csv", Accept="text/csv").text.splitlines())
    assert first[:2] == ["1", "AAPL"]


@pytest.mark.parametrize(
    ("row", "company_id", "how"),
    [
        ({"id": "delta-gr", "name": "Delta"}, "delta-gr", "id"),
        ({"id": "AAPL", "name": "Apple Incorporated"}, "AAPL", "id"),
        ({"id": "AAPL", "domain": "unknown.com"}, "AAPL", "id"),
        ({"id": "other", "name": "Volvo Group"}, "volvo", "name"),
        ({"id": "other", "domain": "delta.gr"}, "delta-gr", "domain"),
        ({"id": "AAPL", "name": "Volvo Group"}, None, None),
        ({"id": "AAPL", "name": "Kfz Huber GmbH"}, None, None),
        ({"id": "delta-gr", "country": "Japan"}, None, None),
        ({"id": "AAPL", "domain": "delta.gr"}, None, None),
    ],
)
def test_an_id_beside_a_name_decides_unless_the_name_is_anothers(
    client: TestClient, row: dict[str, str], company_id: str | None, how: str | None
) -> None:
    [found] = match(client, row)
    assert (found["id"], found["how"]) == (company_id, how)
    if company_id is None:
        assert "correct one of them" in found["miss"]
        assert row["id"] in [each["id"] for each in found["candidates"]]


def test_columns_are_found_as_in_loads_and_the_others_are_named(client: TestClient) -> None:
    table = "Größe,COMPANY-NAME,Website URL,Land,url\n1,Coke,,,\n2,,www.delta.gr,,\n3,Delta,,Greece,\n"
    answer = send(client, table.encode(), "text/csv")
    assert [row["id"] for row in answer.json()["rows"]] == ["cola", "delta-gr", "delta-gr"]
    assert answer.json()["unused_columns"] == ["Größe", "url"]
    csv_answer = send(client, table.encode(), "text/csv", Accept="text/csv")
    assert csv_answer.headers["unused-columns"] == "Gr%C3%B6%C3%9Fe, url"
    assert "unused-columns" not in send(client, b"name\nCoke\n", "text/csv", Accept="text/csv").headers


@pytest.mark.parametrize(
    ("table", "ids"),
    [
        ("My portfolio\n\nCompany;Weight\nCoke;5 %\nGlobex;3 %\n", [None, "cola", "globex"]),
        ("Holdings,,\n2026,,\nName,Website,Sector\nCoke,,\n", [None, None, "cola"]),
        ("Prospects\nAs of;1.1.2026\n\nNr.;Name;Ort\n1.0;Coke;Bonn\n", [None, None, "cola"]),
        ('"Security Name"|"Ticker"\nApple Inc.|AAPL\n', ["AAPL"]),
        ("Peer\tTicker\nGlobex\tGLB\n", ["globex"]),
    ],
)
@pytest.mark.parametrize("kind", ["text/plain", "text/csv"])
def test_lines_above_a_pasted_table_are_rows_that_say_so(
    client: TestClient, table: str, ids: list[str | None], kind: str
) -> None:
    rows = send(client, table.encode(), kind).json()["rows"]
    assert [row["id"] for row in rows] == ids
    assert all("taken for a title" in row["miss"] for row in rows if row["id"] is None)
    assert [row["row"] for row in rows] == [*range(1, len(rows) + 1)]


def test_a_name_with_a_comma_is_no_table(client: TestClient) -> None:
    rows = send(client, b"Coke\nCompany, The\nGlobex\n", "text/plain").json()["rows"]
    assert [row["id"] for row in rows] == ["cola", None, "globex"]


@pytest.mark.parametrize(
    "line",
    [
        "Globex Corporation (NYSE: GLB) ......... 12",
        "12 Globex Corporation 94,424 8.2%",
        "> Globex <info@globex.com>",
    ],
)
def test_lines_of_documents_and_mails_are_matched(client: TestClient, line: str) -> None:
    assert [row["id"] for row in send(client, line.encode(), "text/plain").json()["rows"]] == ["globex"]


@pytest.mark.parametrize("name", ["Forever 21", "7 Eleven", "Expo 2020", "3M", "12"])
def test_a_number_that_may_be_a_part_of_the_name_stays(name: str) -> None:
    assert match_rows.without_additions(name) == [name]


def test_the_first_figure_may_be_a_part_of_the_name() -> None:
    assert match_rows.without_additions("27 Phillips 66 149,890 7,015") == ["Phillips 66", "Phillips"]


@pytest.mark.parametrize("separator", [", ", "; ", "\t"])
def test_a_name_that_is_also_a_heading_is_a_name(separator: str) -> None:
    lines = "\n".join(f"{name}{separator}USA" for name in ("Walmart", "Target", "Costco"))
    rows = match_rows.rows_of_lines(lines.encode()).rows
    assert [row.cells.name.split(separator)[0] for row in rows] == ["Walmart", "Target", "Costco"]
    assert [row.cells.name for row in match_rows.rows_of_lines(b"Target\nWalmart").rows] == ["Target", "Walmart"]


def test_the_column_that_can_only_be_names_goes_before_one_that_may_be_names() -> None:
    [row] = match_rows.rows_of_table(b"Account,Company\n12,Microsoft\n").rows
    assert row.cells.name == "Microsoft"


def test_a_damaged_or_too_long_line_costs_that_line(client: TestClient) -> None:
    table = "name\nΔέλτα ".encode() + b"\xff\n" + b"x" * 600 + b"\nCoke\n"
    rows = send(client, table, "text/csv").json()["rows"]
    assert rows[0]["miss"] == "name: is not UTF-8; save the list as UTF-8"
    assert "at most 512 characters" in rows[1]["miss"]
    assert rows[2]["id"] == "cola"


@pytest.mark.parametrize(
    ("lines", "ids"),
    [
        ("Ticker\nAAPL\nCoke\nNOPE\n", ["AAPL", "Coke", None]),
        ("symbol\nAAPL\nNOPE\n", ["AAPL", None]),
        ("symbol\nApple Inc.\n", [None, "AAPL"]),  # it may be a company
    ],
)
def test_pasted_lines_below_a_heading_of_ids_are_ids(client: TestClient, lines: str, ids: list[str | None]) -> None:
    answer = send(client, lines.encode(), "text/plain").json()
    assert [row["id"] for row in answer["rows"]] == ids


def test_pasted_lines_are_names_websites_or_both(client: TestClient) -> None:
    lines = "Coke\n\nhttps://coca-cola.com/\nGlobex, Inc.\tmore\nx\tdelta.gr\nbooking.com\n"
    answer = send(client, lines.encode(), "text/plain").json()
    assert [(row["row"], row["id"]) for row in answer["rows"]] == [
        (1, "cola"),
        (3, "cola"),
        (4, "globex"),
        (5, "delta-gr"),
        (6, "booking"),
    ]


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("Nike, Inc.", ("Nike, Inc.", "", "")),
        ("Alpha, Germany\talpha.de", ("Alpha, Germany", "", "alpha.de")),
        (" 1. Nestlé", ("Nestlé", "", "")),
        ("2)\tAdidas", ("Adidas", "", "")),
        ("3\tPuma\tGermany\t12,5", ("Puma", "Germany", "")),
        ("PepsiCo Inc. (NASDAQ: PEP)", ("PepsiCo Inc.", "", "")),
        ("Amcor (the packers)", ("Amcor (the packers)", "", "")),
        ("(NYSE: K)", ("(NYSE: K)", "", "")),
        ("3.", ("3.", "", "")),
        ("3M", ("3M", "", "")),
    ],
)
def test_number_and_ticker_are_no_part_of_the_name(line: str, cells: tuple[str, str, str]) -> None:
    [row] = match_rows.rows_of_lines(line.encode()).rows
    assert (row.cells.name, row.cells.country, row.cells.domain) == cells


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ("Firma\tLand\nNestlé\tSchweiz", ["Nestlé"]),
        ("Company Name\nNestlé", ["Nestlé"]),
        ("Land\nNestlé", ["Land", "Nestlé"]),
        ("Firma\tNestlé\nAdidas", ["Firma", "Adidas"]),
        ("Name", ["Name"]),
    ],
)
def test_a_first_line_that_only_names_columns_is_no_company(lines: str, names: list[str]) -> None:
    assert [row.cells.name for row in match_rows.rows_of_lines(lines.encode()).rows] == names


def test_a_header_does_not_count_as_a_row() -> None:
    assert len(match_rows.rows_of_lines(b"name\n" + b"a\n" * MAX_ROWS).rows) == MAX_ROWS
    with pytest.raises(Problem, match="more than 5,000 rows"):
        match_rows.rows_of_lines(b"name\n" + b"a\n" * (MAX_ROWS + 1))


def test_a_line_of_combining_marks_is_a_miss(client: TestClient) -> None:
    # Where they are normalised in a time that grows with the square of their number, this takes minutes.
    [row] = send(client, ("a" + "\u0315\u0300" * 500_000).encode(), "text/plain").json()["rows"]
    assert "at most 512 characters" in row["miss"]


@pytest.mark.parametrize("accept", ["application/json", "text/csv"])
def test_a_column_name_that_is_not_utf_8_is_answered(client: TestClient, accept: str) -> None:
    headers = {"Content-Type": "text/csv", "Accept": accept}
    assert client.post("/match", content=b"name,\xff\nCoke,1\n", headers=headers).status_code == 200


def test_a_line_with_more_cells_than_a_spreadsheet_has_is_a_miss(client: TestClient) -> None:
    cells = "\t".join(f"{number:x}.co\tx{number:x}" for number in range(400_000))
    rows = send(client, f"Coke\n{cells}\nCoke".encode(), "text/plain").json()["rows"]
    assert [row["id"] for row in rows] == ["cola", None, "cola"]
    assert "more than 100 cells" in rows[1]["miss"]


def test_lines_beyond_the_limit_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(match_rows, "_row_of_line", lambda number, line: made.append(number))
    text = b"a\n" * 2_000_000
    tracemalloc.start()
    try:
        with pytest.raises(Problem, match="more than 5,000 rows"):
            match_rows.rows_of_lines(text)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert made == []
    assert most < 40_000_000


@pytest.mark.parametrize("kind", ["text/plain", "text/csv"])
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_lists_of_spreadsheets_are_decoded(client: TestClient, kind: str, encoding: str) -> None:
    rows = send(client, "name\nCoké\n".encode(encoding), kind).json()["rows"]
    assert rows[-1]["asked"]["name"] == "Coké"


@pytest.mark.parametrize(
    ("content", "kind", "reason"),
    [
        (b"", "text/plain", "the list has no rows"),
        (b"\n \n", "text/plain", "the list has no rows"),
        (b"\x81\xff", "text/plain", "is not UTF-8"),
        ("会社名,国\nソニー,日本\n".encode("shift_jis"), "text/csv", "is not UTF-8"),
        (b"a\n" * (MAX_ROWS + 1), "text/plain", "more than 5,000 rows"),
        (b"", "text/csv", "the file is empty"),
        (b"name\n", "text/csv", "the list has no rows"),
        (b"price,weight\n1,2\n", "text/csv", "one of them name, domain or id; it has 'price', 'weight'"),
        (b"name,name\n1,2\n", "text/csv", "occurs twice"),
        (b",".join(b"c%d" % number for number in range(200_000)) + b",c1\n", "text/csv", "occurs twice"),
        (b"PK\x03\x04 and more", "text/csv", "Excel file or an archive; save the list as CSV"),
        (b"PK\x03\x04 and more", "text/plain", "Excel file or an archive; save the list as CSV"),
        (b"name\n" + b"a\n" * (MAX_ROWS + 1), "text/csv", "more than 5,000 rows"),
        (b"{}", "application/json", "rows: is missing"),
        (b'{"rows": []}', "application/json", "at least 1 item"),
        (b'{"rows": [{"naem": "x"}]}', "application/json", "rows[0].naem"),
        (b'{"rows": [{"name": "\\ud800"}]}', "application/json", "half of a surrogate pair"),
        (b'{"rows": [{"name": NaN}]}', "application/json", "NaN"),
        (json.dumps({"rows": [{"name": "a"}] * (MAX_ROWS + 1)}).encode(), "application/json", "at most 5000 items"),
    ],
)
def test_a_list_that_cannot_be_read_is_refused_in_words(
    client: TestClient, content: bytes, kind: str, reason: str
) -> None:
    assert reason in problem(send(client, content, kind), "invalid-request")["detail"]


def test_other_media_types_are_named(client: TestClient) -> None:
    detail = problem(send(client, b"x", "application/pdf"), "wrong-media-type")["detail"]
    assert "application/json or text/csv or text/plain" in detail


@pytest.mark.parametrize(
    "kind", ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "application/vnd.ms-excel"]
)
def test_an_excel_file_is_to_be_saved_as_csv(client: TestClient, kind: str) -> None:
    detail = problem(send(client, b"PK\x03\x04 and more", kind), "wrong-media-type")["detail"]
    assert "save the list as CSV" in detail
    assert "text/csv" in detail


def test_a_ticker_in_brackets_is_left_out_in_every_format(client: TestClient) -> None:
    name = "Globex Laboratories (NYSE: GLB)"
    answers = [
        match(client, {"name": name}),
        send(client, f"name\n{name}\n".encode(), "text/csv").json()["rows"],
        send(client, name.encode(), "text/plain").json()["rows"],
    ]
    assert [(row["id"], row["how"]) for [row] in answers] == [("globex-labs", "name")] * 3
    assert [answer[0]["asked"]["name"] for answer in answers[:2]] == [name] * 2


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Globex Laboratories (GLB)", "globex-labs"),
        ("Globex Laboratories (7203.T)", "globex-labs"),
        ("Volvo Group (UK)", None),  # the company of that country may be another one
        ("(GLB)", None),
    ],
)
def test_a_ticker_without_its_exchange_is_left_out_where_no_company_has_the_whole_name(
    client: TestClient, name: str, found: str | None
) -> None:
    [row] = match(client, {"name": name})
    assert row["id"] == found


def test_a_null_is_an_empty_cell_of_its_row(client: TestClient) -> None:
    rows = [{"name": None}, {"name": "Coke", "domain": None, "country": None}, {"name": None, "domain": "delta.gr"}]
    answer = client.post("/match", json={"rows": rows})
    assert answer.status_code == 200, answer.text
    found = answer.json()["rows"]
    assert [row["id"] for row in found] == [None, "cola", "delta-gr"]
    assert "neither a name nor a domain" in found[0]["miss"]
    assert found[0]["asked"] == {"name": "", "domain": "", "country": "", "id": ""}


def test_a_website_is_a_domain_in_json_too(client: TestClient) -> None:
    rows = match(client, {"website": "https://delta.gr/"}, {"domain": "delta.gr", "website": "delta.com"})
    assert [row["id"] for row in rows] == ["delta-gr", "delta-gr"]
    for row in ({"website": 5}, {"domain": 0}):
        answer = client.post("/match", json={"rows": [row]})
        assert problem(answer, "invalid-request")["errors"][0]["parameter"] == "rows[0].domain"


def test_the_answer_can_be_a_table_that_no_spreadsheet_runs(client: TestClient) -> None:
    content = json.dumps({"rows": [{"name": "=sum(a1)"}, {"name": "delta"}, {"name": "+1"}]})
    answer = send(client, content, "application/json", Accept="text/csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert "matched.csv" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["id"] for row in rows] == ["formula", "", ""]
    assert (rows[0]["name"], rows[0]["matched_name"]) == ("'=sum(a1)", "'=SUM(A1)")
    assert rows[1]["candidates"] == "delta delta-gr"
    assert rows[2]["name"] == "'+1"
    assert client.post("/match?format=csv", json={"rows": [{"name": "a"}]}).text == answer.text.splitlines()[0] + (
        "\r\n1,a,,,,,,,,,no company has that name or a similar one\r\n"
    )


@pytest.mark.parametrize(("second", "similar", "exact"), [(19, True, True), (21, False, True), (25, False, False)])
def test_a_long_list_ends_in_time_and_says_what_was_not_searched(
    index: SqliteIndex, second: int, similar: bool, exact: bool
) -> None:
    seconds = chain([0], repeat(second))
    rows = match(client_of(MatchService(index, clock=lambda: next(seconds))), {"name": "Zyzzyva"}, {"name": "Coke"})
    assert ["the list took too long" in (row["miss"] or "") for row in rows] == [not similar, not exact]
    assert rows[1]["id"] == ("cola" if exact else None)


def test_a_list_is_matched_with_one_generation(tmp_path: Path) -> None:
    class Vanishing(SqliteIndex):
        """Promotes over the live generation and retires it while a list is matched."""

        times = 1

        def resolve(self, generation: str, reference: str) -> list[str]:
            if self.times:
                self.times -= 1
                self.promote("second")
                self.retire("first")
            return super().resolve(generation, reference)

    index = Vanishing(tmp_path / "index.db")
    add_generation(index, "first", companies())
    index.promote("first")
    add_generation(index, "second", [make_embedded("new", name="Coke")])
    answer = client_of(MatchService(index)).post("/match", json={"rows": [{"name": "Coke"}] * 3}).json()
    assert ({row["id"] for row in answer["rows"]}, answer["generation"]) == ({"new"}, "second")
    index.close()


def test_a_match_names_companies_that_are_as_large_and_may_be_meant(tmp_path: Path) -> None:
    large = {"size": "large"}
    british = make_embedded("PRU.L", name="Prudential plc", attributes=large)
    american = make_embedded("PRU", name="Prudential Financial, Inc.", attributes=large)
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        index.declare(parse_schema(["size:ordinal=micro,small,large"], "size"))
        add_generation(index, "first", [british, american])
        index.promote("first")
        [row] = match(client_of(MatchService(index)), {"name": "Prudential"})
    assert (row["id"], [each["id"] for each in row["candidates"]]) == ("PRU.L", ["PRU"])


def test_an_empty_index_has_nothing_to_match_with(tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "empty.db")
    answer = client_of(MatchService(index)).post("/match", json={"rows": [{"name": "Coke"}]})
    problem(answer, "no-live-generation")
    index.create_generation(make_generation("first"))
    index.close()


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=80) | st.text(max_size=40).map(lambda text: text.encode("utf-8", "ignore")))
def test_whatever_is_sent_is_answered_and_never_a_fault(client: TestClient, content: bytes) -> None:
    for kind in ("application/json", "text/csv", "text/plain"):
        assert send(client, content, kind).status_code in {200, 422}
    assert send(client, b"name,domain\n" + content, "text/csv").status_code in {200, 422}


def test_a_compressed_table_is_refused_before_it_is_unpacked(client: TestClient) -> None:
    bomb = gzip.compress(b"name\n" + b"a" * 50_000_000)
    answer = send(client, bomb, "text/csv")
    assert answer.status_code == 422
    assert "send it uncompressed" in answer.json()["detail"]


@pytest.mark.parametrize(("rows_at_once", "seconds"), [(1, 0.2), (2, 20.0)])
def test_rows_are_matched_one_at_a_time_unless_several_pay(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch, rows_at_once: int, seconds: float
) -> None:
    resolve, two, met = index.resolve, Barrier(2), set()

    def meeting(generation: str, reference: str) -> list[str]:
        with suppress(BrokenBarrierError):
            two.wait(timeout=seconds)
            met.add(reference)
        return resolve(generation, reference)

    monkeypatch.setattr(index, "resolve", meeting)
    client = client_of(MatchService(index, rows_at_once=rows_at_once))
    rows = match(client, {"domain": "delta.com"}, {"domain": "sum.com"})
    assert [row["id"] for row in rows] == ["delta", "formula"]
    assert len(met) == (0 if rows_at_once == 1 else 2)
