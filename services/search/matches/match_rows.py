"""The rows of a list, from JSON, a table or plain lines. A row that cannot be read stays a row, with the reason."""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, takewhile

from pydantic import ValidationError

from similarity.company import MAX_NAME_CHARACTERS
from similarity.errors import InvalidInput
from similarity.formats.excel_files import OLE_MAGIC, ZIP_MAGIC
from similarity.ingest.encodings import as_utf_8, is_unicode
from similarity.ingest.files import read_stream
from similarity.ingest.records import column_key
from similarity.search.countries import country_code
from similarity.search.names.comparison import is_domain
from similarity.search.names.rows import with_ticker, without_ticker

from ..wire.problem_documents import Problem, invalid_request, reason_of
from ..wire.strict_json import strict_json
from .match_schemas import MAX_ROWS, MatchRequest, MatchRow

GZIP_MAGIC = b"\x1f\x8b"
IS_EXCEL = "this is an Excel file or an archive; save the list as CSV (in Excel: CSV UTF-8) and send it as text/csv"
MAX_CELLS = 100
"""Maximum number of cells in a line of plain text; a line pasted from a spreadsheet has fewer."""

LINE_NUMBER = re.compile(r"\s*[0-9]{1,4}[.)]\s+(?=\S)")
WRITTEN_LIKE_ID = re.compile(r"[A-Z0-9][A-Z0-9.-]{0,9}")
BETWEEN_WORDS = re.compile(r"(?:\s|…|\.{3,}+)++")
"""Blanks, or the dots that a table of a PDF has between a name and a figure."""
FIGURE = re.compile(r"[\d.,]*\d%?|")
MIN_FIGURE_CHARACTERS = 5
MAIL = re.compile(r"<([^<>@\s]+@[^<>@\s]+)>")

# Usual names of the columns of lists, as `column_key` writes them, without a leading "company".
HEADINGS: Mapping[str, frozenset[str]] = {
    field: frozenset(words.split())
    for field, words in (
        (
            "name",
            "name company companies organisation organization organisationname organizationname firm business entity "
            "issuer issuername security securityname constituent holding legalname brand account accountname client "
            "customer supplier competitor competitors peer peers target portfoliocompany firma firmenname unternehmen "
            "kunde wettbewerber mitbewerber entreprise société raisonsociale nom nomdel'entreprise concurrent azienda "
            "empresa nombre bedrijf företag компания 会社名 企業名 社名 公司 公司名称 회사명",
        ),
        (
            "domain",
            "domain website websiteurl url web homepage site internet webseite internetseite siteweb siteinternet "
            "sitioweb sitoweb",
        ),
        ("id", "id identifier ticker symbol tickersymbol 証券コード 股票代码"),
        ("country", "country countryname countrycode land pays país paese страна 国 国家"),
    )
}
ALSO_NAMES = frozenset(
    "account brand business client competitor constituent customer entity holding kunde peer security site "
    "supplier symbol target web".split()
)
"""Headings that may also be names of companies. Alone they make no header; other headings take precedence."""
IDENTIFYING = frozenset({"name", "domain", "id"})
"""A list needs one of these columns."""
MAX_TITLES, MAX_HEADER_CHARACTERS = 5, 10_000
IS_TITLE = "is taken for a title, because it stands above the line that names the columns"
SEPARATOR = re.compile(r"[,;\t|]")


@dataclass(frozen=True, slots=True)
class ListRow:
    """One row, or the reason why it cannot be used."""

    number: int
    cells: MatchRow
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class ListRows:
    """The rows of a list, and the columns of its table that are not used."""

    rows: list[ListRow]
    unused_columns: tuple[str, ...] = ()


def rows_of_json(raw: bytes) -> ListRows:
    """Return the rows of a `MatchRequest`.

    Raises:
        Problem: the body is invalid.
    """
    try:
        value = strict_json(raw)
        if isinstance(value, list):
            raise _invalid('it must be an object with the rows: {"rows": [...]}')
        request = MatchRequest.model_validate(value)
    except ValidationError as error:
        raise invalid_request([{**each, "loc": ("body", *each["loc"])} for each in error.errors()]) from None
    except ValueError as error:
        raise _invalid(f"the JSON cannot be used: {error}") from None
    return ListRows([ListRow(number, row) for number, row in enumerate(request.rows, 1)])


def rows_of_table(raw: bytes) -> ListRows:
    """Return the rows of a CSV table (also with semicolons, tabs or bars) with a header.

    Each line above the header becomes a row that cannot be used (IS_TITLE).

    Raises:
        Problem: the table cannot be read, no column is a name, website or id, or there are no rows or too many.
    """
    if raw.startswith((ZIP_MAGIC, OLE_MAGIC)):
        raise _invalid(IS_EXCEL)
    if raw.startswith(GZIP_MAGIC):  # which the reader of files would unpack: 10 MB can become gigabytes
        raise _invalid("the table is compressed; send it uncompressed")
    titles, table = _table_in(_text(raw))
    table = table or raw
    try:
        rows = list(islice(read_stream(io.BytesIO(table), name="rows.csv"), MAX_ROWS + 1))
    except InvalidInput as error:
        raise _invalid(str(error)) from None
    _check_count(rows)
    columns = _columns(rows[0].record)
    if not columns.keys() & IDENTIFYING:
        if not all(map(is_unicode, rows[0].record)):
            raise _invalid("the first line is not UTF-8; save the table as UTF-8")
        names = ", ".join(f"{str(name)[:40]!a}" for name in list(rows[0].record)[:10])
        advice = ". A list without such a line can be sent as text/plain" if len(rows[0].record) == 1 else ""
        raise _invalid(
            f"the first line must name the columns, and one of them name, domain or id; it has {names}{advice}"
        )
    listed = [ListRow(number, MatchRow(name=_encodable(title)), IS_TITLE) for number, title in enumerate(titles, 1)]
    listed += [
        ListRow(len(titles) + row.number, MatchRow(), row.unreadable)
        if row.unreadable
        else _list_row(len(titles) + row.number, {field: str(row.record[each]) for field, each in columns.items()})
        for row in rows
    ]
    unused = [column for column in rows[0].record if column not in columns.values()]
    return ListRows(listed, tuple(map(_encodable, unused)))


def rows_of_lines(raw: bytes) -> ListRows:
    """Return a row for each line that is not blank: a name, a website, or both, separated by tabs.

    A leading number ("1. Delta"), a ticker in brackets at the end, and a first line that only names columns are left
    out. Below a first line that names a column of ids, the lines are ids. A line that names several columns makes the
    text a table (`rows_of_table`).

    Raises:
        Problem: the text cannot be read, or there are no lines or too many.
    """
    if raw.startswith((ZIP_MAGIC, OLE_MAGIC)):
        raise _invalid(IS_EXCEL)
    text = _text(raw)
    if _table_in(text)[1]:
        return rows_of_table(raw)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _invalid(f"the text is not UTF-8 (character {error.start}); save it as UTF-8") from None
    numbered = enumerate(io.StringIO(text, newline=None), 1)
    lines = list(islice(((number, line) for number, line in numbered if line.strip()), MAX_ROWS + 2))  # a header, too
    are_ids = len(lines) > 1 and _begin_with_ids([line.strip() for _, line in lines])
    if are_ids or (len(lines) > 1 and _names_columns(lines[0][1])):
        del lines[0]
    _check_count(lines)
    if are_ids:
        return ListRows([_list_row(number, {"id": line.strip()}) for number, line in lines])
    return ListRows([_row_of_line(number, line) for number, line in lines])


def _text(raw: bytes) -> str:
    """Return the text of bytes in UTF-8, UTF-16 or Windows-1252; surrogates stand for invalid bytes."""
    utf_8 = as_utf_8(io.BytesIO(raw), name="the list", on_note=lambda note: None).read()
    return utf_8.decode("utf-8-sig", "surrogateescape")


def _table_in(text: str) -> tuple[list[str], bytes]:
    """Return the lines above a table in a text, and the table from its header on; nothing if there is no header.

    A header has a heading of names, websites or ids, and a second heading of any field. Instead of the second heading,
    the next line may have several cells too: "Company, The" may be a line of a list.
    """
    begins, titles = 0, list[str]()
    lines = [*islice(io.StringIO(text, newline=""), 4 * MAX_TITLES), ""]
    for line, following in pairwise(lines):
        headings = [cell for cell in _filled_cells(line) if _field_of(cell)]
        is_sure = any(column_key(cell) not in ALSO_NAMES for cell in headings) and len(_filled_cells(following)) > 1
        is_wide = len(_filled_cells(line)) > 1 and (len(headings) > 1 or is_sure)
        if is_wide and not IDENTIFYING.isdisjoint(map(_field_of, headings)):
            return titles, text[begins:].encode("utf-8", "surrogateescape")
        titles += [" ".join(cells)[:MAX_NAME_CHARACTERS]] if (cells := _filled_cells(line)) else []
        if len(titles) > MAX_TITLES:
            break
        begins += len(line)
    return [], b""


def _filled_cells(line: str) -> list[str]:
    cells = [cell.strip('" \r\n') for cell in SEPARATOR.split(line[:MAX_HEADER_CHARACTERS], MAX_CELLS)]
    return [cell for cell in cells if cell]


def _names_columns(line: str) -> bool:
    """Return whether each cell of a line is a heading, and at least one is a heading of names, websites or ids."""
    cells = [cell for cell in line.strip().split("\t", MAX_CELLS) if cell.strip()]
    fields = [_field_of(cell) for cell in cells]
    is_sure = len(cells) > 1 or not ALSO_NAMES.issuperset(map(column_key, cells))
    return is_sure and all(fields) and not IDENTIFYING.isdisjoint(fields)


def _begin_with_ids(lines: Sequence[str]) -> bool:
    """Return whether the first line names a column of ids. "Symbol" may be a company: then ids must follow it."""
    is_sure = column_key(lines[0]) not in ALSO_NAMES
    return _field_of(lines[0]) == "id" and (is_sure or all(map(WRITTEN_LIKE_ID.fullmatch, lines[1:])))


def _encodable(name: str) -> str:
    """Return a name with "?" for the surrogates that stand for invalid bytes: a response in UTF-8 cannot hold them."""
    return name.encode("utf-8", "replace").decode()


def _row_of_line(number: int, line: str) -> ListRow:
    if line.count("\t") >= MAX_CELLS:
        return ListRow(number, MatchRow(), f"the line has more than {MAX_CELLS} cells; send only name and website")
    return _list_row(number, _cells(line))


def _cells(line: str) -> dict[str, str]:
    line = MAIL.sub(r"\t\1", line.lstrip("> "))
    cells = [cell.strip() for cell in _without_number(line).split("\t") if cell.strip()]
    websites = dict.fromkeys(cell for cell in cells if is_domain(cell))  # a set that keeps the order
    names = [cell for cell in cells if cell not in websites]
    # "Booking.com" may be a name too; an address with a path or an @ is not.
    bare = [cell for cell in websites if "/" not in cell and "@" not in cell]
    numbered = len(names) > 1 and names[0].isdecimal()
    name_cell = next(iter(names[numbered:] + bare), "")
    country = next((cell for cell in names[numbered + 1 :] if country_code(cell)), "")
    return {"name": without_ticker(name_cell), "domain": next(iter(websites), ""), "country": country}


def without_additions(name: str) -> list[str]:
    """Return the forms of a name without the figures around it in a table of a PDF, and without a ticker.

    The figure next to the name may be a part of it, so the form with it comes first. Without dots, figures of fewer
    than five characters in all stay, as in "Studio 54". A country, such as (UK), is not taken for a ticker.

    >>> without_additions("12 Nestlé S.A. (NESN) ..... 94,424 8.2%")
    ['Nestlé S.A. (NESN) 94,424', 'Nestlé S.A.']
    """
    words = BETWEEN_WORDS.split(name.strip())
    figures = [*takewhile(FIGURE.fullmatch, reversed(words))]
    plainer = [name]
    is_of_table = "..." in name or "…" in name or len("".join(figures)) >= MIN_FIGURE_CHARACTERS
    if is_of_table and 0 < len(figures) < len(words):
        kept = words[: -len(figures)]
        kept = kept[len(kept) > 1 and kept[0].isdecimal() :]
        plainer = [" ".join([*kept, figures[-1]]), " ".join(kept)]
    return [*dict.fromkeys(with_ticker(each)[0] for each in plainer)]


def _without_number(line: str) -> str:
    number = LINE_NUMBER.match(line)
    return line[number.end() :] if number else line


def _columns(record: Mapping[str, object]) -> dict[str, str]:
    """Return the column of each field: the first with a heading of the field. Headings in ALSO_NAMES come last."""
    found: dict[str, str] = {}
    for column in sorted(record, key=lambda column: column_key(column) in ALSO_NAMES):
        if field := _field_of(column):
            found.setdefault(field, column)
    return found


def _field_of(column: str) -> str:
    """Return the field that a heading names, or an empty string."""
    key = column_key(column)
    return next((field for field, known in HEADINGS.items() if {key, key.removeprefix("company")} & known), "")


def _list_row(number: int, cells: Mapping[str, str]) -> ListRow:
    try:
        return ListRow(number, MatchRow.model_validate(cells))
    except ValidationError as error:
        first = error.errors()[0]
        reason = "is not UTF-8; save the list as UTF-8" if first["type"] == "string_unicode" else reason_of(first)
        return ListRow(number, MatchRow(), f"{first['loc'][0]}: {reason}")


def _check_count(rows: Sequence[object]) -> None:
    if not rows:
        raise _invalid("the list has no rows")
    if len(rows) > MAX_ROWS:
        raise _invalid(f"the list has more than {MAX_ROWS:,} rows; send it in parts")


def _invalid(reason: str) -> Problem:
    return invalid_request([{"loc": ["body"], "msg": reason}])
