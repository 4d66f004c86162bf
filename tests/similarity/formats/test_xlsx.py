"""Excel files: what a spreadsheet program reads from them."""

import io
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from similarity.formats.xlsx import MAX_CELL_CHARACTERS, MAX_WIDTH, xlsx_bytes
from similarity.ingest.files import read_rows


def sheet_of(*rows: list[Any]) -> Any:
    return openpyxl.load_workbook(io.BytesIO(xlsx_bytes(rows))).worksheets[0]


@pytest.mark.parametrize("text", ["=1+1", '=HYPERLINK("http://x")', "+1", "-1", "@SUM(A1)", "#N/A", "=", "{=1}", "12"])
def test_a_text_is_stored_as_text_whatever_it_looks_like(text: str) -> None:
    cell = sheet_of(["name"], [text])["A2"]
    assert (cell.value, cell.data_type) == (text, "s")


def test_an_address_is_no_link() -> None:
    cell = sheet_of(["domain"], ["https://acme.com"])["A2"]
    assert (cell.value, cell.hyperlink) == ("https://acme.com", None)


def test_the_header_is_bold_and_frozen_and_columns_fit_their_texts() -> None:
    sheet = sheet_of(["id", "description"], ["a", "x" * 400])
    assert [cell.font.bold for cell in sheet[1]] == [True, True]
    assert [cell.font.bold for cell in sheet[2]] == [False, False]
    assert sheet.freeze_panes == "A2"
    assert sheet.column_dimensions["A"].width < sheet.column_dimensions["B"].width == MAX_WIDTH


def test_numbers_stay_numbers_and_missing_values_are_empty() -> None:
    cells = sheet_of(["a", "b", "c", "d", "e"], [1, 0.5, True, None, ""])[2]
    assert [(cell.value, cell.data_type) for cell in cells[:3]] == [(1, "n"), (0.5, "n"), (True, "b")]
    assert [cell.value for cell in cells[3:]] == [None, None]


def test_a_number_with_more_digits_than_excel_keeps_is_a_text() -> None:
    cells = sheet_of(["a", "b"], [123_456_789_012_345, -1_234_567_890_123_456])[2]
    assert [cell.value for cell in cells] == [123_456_789_012_345, "-1234567890123456"]


def test_text_that_excel_cannot_hold_is_cut_and_cleaned() -> None:
    cells = sheet_of(["a", "b"], ["x" * 40_000, "a\x00b\x1b\ud800\nc\td"])[2]
    assert [cell.value for cell in cells] == ["x" * MAX_CELL_CHARACTERS, "ab\nc\td"]


@pytest.mark.parametrize("text", ["A_x0041_B", "_x005F_x0041_", "_x0041_x0042_", "a_x00_b"])
def test_a_text_like_an_escaped_character_is_read_as_it_is(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.xlsx").write_bytes(xlsx_bytes([["name"], [text]]))
    assert [row.record["name"] for row in read_rows(tmp_path / "a.xlsx")] == [text]


def test_further_sheets_come_behind_the_companies() -> None:
    book = openpyxl.load_workbook(
        io.BytesIO(xlsx_bytes([["id"], ["a"]], {"question": [["part", "value"], ["like", "=1"]]}))
    )
    assert book.sheetnames == ["companies", "question"]
    assert list(book["question"].values) == [("part", "value"), ("like", "=1")]
    assert book["question"].freeze_panes == "A2"
