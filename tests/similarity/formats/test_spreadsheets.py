"""Formulas that a CSV file must not bring into a spreadsheet, on all three ways to one."""

import csv
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.search.wire.tables import BYTE_ORDER_MARK, csv_lines
from services.search.workspace.feedback_routes import csv_of_pairs
from similarity.cli.tables import Line, OutputFormat, show
from similarity.formats.spreadsheets import spreadsheet_cell
from tests.factories import make_company

SIGNS = ["=", "+", "-", "@", "＝", "＋", "－", "＠", "﹦", "﹢", "﹣", "﹫", "−"]
INVISIBLE = {
    "nothing": "",
    "space": "  ",
    "tab": "\t",
    "carriage return": "\r",
    "line feed": "\n",
    "no-break space": "\u00a0",
    "ideographic space": "\u3000",
    "line separator": "\u2028",
    "zero width space": "\u200b",
    "zero width joiner": "\u200d",
    "zero width non-joiner": "\u200c",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "left-to-right mark": "\u200e",
    "right-to-left override": "\u202e",
    "isolate": "\u2066",
    "word joiner": "\u2060",
    "hangul filler": "\u3164",
    "braille blank": "\u2800",
    "variation selector": "\ufe0f",
    "tag": "\U000e0041",
    "quotation mark": '"',
    "several": " \u200b\ufeff\t\u00ad",
}


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("before", INVISIBLE.values(), ids=INVISIBLE)
def test_a_formula_is_only_shown(before: str, sign: str) -> None:
    formula = f"{before}{sign}HYPERLINK(1)"
    shown = str(spreadsheet_cell(formula))
    assert shown.replace("'", "") == formula
    assert "'" in shown.partition(sign)[0]


@pytest.mark.parametrize(
    "cell", ["", "Acme", "Acme = good", "3M", "a-b", "  Acme", "\u200bAcme", "é", "日本", 5, -0.5, None]
)
def test_other_cells_are_left_as_they_are(cell: object) -> None:
    assert spreadsheet_cell(cell) == cell


@pytest.mark.parametrize("name", ['a;"=1+1;b', 'a";"=1+1', 'a;""=1+1;b', "a;=1+1", 'a; "\u200b=1+1'])
def test_no_cell_is_a_formula_where_cells_are_split_at_semicolons(name: str) -> None:
    [row] = csv.reader(csv_lines([["id", name]]), delimiter=";")
    assert [cell for cell in row if cell.strip(' "\u200b').startswith("=")] == []


@pytest.mark.parametrize("name", ["a\n=1+1;x", "a\r\n\u200b=1+1", "a\t=1+1", 'a\t"=1+1'])
def test_no_cell_is_a_formula_where_cells_are_split_at_tabs_or_line_breaks(name: str) -> None:
    cells = re.split("[,;\t\r\n]", "".join(csv_lines([["id", name]])))
    assert [cell for cell in cells if cell.strip(' "\u200b').startswith("=")] == []


@given(st.text())
def test_what_is_shown_can_be_read_back(text: str) -> None:
    shown = spreadsheet_cell(text)
    # Behind a semicolon, a tab or a line break another cell may begin.
    for part, shown_part in zip(re.split("[;\t\r\n]", text), re.split("[;\t\r\n]", str(shown)), strict=True):
        assert shown_part in {part, f"'{part}"}
    assert spreadsheet_cell(shown) == shown


def test_service_feedback_export_and_command_line_show_the_same() -> None:
    formula = "\u200b＝cmd|' /C calc'!A0"
    table = "".join(csv_lines([[formula]])).removeprefix(BYTE_ORDER_MARK)
    [service] = csv.reader(io.StringIO(table, newline=""))
    [_, export] = csv.reader(io.StringIO("".join(csv_of_pairs([{"note": formula}], ["note"])), newline=""))
    stream = io.StringIO(newline="")
    show([Line(company=make_company("a", name=formula))], OutputFormat.CSV, stream=stream)
    [command] = csv.DictReader(io.StringIO(stream.getvalue(), newline=""))
    assert service == export == [command["name"]] == [f"'{formula}"]


def test_json_is_for_programs_and_exact() -> None:
    stream = io.StringIO()
    show([Line(company=make_company("a", name="=1+1"))], OutputFormat.JSON, stream=stream)
    assert json.loads(stream.getvalue())[0]["name"] == "=1+1"
