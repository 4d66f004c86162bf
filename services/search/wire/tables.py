"""Tables for spreadsheets, as CSV and XLSX: when a client wants one, and cells that a spreadsheet does not run."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from fastapi import Response

from similarity.formats.spreadsheets import spreadsheet_cell
from similarity.formats.xlsx import Rows, xlsx_bytes

CSV = "text/csv"
MAX_HEADER = 2_000
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
BYTE_ORDER_MARK = "\ufeff"
"""Begins every CSV answer: without it, Excel does not read UTF-8."""

Format: TypeAlias = Literal["json", "csv", "xlsx"]
TABLES: Mapping[Literal["csv", "xlsx"], str] = {"csv": CSV, "xlsx": XLSX}
TABLE_CONTENT: Mapping[str, Any] = {
    CSV: {"schema": {"type": "string"}},
    XLSX: {"schema": {"type": "string", "format": "binary"}},
}
"""The OpenAPI entries of both."""
WILDCARDS = ("application/json", "application/*", "*/*")


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield a line for each row; a text that a spreadsheet would run begins with an apostrophe."""
    mark = BYTE_ORDER_MARK
    for row in rows:
        line = io.StringIO()
        csv.writer(line, lineterminator="\r\n").writerow(map(spreadsheet_cell, row))
        yield mark + line.getvalue()
        mark = ""


def names_header(names: Iterable[str]) -> str:
    """Return the value of a header with names or sentences, percent-encoded and cut at MAX_HEADER characters."""
    return ", ".join(quote(name, errors="replace") for name in names)[:MAX_HEADER]


def table_response(
    rows: Rows, chosen: Literal["csv", "xlsx"], *, name: str, sheets: Mapping[str, Rows] | None = None
) -> Response:
    """Return `rows`, the header first, as a file. `name`: the name of the file, without its ending.

    `sheets`: further sheets of an Excel file by their names; CSV has no place for them.
    """
    return Response(
        "".join(csv_lines(rows)) if chosen == "csv" else xlsx_bytes(rows, sheets),
        media_type=TABLES[chosen],
        headers={"Content-Disposition": f'attachment; filename="{name}.{chosen}"', "Vary": "Accept"},
    )


def wanted_format(chosen: Format | None, accept: str) -> Format:
    """Return the format that the client wants: `chosen` decides, else the `Accept` header."""
    if chosen:
        return chosen
    qualities = _qualities(accept)
    # A wildcard does not mean a table: browsers send one.
    best = max(TABLES, key=lambda each: qualities.get(TABLES[each], 0.0))
    json = next((quality for each in WILDCARDS if (quality := qualities.get(each, 0.0))), 0.0)
    return best if qualities.get(TABLES[best], 0.0) > json else "json"


def _qualities(accept: str) -> dict[str, float]:
    """Return the quality of each media type in an `Accept` header."""
    parts = ([each.strip().lower() for each in part.split(";")] for part in accept.split(","))
    return {name: _quality(parameters) for name, *parameters in parts}


def _quality(parameters: list[str]) -> float:
    text = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    return float(text) if re.fullmatch(r"[01](\.[0-9]{0,3})?", text) else 0.0
