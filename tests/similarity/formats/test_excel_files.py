"""Excel files are read as tables, and hostile ones end in one clear error."""

import io
import time
import zipfile
from datetime import UTC, datetime
from datetime import time as clock_time
from pathlib import Path

import openpyxl
import pytest

from similarity.errors import InvalidCompany, InvalidInput
from similarity.formats.excel_files import OLE_MAGIC
from similarity.ingest.files import column_names, count_rows, read_rows, read_stream
from similarity.ingest.records import Columns, parse_record


def workbook(path: Path, *rows: list[object]) -> Path:
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    book.create_sheet("Second").append(["not", "read"])
    book.save(path)
    return path


def changed(path: Path, part: str, old: str, new: str) -> Path:
    """Replace a text in one part of an Excel file."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert old.encode() in parts[part]
    parts[part] = parts[part].replace(old.encode(), new.encode())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


SHEET = "xl/worksheets/sheet1.xml"


def test_a_row_that_repeats_the_column_names_is_no_company(tmp_path: Path) -> None:
    _, repeated = read_rows(workbook(tmp_path / "a.xlsx", ["id", "name"], ["a", "A"], ["id", "name "]))
    assert repeated.unreadable == "repeats the column names, as where files are joined; delete this row"


def test_the_first_sheet_is_a_table_with_its_types(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "a.xlsx",
        [],
        ["id", " name ", "founded", "opened", "revenue", None, None],
        [123, "Müller", datetime(2020, 1, 31), clock_time(9, 30), 1.5, "no column", None],  # noqa: DTZ001  # as in Excel
        [None] * 7,
        [1e3, "_x0041_cme", datetime(2020, 1, 31, 12), None, "#REF!"],  # noqa: DTZ001
    )
    rows = list(read_rows(path))
    assert [(row.number, dict(row.record)) for row in rows] == [
        (1, {"id": 123, "name": "Müller", "founded": "2020-01-31", "opened": "09:30:00", "revenue": 1.5}),
        (3, {"id": 1000, "name": "Acme", "founded": "2020-01-31T12:00:00", "opened": None, "revenue": None}),
    ]
    assert (column_names(path), count_rows(path)) == (["id", "name", "founded", "opened", "revenue"], 4)
    assert [dict(row.record) for row in read_stream(io.BytesIO(path.read_bytes()), name="s3://b/a.xlsx")] == [
        dict(row.record) for row in rows
    ]


def test_a_row_of_errors_is_not_empty(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", ["id", "name"], ["#REF!", "#N/A"], [None, ""], ["a", "Acme"])
    assert [dict(row.record) for row in read_rows(path)] == [{"id": None, "name": None}, {"id": "a", "name": "Acme"}]


def test_every_error_cell_is_a_missing_value(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", ["id", "staff", "city"], ["a", "#REF!", "#REF!"])
    changed(path, SHEET, '<c r="B2" t="e"><v>#REF!</v>', '<c r="B2" t="e"><v>#SPILL!</v>')
    changed(path, SHEET, '<c r="C2" t="e"><v>#REF!</v>', '<c r="C2" t="e"><f>x()</f><v>#BUSY!</v>')
    assert [dict(row.record) for row in read_rows(path)] == [{"id": "a", "staff": None, "city": None}]


@pytest.mark.parametrize("number", [123456789012345678, 1234567890123450, 1e15])
def test_a_long_number_that_excel_rounds_is_no_id(tmp_path: Path, number: float) -> None:
    path = workbook(tmp_path / "a.xlsx", ["id", "name", "description"], [number, "A", "Makes anvils."])
    [row] = read_rows(path)
    with pytest.raises(InvalidCompany, match=r"write such ids as text"):
        parse_record(row.record, columns=Columns(), now=datetime(2026, 1, 1, tzinfo=UTC))


def test_a_number_that_is_shown_with_leading_zeros_keeps_them(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.append(["id", "city", "staff", "share"])
    book.active.append([42, 80331.0, 0, 1.5])
    for row in book.active.iter_rows(min_row=2):
        for cell in row:
            cell.number_format = "00000"
    book.active.append([43, -5, 7, True])
    for cell, number_format in zip(book.active[3], ["0", "000", "#,##0", "00"], strict=True):
        cell.number_format = number_format
    book.save(tmp_path / "a.xlsx")
    rows = [dict(row.record) for row in read_rows(tmp_path / "a.xlsx")]
    assert rows == [
        {"id": "00042", "city": "80331", "staff": "00000", "share": 1.5},
        {"id": 43, "city": -5, "staff": 7, "share": True},
    ]
    changed(tmp_path / "a.xlsx", SHEET, 's="1"', 's="777"')  # a style that the file lacks
    assert next(iter(read_rows(tmp_path / "a.xlsx"))).record["id"] == 42


def merged(path: Path, *ranges: str) -> Path:
    cells = "".join(f'<mergeCell ref="{each}"/>' for each in ranges)
    return changed(path, SHEET, "</sheetData>", f"</sheetData><mergeCells>{cells}</mergeCells>")


def test_the_value_of_merged_cells_is_that_of_each_row(tmp_path: Path) -> None:
    rows: list[list[object]] = [["id", "city", None, "tags"], ["a", "Bonn", "x", "t"], ["b"]]
    path = workbook(tmp_path / "a.xlsx", [], *rows, [], ["c", None, None, 0], ["d"])
    merged(path, "A1:D1", "A2:B2", "C3:C6", "A3:A3", "XFD3:XFD9", "B3:B6", "D3:D4", "D6:D1048576")
    notes: list[str] = []
    assert [dict(row.record) for row in read_rows(path, on_note=notes.append)] == [
        {"id": "a", "city": "Bonn", "tags": "t"},
        {"id": "b", "city": "Bonn", "tags": "t"},
        {"id": "c", "city": "Bonn", "tags": 0},
        {"id": "d", "city": None, "tags": 0},
    ]
    assert notes == [f"{path} has merged cells (B3:B6, D3:D4, D6:D1048576): the value counts for each of their rows"]


def test_cells_merged_in_one_row_are_no_remark(tmp_path: Path) -> None:
    notes: list[str] = []
    path = merged(workbook(tmp_path / "a.xlsx", [], ["id"], ["a", "A"]), "A1:C1", "A2:A3", "A3:B3")
    assert [dict(row.record) for row in read_rows(path, on_note=notes.append)] == [{"id": "a"}]
    assert not notes


def test_too_many_merged_cells_are_refused(tmp_path: Path) -> None:
    path = merged(workbook(tmp_path / "a.xlsx", ["id"], ["a"]), *["A2:A3"] * 100_001)
    with pytest.raises(InvalidInput, match=r"a.xlsx has more than 100,000 ranges of merged cells"):
        column_names(path)


def test_a_formula_is_its_stored_result(tmp_path: Path) -> None:
    path = changed(
        workbook(tmp_path / "a.xlsx", ["id", "name"], [1, "=1+1"]), SHEET, "<f>1+1</f><v />", "<f>1+1</f><v>2</v>"
    )
    assert [dict(row.record) for row in read_rows(path)] == [{"id": 1, "name": 2}]


def test_a_formula_without_a_stored_result_is_told(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", ["id", "staff", "note"], ["a", "=1+2", "=now()"], ["b", None, "=x"], ["c", 7])
    changed(path, SHEET, '<c r="C3"><f>x</f><v />', '<c r="C3" t="str"><f>x</f><v></v>')  # an empty text is a result
    columns = Columns(attributes={"staff": "staff"})
    parsed = [
        parse_record(
            {"name": "A", "description": "Makes things.", **row.record}, columns=columns, now=datetime.now(UTC)
        )
        for row in read_rows(path)
    ]
    assert parsed[0].warnings == (
        "attributes.staff: is a formula without a stored result; open the file in Excel and save it; ignored",
    )
    assert [each.warnings for each in parsed[1:]] == [(), ()]


def test_columns_of_one_name_and_an_empty_sheet_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="a column name occurs twice in row 1: id, id"):
        column_names(workbook(tmp_path / "a.xlsx", ["id", "id"]))
    with pytest.raises(InvalidInput, match=r"first sheet of .*b.xlsx are empty; its first row must name"):
        list(read_rows(workbook(tmp_path / "b.xlsx")))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_an_excel_file_of_another_name_is_said_to_be_one(tmp_path: Path, name: str) -> None:
    workbook(tmp_path / "a.xlsx", ["id"]).rename(tmp_path / name)
    with pytest.raises(InvalidInput, match=f"{name} is an Excel file; name it .xlsx"):
        list(read_rows(tmp_path / name))
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("a.csv", "id")
    with pytest.raises(InvalidInput, match=f"{name} is a zip archive; unpack it first"):
        list(read_rows(tmp_path / name))


@pytest.mark.parametrize("name", ["a.xlsx", "a.csv"])
def test_a_file_with_a_password_or_of_the_old_format_is_said_to_be_so(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(OLE_MAGIC + bytes(600))
    with pytest.raises(InvalidInput, match="with a password or of an old format"):
        list(read_rows(tmp_path / name))


@pytest.mark.parametrize("content", [b"id,name\n1,2\n", b"", b"PK\x03\x04 and nothing more"])
def test_what_is_no_excel_file_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.xlsx").write_bytes(content)
    with pytest.raises(InvalidInput, match="is not an Excel file"):
        list(read_rows(tmp_path / "a.xlsx"))


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", ["id"])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/image1.png", bytes(200_000_000))
    with pytest.raises(InvalidInput, match=r"unpacks to 200,\d{3},\d{3} bytes, which is too much"):
        list(read_rows(path))


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
DECLARATION = f'<!DOCTYPE x [<!ENTITY l0 "{"lol" * 100}">{LAUGHS}<!ENTITY file SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<sheetData>", "<sheetData><row r='2'><c r='A2' t='inlineStr'><is><t>&l9;</t></is></c></row>"),
        ("<sheetData>", "<sheetData><row r='2'><c r='A2' t='inlineStr'><is><t>&file;</t></is></c></row>"),
        ("<sheetData>", "<sheetData><row r='99999999999'><c r='A99999999999'><v>1</v></c></row>"),
        ("</sheetData>", "<row r='99999999999'><c r='A99999999999'><v>1</v></c></row></sheetData>"),
        ("<sheetData>", "<sheetData><row r='x'/>"),
        ("<sheetData>", "<sheetData><row r='2'><c r='A2' t='s'><v>777</v></c></row>"),
        ("</sheetData>", ""),
    ],
    ids=["entities", "external entity", "no columns", "row far away", "row without number", "unknown text", "damaged"],
)
def test_a_hostile_sheet_ends_in_one_error_and_soon(tmp_path: Path, old: str, new: str) -> None:
    path = changed(workbook(tmp_path / "a.xlsx", ["id"], [1]), SHEET, old, new)
    changed(path, SHEET, "<worksheet", f"{DECLARATION}<worksheet")
    began = time.monotonic()
    with pytest.raises(
        InvalidInput, match=r"is not a readable Excel file|has more than 1,048,576 rows|rows .* are empty"
    ):
        list(read_rows(path))
    assert time.monotonic() - began < 10


def test_sizes_that_a_file_declares_cost_nothing(tmp_path: Path) -> None:
    path = changed(workbook(tmp_path / "a.xlsx", ["id"], [1]), SHEET, 'ref="A1:A2"', 'ref="A1:XFD1048576"')
    changed(path, SHEET, "</row></sheetData>", '</row><row r="3"><c r="ZZZ3"><v>5</v></c></row></sheetData>')
    assert [dict(row.record) for row in read_rows(path)] == [{"id": 1}]
    assert count_rows(path) == 1_048_575
