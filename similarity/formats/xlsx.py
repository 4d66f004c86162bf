"""Tables as Excel files (XLSX)."""

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.cell import Cell
    from openpyxl.worksheet.worksheet import Worksheet

Rows: TypeAlias = Sequence[Sequence[object]]
"""The rows of a sheet; the first is its header."""
MIN_WIDTH, MAX_WIDTH = 8, 50
"""Widths of columns, in characters."""
MAX_CELL_CHARACTERS = 32_767
"""Excel refuses a file with a longer text."""
MAX_EXACT_DIGITS = 15
"""Excel sets further digits of a number to zero."""
# Characters that XML 1.0 cannot hold.
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

# Excel reads _x0041_ as A, and _x005F_ as the underscore.
_LIKE_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)")


def xlsx_bytes(rows: Rows, further: Mapping[str, Rows] | None = None) -> bytes:
    """Return an Excel file with the sheet `companies`, and `further` sheets by name; headers are bold and frozen.

    A text is stored as text, even if it begins like a formula, an error value or an address; so Excel runs no formula
    and makes no link. A text is cut after 32,767 characters, the most that Excel accepts, and characters that XML
    cannot hold are removed. An integer of more than 15 digits is stored as text.
    """
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    # The companies come first, because programs that read the file take its first sheet.
    for title, each in {"companies": rows, **(further or {})}.items():
        _add_sheet(book, title, each)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _add_sheet(book: "Workbook", title: str, rows: Rows) -> None:
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter

    sheet = book.create_sheet(title)
    sheet.freeze_panes = "A2"
    for number, column in enumerate(zip(*rows, strict=True), 1):
        widest = max(len(str(value)) for value in column if value is not None)
        sheet.column_dimensions[get_column_letter(number)].width = min(max(widest + 2, MIN_WIDTH), MAX_WIDTH)
    header, *others = rows
    header_cells = [_cell(sheet, value) for value in header]
    for cell in header_cells:
        cell.font = Font(bold=True)
    sheet.append(header_cells)
    for row in others:
        sheet.append([_cell(sheet, value) for value in row])


def _cell(sheet: "Worksheet", value: object) -> "Cell":
    from openpyxl.cell import WriteOnlyCell

    is_long = isinstance(value, int) and len(str(abs(value))) > MAX_EXACT_DIGITS
    if value is None or (isinstance(value, int | float) and not is_long):
        return WriteOnlyCell(sheet, value)
    text = _LIKE_ESCAPED.sub("_x005F_", _NOT_IN_XML.sub("", str(value)))
    cell = WriteOnlyCell(sheet, text[:MAX_CELL_CHARACTERS])
    cell.data_type = "s"  # openpyxl makes a formula of a text that begins with =
    return cell
