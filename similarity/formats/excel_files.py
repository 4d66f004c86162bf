"""Reads Excel files (.xlsx): the first sheet, whose first row that is not empty names the columns."""

import re
import warnings
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from types import SimpleNamespace
from typing import IO, Any, Protocol, TypeAlias, cast
from xml.etree.ElementTree import ParseError

from similarity.errors import InvalidInput
from similarity.formats.plain_values import EXACT_IN_EXCEL, UnreadableValue, plain_value

ZIP_MAGIC = b"PK\x03\x04"
# An Excel file before 2007, or one with a password.
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
IS_OLE = "is an Excel file with a password or of an old format (.xls); save it as .xlsx without a password"
# The limits of Excel. A file can declare other sizes, and cells far outside of them.
MAX_ROWS = 1_048_576
MAX_COLUMNS = 16_384
SHOWN_SHEETS = 10
MAX_EMPTY_ROWS = 100
"""How many rows are searched for the one that names the columns."""
MAX_UNPACKED = 1 << 30
"""Bytes of all parts: openpyxl holds the texts of all cells in memory."""
MAX_RATIO = 200
"""The highest ratio of unpacked to packed bytes, if a file unpacks to more than SMALL; files of Excel have 5 to 30."""
SMALL = 1 << 26
# What openpyxl raises for damaged files; not OSError, because a retry may help.
READING_ERRORS = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, ParseError, RuntimeError, TypeError, ValueError),
    *(zipfile.BadZipFile, zlib.error),
)
NO_RESULT = UnreadableValue("is a formula without a stored result; open the file in Excel and save it")
NO_RESULT_CELL = SimpleNamespace(value=NO_RESULT, data_type="n")
FORMULA = re.compile(rb"[<:]f[\s/>]")
MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s+ref="([A-Z]{1,3})([0-9]{1,7}):[A-Z]{1,3}([0-9]{1,7})"')
LONGEST_ELEMENT = 100
"""The most bytes of an element that FORMULA or MERGED finds."""
MAX_MERGED = 100_000
"""The most ranges of merged cells; openpyxl holds each in memory."""
# The format of a code such as a postcode. Excel has at most 15 exact digits.
ZEROS = re.compile("0{2,15}")
# Excel writes control characters of texts in this way.
ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")

_Range: TypeAlias = tuple[str, int, int]
"""The first column and the first and the last row of merged cells."""


@contextmanager
def open_sheet(stream: IO[bytes], name: str) -> Iterator["ExcelSheet"]:
    """Open the first sheet of an Excel file. The stream must be seekable, and is not closed.

    Raises:
        InvalidInput: the content is no Excel file, is damaged, has a password or is too large, or the sheet does not
            name its columns or names two of them alike. Also raised while the rows are read.
    """
    # openpyxl warns of styles and extensions, which do not matter here.
    warnings.filterwarnings("ignore", category=UserWarning, module="openpyxl")
    _check_archive(stream, name)
    import openpyxl

    try:
        workbook = openpyxl.load_workbook(stream, read_only=True, data_only=True, keep_links=False)
        if not workbook.worksheets:
            raise InvalidInput(f"{name} has no sheet of cells")
        titles = [sheet.title for sheet in workbook.worksheets]
        sheet = cast("_Sheet", workbook.worksheets[0])
        formulas = None
        has_formulas, merged = _formulas_and_merged(stream, sheet._worksheet_path, name)
        if has_formulas:  # openpyxl reads either formulas or their results
            formulas = openpyxl.load_workbook(stream, read_only=True, keep_links=False).worksheets[0]
        yield ExcelSheet(sheet, cast("_Sheet | None", formulas), name, titles, merged)
    except READING_ERRORS as error:
        raise InvalidInput(f"{name} is not a readable Excel file ({error!s:.200}); save it again in Excel") from error


class _Sheet(Protocol):
    """The part of openpyxl's `ReadOnlyWorksheet` that is used here; its type stubs have no usable `iter_rows`."""

    _worksheet_path: str

    @property
    def max_row(self) -> int | None: ...

    def reset_dimensions(self) -> None: ...

    def iter_rows(self, *, min_row: int, max_col: int) -> Iterator[tuple[Any, ...]]: ...


class ExcelSheet:
    """A sheet: the names of its columns, and its rows.

    `formulas`: the same sheet with formulas instead of their results; None if it has no formulas. `titles`: the names
    of all sheets of the file; this sheet is the first. `ranges`: the merged cells of this sheet.
    """

    def __init__(
        self, sheet: _Sheet, formulas: _Sheet | None, name: str, titles: Sequence[str], ranges: Iterable[_Range]
    ) -> None:
        self._sheet = sheet
        self._formulas = formulas
        self._name = name
        self.titles = titles
        self.declared_rows = min(sheet.max_row or 0, MAX_ROWS)
        """The number of rows that the file says it has; it may be wrong, or 0."""
        sheet.reset_dimensions()
        if formulas is not None:
            formulas.reset_dimensions()
        self._header_row, self.columns = self._header()
        self.merged: list[str] = []
        """The merged ranges of several rows, such as A2:A5."""
        self._merged = self._by_first_row(ranges)

    def rows(self) -> Iterator[tuple[int, dict[str, object]]]:
        """Yield the number and the values of each row that is not empty; the row below the column names is 1.

        Cells without a column name are left out. Whole numbers are integers, or texts if they are shown with
        leading zeros. Dates are ISO 8601, formulas are their stored results (without one, an UnreadableValue), and
        errors of formulas are None. If cells of several rows are merged, each of these rows has their value, in their
        first column.
        """
        width = len(self.columns)
        held: dict[int, tuple[int, Any]] = {}  # by column: the last row of its merged cells, and their first cell
        for number, cells in self._cells(self._header_row + 1, width):
            named = {column: cell for column, cell in zip(self.columns, cells, strict=False) if column}
            row = self._header_row + number
            for column, last in self._merged.get(row, ()):
                held[column] = last, cells[column]
            # A row of errors is not empty: `sync` must not take its company for deleted.
            if any(cell.value not in (None, "") for cell in named.values()):
                for column, (last, cell) in held.items():
                    if row <= last and cells[column].value is None:
                        named[self.columns[column]] = cell
                yield number, {column: _plain(cell) for column, cell in named.items()}

    def _by_first_row(self, ranges: Iterable[_Range]) -> dict[int, list[tuple[int, int]]]:
        """Return (column index, last row) of the ranges of several rows, by first row; also add them to `merged`."""
        from openpyxl.utils import column_index_from_string

        found = defaultdict(list)
        for letters, first, last in ranges:
            column = column_index_from_string(letters) - 1
            if self._header_row < first < last and column < len(self.columns) and self.columns[column]:
                found[first].append((column, last))
                self.merged.append(f"{letters}{first}:{letters}{last}")
        return found

    def _header(self) -> tuple[int, list[str]]:
        for number, cells in islice(self._cells(1, MAX_COLUMNS), MAX_EMPTY_ROWS):
            names = [str(value).strip() if (value := _plain(cell)) not in (None, NO_RESULT) else "" for cell in cells]
            while names and not names[-1]:
                names.pop()
            if len(set(filter(None, names))) < len(names) - names.count(""):
                raise InvalidInput(
                    f"a column name occurs twice in row {number}: {', '.join(filter(None, names))}"
                    f"{sheet_advice(self.titles)}"
                )
            if names:
                return number, names
        raise InvalidInput(
            f"the first {MAX_EMPTY_ROWS} rows of the first sheet of {self._name} are empty; its first row must name "
            f"the columns{sheet_advice(self.titles)}"
        )

    def _cells(self, first: int, width: int) -> Iterator[tuple[int, Sequence[Any]]]:
        """Yield the rows of the sheet from the row `first`, which has the number 1, with `width` cells each."""
        rows = self._sheet.iter_rows(min_row=first, max_col=width)
        if self._formulas is not None:
            rows = map(_results, rows, self._formulas.iter_rows(min_row=first, max_col=width))
        for number, cells in enumerate(rows, 1):
            if number > MAX_ROWS:
                raise InvalidInput(f"{self._name} has more than {MAX_ROWS:,} rows; save it again in Excel")
            yield number, cells


def sheet_advice(titles: Sequence[str]) -> str:
    """Return the end of an error message about the columns: which sheet was read; empty if there is only one."""
    if len(titles) < 2:
        return ""
    return f"; {sheet_note(titles)}: if another one has the companies, make it the first"


def sheet_note(titles: Sequence[str]) -> str:
    """Return which sheet of several is read, and which are not."""
    first, *others = map(repr, titles[: SHOWN_SHEETS + 1])
    more = len(titles) - SHOWN_SHEETS - 1
    return f"the sheet {first} is read, not {', '.join(others)}" + (f" and {more:,} more" if more > 0 else "")


def zip_problem(stream: IO[bytes]) -> str:
    """Return advice about a zip archive that is named like a text file."""
    try:
        with zipfile.ZipFile(stream) as archive:
            is_excel = "xl/workbook.xml" in archive.namelist()
    except zipfile.BadZipFile:
        is_excel = False
    return "is an Excel file; name it .xlsx" if is_excel else "is a zip archive; unpack it first"


def _check_archive(stream: IO[bytes], name: str) -> None:
    magic = stream.read(len(OLE_MAGIC))
    stream.seek(0)
    if magic == OLE_MAGIC:
        raise InvalidInput(f"{name} {IS_OLE}")
    try:
        with zipfile.ZipFile(stream) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        cure = "save it as .xlsx in Excel, or call it .csv if it is CSV"
        raise InvalidInput(f"{name} is not an Excel file ({error}); {cure}") from error
    if any(part.flag_bits & 1 for part in parts):
        raise InvalidInput(f"{name} has a password; save it without one")
    unpacked = sum(part.file_size for part in parts)
    packed = sum(part.compress_size for part in parts)
    if unpacked > MAX_UNPACKED or unpacked > max(SMALL, MAX_RATIO * packed):
        raise InvalidInput(f"{name} unpacks to {unpacked:,} bytes, which is too much for an Excel file; save it as CSV")


def _formulas_and_merged(stream: IO[bytes], part: str, name: str) -> tuple[bool, list[_Range]]:
    """Return whether a sheet may have formulas, that is, an element named `f`, and the ranges of its merged cells."""
    has_formulas, merged = False, list[tuple[bytes, ...]]()
    with zipfile.ZipFile(stream) as archive, archive.open(part) as sheet:
        end = b""
        while block := sheet.read(1 << 20):
            block = end + block
            has_formulas = has_formulas or FORMULA.search(block) is not None
            merged += MERGED.findall(block)
            if len(merged) > MAX_MERGED:
                raise InvalidInput(f"{name} has more than {MAX_MERGED:,} ranges of merged cells; unmerge them in Excel")
            end = block[-LONGEST_ELEMENT:]  # elements within it are found twice
    return has_formulas, [(column.decode(), int(first), int(last)) for column, first, last in dict.fromkeys(merged)]


def _results(cells: Sequence[Any], formulas: Sequence[Any]) -> tuple[Any, ...]:
    """Return the cells, but NO_RESULT_CELL for a formula that was never calculated. An empty text is a result."""
    return tuple(
        NO_RESULT_CELL if formula.data_type == "f" and cell.value is None and cell.data_type == "n" else cell
        for cell, formula in zip(cells, formulas, strict=True)
    )


def _number_format(cell: Any) -> str:
    try:
        return str(cell.number_format)
    except LookupError:  # the file lacks the style
        return ""


def _plain(cell: Any) -> object:
    """Return the value of a cell; None for an error such as #N/A. A whole number shown as 00042 is this text."""
    value = None if cell.data_type == "e" else cell.value
    if isinstance(value, int | float) and abs(value) >= EXACT_IN_EXCEL:
        return float(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and cell.data_type == "n" and value >= 0:
        return str(value).zfill(len(digits)) if ZEROS.fullmatch(digits := _number_format(cell)) else value
    if isinstance(value, str):
        return ESCAPED.sub(lambda code: chr(int(code[1], 16)), value)
    return plain_value(value)
