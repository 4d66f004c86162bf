"""Reads CSV and TSV. A broken row does not damage other rows, even if its quotation mark is never closed.

A quoted text may contain line breaks. If a quotation mark is missing, the parser takes the lines after it for text
until another quotation mark contradicts, the file ends or the row is too long. Only the lines up to the one with the
open quotation mark are then rejected; the lines after it are read again. A line is read again at most twice: the lines
in between have only doubled quotation marks, and such lines cannot open a quoted text that goes on.
"""

import csv
import itertools
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence

from similarity.errors import InvalidInput
from similarity.ingest.lines import KEPT_CHARACTERS, MAX_LINE, TOO_LONG
from similarity.ingest.rows import REPEATED_HEADER, Row, repeats_header

IS_UTF_16 = "the file is UTF-16 without a byte order mark; save it as UTF-8 (in Excel: CSV UTF-8)"
IS_BINARY = "the file is not a text: its first line has control characters; is it a file of another kind?"
IS_JSON = "the file contains JSON instead of columns; name it FILE.jsonl (an object a line) or FILE.json"
JSON_START = re.compile('\\s*(?:\\[\\s*)?\\{\\s*(?:"|$)|\\s*\\[\\s*$')
SEPARATOR_HINT = re.compile('"?sep=([^"\r\n])"?[\r\n]*', re.IGNORECASE)
BINARY = re.compile("[\0-\x08\x0e-\x1f]")
LINE_END = re.compile("\r\n|\r|\n")
EMPTY_CELLS = ",;\t| \r\n"
MAX_HEADER_LINES = 100
MAX_EMPTY_LINES = 100
"""Limit of empty lines above the column names."""
HEADER_NOT_CLOSED = "a quotation mark in the line of the column names is not closed; add or remove one"
MARKS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
NOT_CLOSED = "its last quoted text is not closed: a quotation mark is missing, or one inside the text is not doubled"
NOT_DOUBLED = "a quotation mark inside a quoted text must be doubled"


class LinesOfRow:
    """Passes the lines after the column names to a CSV reader, and keeps the lines of the current row."""

    def __init__(self, lines: Iterator[str], *, number: int) -> None:
        self._lines = lines
        self._again: deque[str] = deque()
        self._size = 0
        self.kept: list[str] = []
        """The lines of the current row."""
        self.number = number
        """The number of the last line that was read."""

    def __iter__(self) -> "LinesOfRow":
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._lines)
        self.number += 1
        self._size += len(line)
        self.kept.append(line)
        if self._size > MAX_LINE:
            # As for any other error of a row, the reader starts a new row with the next line.
            raise csv.Error(f"the row {TOO_LONG}")
        return line

    def take(self, count: int) -> tuple[str, bytes]:
        """End the row after its first `count` lines, and return where these are and their bytes.

        The other lines are read again. If the row has more than MAX_LINE characters, only its beginning is returned.
        """
        taken, rest = self.kept[:count], self.kept[count:]
        last = self.number - len(rest)
        first = last - len(taken) + 1
        self._again.extendleft(reversed(rest))
        self.kept, self._size, self.number = [], 0, last
        text = "".join(taken)
        raw = (text if len(text) <= MAX_LINE else text[:KEPT_CHARACTERS]).encode("utf-8", "surrogateescape")
        return f"line {last}" if len(taken) == 1 else f"lines {first} to {last}", raw


def csv_rows(lines: Iterator[str], suffix: str) -> Iterator[Row]:
    """Yield the rows below the column names. `suffix`: ".tsv" if tabs separate the values, else the delimiter is found.

    A row whose values are all blank is left out. The last values of a row are left out if their columns have no name.

    Raises:
        InvalidInput: the first line does not name the columns, or names two of them alike.
    """
    csv.field_size_limit(MAX_LINE)
    header, delimiter, number = csv_header(lines, suffix)
    kept = LinesOfRow(lines, number=number)
    reader = csv.reader(kept, delimiter=delimiter, strict=True)
    for number in itertools.count(1):
        try:
            values = next(reader, None)
        except csv.Error as error:
            yield _broken_row(number, kept, delimiter, str(error))
            continue
        if values is None:
            return
        if _has_swallowed(kept.kept, values, len(header), delimiter):
            where, raw = kept.take(1)
            yield Row(number=number, record={"lines": where}, unreadable=_reason(where, NOT_CLOSED), raw=raw)
            continue
        _, raw = kept.take(len(kept.kept))
        if any(value.strip() for value in values):
            yield _csv_row(number, header, values, delimiter, raw)


def csv_header(lines: Iterator[str], suffix: str) -> tuple[list[str], str, int]:
    """Return the column names in the first line that is not empty, the delimiter, and how many lines were read.

    A line break in a quoted name becomes a blank. The last names may be empty. A line `sep=;` before them,
    which names the delimiter, is read too.
    """
    first_line, start = _first_line(lines, 0)
    if JSON_START.match(first_line):
        raise InvalidInput(IS_JSON)
    hint = SEPARATOR_HINT.fullmatch(first_line)
    if hint:
        first_line, start = _first_line(lines, start)
    if len(first_line) > MAX_LINE:
        raise InvalidInput(f"the first line, which must name the columns, {TOO_LONG}")
    if BINARY.search(first_line):
        is_utf_16 = first_line.count("\0") > len(first_line) / 3  # every second byte of Western letters
        raise InvalidInput(IS_UTF_16 if is_utf_16 else IS_BINARY)
    text, count = first_line, start
    while True:
        delimiter = "\t" if suffix == ".tsv" and "\t" in text else max(",;\t|", key=text.count)
        delimiter = hint[1] if hint else delimiter
        if not _is_open(text, delimiter):
            break
        line, count = next(lines, ""), count + 1
        text += line
        if not line or count - start > MAX_HEADER_LINES or len(text) > MAX_LINE:
            raise InvalidInput(HEADER_NOT_CLOSED)
    try:
        # A name that goes on over several lines may have swallowed rows: another quotation mark then contradicts.
        names = next(csv.reader([text], delimiter=delimiter, strict=text != first_line), [])
        # A line within the name that is a row by itself contradicts too.
        rows = csv.reader(LINE_END.split(text)[1:], delimiter=delimiter)
        if any(len(row) == len(names) > 1 for row in rows):
            raise InvalidInput(HEADER_NOT_CLOSED)
    except csv.Error:
        raise InvalidInput(HEADER_NOT_CLOSED) from None
    header = [LINE_END.sub(" ", name).strip() for name in names]
    if not any(header):
        raise InvalidInput("the file is empty; its first line must name the columns")
    named = named_columns(header)
    if len(named) == 1 < len(header) - 1:  # a title, not the column names
        named = header
    if len(set(named)) < len(named):
        raise InvalidInput(names_twice(named, "first line"))
    return header, delimiter, count


def _first_line(lines: Iterator[str], count: int) -> tuple[str, int]:
    """Return the next line that is not empty, "" if there is none, and `count` plus the number of lines read."""
    for line in itertools.islice(lines, MAX_EMPTY_LINES + 1):
        count += 1
        if line.strip(EMPTY_CELLS):
            return line, count
    return "", count


def named_columns(header: Sequence[str]) -> list[str]:
    """Return the column names without the empty ones at the end."""
    count = max((place for place, name in enumerate(header, 1) if name), default=0)
    return list(header[:count])


def _is_open(text: str, delimiter: str) -> bool:
    """Return whether the last quoted text goes on after `text`."""
    try:
        next(csv.reader([text], delimiter=delimiter, strict=True), None)
    except csv.Error as error:
        return "end of data" in str(error)
    return False


def names_twice(names: Sequence[str], where: str) -> str:
    """Return the message for column names of which two are alike; `where` is the row or line that holds the names."""
    twice = Counter(names).most_common(1)[0][0]
    if not twice:
        return (
            f"the {where} must hold the column names, but several of them are empty: {', '.join(names)!r:.200}; remove "
            "lines above the column names, such as a title, and name all columns"
        )
    return f"a column name occurs twice in the {where}, which must hold the column names: {twice!r:.100}"


def _broken_row(number: int, kept: LinesOfRow, delimiter: str, error: str) -> Row:
    """Return the lines up to the one whose quotation mark is not closed as an unreadable row."""
    lines, count, at_end = kept.kept, 1, "end of data" in error
    if len(lines) > 1:
        count = _open_line(lines if at_end else lines[:-1], delimiter) + 1
        reason = f"the row {TOO_LONG}, or {NOT_CLOSED}" if TOO_LONG in error else NOT_CLOSED
    elif at_end:
        reason = NOT_CLOSED
    else:
        reason = error if TOO_LONG in error else f"{error}; {NOT_DOUBLED}"
    where, raw = kept.take(count)
    return Row(number=number, record={"lines": where}, unreadable=_reason(where, reason), raw=raw)


def _open_line(lines: Sequence[str], delimiter: str) -> int:
    """Return the index of the line that opens the quoted text which goes on after the last line."""
    open_text = next(csv.reader(lines, delimiter=delimiter))[-1]
    line_ends = sum(line.endswith(("\n", "\r")) for line in lines)
    return line_ends - len(LINE_END.findall(open_text))


def _has_swallowed(lines: Sequence[str], values: Sequence[str], columns: int, delimiter: str) -> bool:
    """Return whether a row has too many or too few values because one of them swallowed rows.

    A value has swallowed rows if it goes from the first line to the last, and the second line is a row by itself.
    """
    if len(values) in (0, columns) or len(lines) < 2:
        return False
    try:
        is_row = len(next(csv.reader(lines[1:2], delimiter=delimiter, strict=True), ())) == columns
    except csv.Error:
        return False
    return is_row and any(len(LINE_END.findall(value)) == len(lines) - 1 for value in values)


def _reason(where: str, reason: str) -> str:
    return f"broken CSV in {where}: {reason}"


def _csv_row(number: int, header: Sequence[str], values: Sequence[str], delimiter: str, raw: bytes) -> Row:
    if len(values) != len(header):
        reason = f"a text with {MARKS.get(delimiter, repr(delimiter))} needs quotes"
        if not values[-1]:
            reason += "; if every row ends with a delimiter, end the line of the column names with one too"
        if len(values) < len(header):
            reason = "values are missing; each column needs one, which may be empty"
        return Row(
            number=number,
            record={**dict(zip(header, values, strict=False)), "extra": list(values[len(header) :])},
            unreadable=f"has {len(values)} values for {len(header)} columns; {reason}",
            raw=raw,
        )
    record = dict(zip(named_columns(header), values, strict=False))
    if repeats_header(record):
        return Row(number=number, record=record, unreadable=REPEATED_HEADER, raw=raw)
    return Row(number=number, record=record)
