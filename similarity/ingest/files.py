"""Reads company files (CSV, TSV, JSON, JSONL, Excel, Parquet; texts also gzipped).

A row that cannot be read is returned as an unreadable row, so that the other rows are not lost.
"""

import gzip
import io
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from similarity.errors import InvalidInput
from similarity.formats.excel_files import IS_OLE, OLE_MAGIC, ZIP_MAGIC, open_sheet, zip_problem
from similarity.formats.plain_values import UnreadableValue
from similarity.ingest.csv_rows import csv_header, csv_rows, named_columns, names_twice
from similarity.ingest.encodings import OnNote, as_utf_8
from similarity.ingest.json_rows import BLOCK, json_rows, list_in_object
from similarity.ingest.lines import bounded_lines, unpacked
from similarity.ingest.records import column_names_of
from similarity.ingest.rows import REPEATED_HEADER, Row, repeats_header

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

FORMATS = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".xlsx", ".parquet")
JSON_FORMATS = (".jsonl", ".ndjson", ".json")
BINARY_FORMATS = (".xlsx", ".parquet")
UNREADABLE_VALUES = (ValueError, OverflowError, LookupError)
"""The exceptions of pyarrow for a value that Python cannot represent; an unknown time zone is a KeyError."""
# Exceptions of a truncated or damaged gzip file.
GZIP_ERRORS = (gzip.BadGzipFile, EOFError, zlib.error)


def read_rows(path: Path, *, on_note: OnNote = lambda note: None) -> Iterator[Row]:
    """Yield the rows of a file. The file name decides the format; gzip is also recognised by its first bytes.

    `on_note` is called if the file is read in another encoding than UTF-8, or has cells merged over several rows.

    Raises:
        InvalidInput: the file does not exist, its format is unknown, or its content is not of that format.
    """
    with _opened(path) as stream:
        yield from read_stream(stream, name=str(path), on_note=on_note)


def read_stream(stream: IO[bytes], *, name: str, on_note: OnNote = lambda note: None) -> Iterator[Row]:
    """Yield the rows of an open file. The suffix of `name` (a path or a URL) decides the format.

    The stream must be seekable, and is not closed. Text files are read twice: first to detect the encoding. OSErrors of
    the stream are passed on, because a retry may help.

    Raises:
        InvalidInput: the format is unknown, or the content is not of that format or truncated.
    """
    suffix = format_of(name)
    if suffix == ".parquet":
        yield from _parquet_rows(stream, name)
        return
    if suffix == ".xlsx":
        with open_sheet(stream, name) as sheet:
            if sheet.merged:
                ranges = ", ".join(sheet.merged[:3]) + (", ..." if len(sheet.merged) > 3 else "")
                on_note(f"{name} has merged cells ({ranges}): the value counts for each of their rows")
            for number, record in sheet.rows():
                reason = REPEATED_HEADER if repeats_header(record) else ""
                yield Row(number=number, record=record, unreadable=reason)
        return
    try:
        lines = _lines(stream, name=name, on_note=on_note)
        if suffix in JSON_FORMATS:
            yield from json_rows(lines, name=name)
        else:
            with _text(lines) as text:
                yield from csv_rows(text, suffix)
    except (*GZIP_ERRORS, UnicodeDecodeError) as error:
        raise InvalidInput(f"{name} cannot be read to its end: {error}") from error


def format_of(name: str) -> str:
    """Return the one of FORMATS with which a file name ends, ignoring .gz.

    Raises:
        InvalidInput: it ends with none of them.
    """
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    suffix = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])
    if suffix not in FORMATS or (suffix in BINARY_FORMATS and suffixes[-1] == ".gz"):
        file = PurePosixPath(name).name or "a folder"
        raise InvalidInput(
            f"{file} is none of {', '.join(FORMATS)} (all but Excel and Parquet also as .gz); save the companies as "
            "one of these"
        )
    return suffix


def is_json(path: Path) -> bool:
    """Return whether the rows of a file are JSON objects, which need not have the same columns."""
    return format_of(path.name) in JSON_FORMATS


def column_names(path: Path) -> list[str]:
    """Return the columns of a file; for JSON those of the first 100 rows.

    Raises:
        InvalidInput: the file has none, because it is empty or not of the format that its name says.
    """
    return columns_and_sheets(path)[0]


def columns_and_sheets(path: Path) -> tuple[list[str], list[str]]:
    """Return `column_names`, and the names of the sheets of an Excel file; only the first sheet is read."""
    if format_of(path.name) == ".xlsx":
        with _opened(path) as stream, open_sheet(stream, str(path)) as sheet:
            return [name for name in sheet.columns if name], list(sheet.titles)
    return _column_names(path), []


def _column_names(path: Path) -> list[str]:
    with _opened(path) as stream:
        if format_of(path.name) == ".parquet":
            return _names_of_schema(_open_parquet(stream, str(path)).schema_arrow)
        if not is_json(path):
            with _text(_lines(stream, name=path.name)) as text:
                return named_columns(csv_header(text, format_of(path.name))[0])
    names: dict[str, None] = {}
    reasons: list[str] = []
    for row in islice(read_rows(path), 100):
        if row.unreadable:
            reasons.append(row.unreadable)
        else:
            names |= dict.fromkeys(column_names_of(row.record))
    if not names:
        reason = "it has no rows with fields"
        if reasons:
            reason = f"none of its first {len(reasons)} rows can be read ({reasons[0]})"
        raise InvalidInput(f"{path} has no companies: {reason}{in_an_object(path)}")
    return list(names)


def in_an_object(path: Path) -> str:
    """Return how to read a JSON file that is an object with the list of companies; empty for any other file."""
    with _opened(path) as stream:
        begin = _lines(stream, name=path.name).read(BLOCK)
    return list_in_object(begin.decode("utf-8-sig", "replace"))


def _names_of_schema(schema: "pyarrow.Schema") -> list[str]:
    """Return the columns; each member of a struct `attributes` is a column `attributes.NAME`."""
    import pyarrow

    names: list[str] = []
    for each in schema:
        is_nested = each.name == "attributes" and pyarrow.types.is_struct(each.type)
        names += [f"attributes.{member.name}" for member in each.type] if is_nested else [each.name]
    return _distinct_names(names)


def _distinct_names(names: list[str]) -> list[str]:
    """Return the names. Raises InvalidInput if one occurs twice."""
    if len(set(names)) < len(names):
        raise InvalidInput(names_twice(names, "schema"))
    return names


def late_columns(path: Path, first: Collection[str]) -> dict[str, bool]:
    """Return the columns of a JSON file that are not among `first`, the columns of its first rows (`column_names`).

    The value of a column is whether it is only a member of an object `attributes`. The whole file is read. For files of
    other formats, the result is empty.
    """
    if not is_json(path):
        return {}
    late: dict[str, bool] = {}
    for row in read_rows(path):
        if not row.unreadable:
            for name in column_names_of(row.record):
                if name not in first:
                    late[name] = late.get(name, True) and name not in row.record
    return late


def count_rows(path: Path) -> int:
    """Return the number of rows for a progress bar.

    It is exact for Parquet. For Excel it is the number that the file declares, and otherwise the number of lines, both
    without the line of the column names.
    """
    suffix = format_of(path.name)
    with _opened(path) as stream:
        if suffix == ".parquet":
            return int(_open_parquet(stream, str(path)).metadata.num_rows)
        if suffix == ".xlsx":
            with open_sheet(stream, str(path)) as sheet:
                return max(sheet.declared_rows - 1, 0)
        content = unpacked(stream, name=path.name)
        lines, end = 0, b"\n"
        for block in iter(lambda: content.read(1 << 20), b""):
            lines, end = lines + block.count(b"\n"), (end + block)[-2:]
    lines += int(b"\n" not in end.rstrip(b"\0")[-1:])  # the file may be UTF-16
    return lines if is_json(path) else max(lines - 1, 0)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; join its files into one (docs/writing.md, Files)")
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}")
    try:
        with path.open("rb") as stream:
            yield stream
    except (*GZIP_ERRORS, OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read to its end: {error}") from error


def _lines(stream: IO[bytes], *, name: str, on_note: OnNote = lambda note: None) -> IO[bytes]:
    """Return the content of a text file, unpacked and in UTF-8."""
    magic = stream.read(len(OLE_MAGIC))
    stream.seek(0)
    if magic == OLE_MAGIC:
        raise InvalidInput(f"{name} {IS_OLE}")
    if magic.startswith(ZIP_MAGIC):
        raise InvalidInput(f"{name} {zip_problem(stream)}")
    return as_utf_8(unpacked(stream, name=name), name=name, on_note=on_note)


@contextmanager
def _text(stream: IO[bytes]) -> Iterator[Iterator[str]]:
    """Yield the `bounded_lines` of a text. Invalid bytes become lone surrogates, which `Company` refuses."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield bounded_lines(text.readline)
    finally:
        text.detach()  # otherwise it would close the caller's stream


def _parquet_rows(stream: IO[bytes], name: str) -> Iterator[Row]:
    import pyarrow

    number = 0
    try:
        file = _open_parquet(stream, name)
        names = _distinct_names(file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=1024):
            for values in zip(*map(_values, batch.columns), strict=True):
                number += 1
                yield Row(number=number, record=dict(zip(names, values, strict=True)))
    except pyarrow.ArrowException as error:
        raise InvalidInput(f"{name} cannot be read to its end: {error}") from error


def _values(column: "pyarrow.Array[Any]") -> list[object]:
    """Return the values of a column; an UnreadableValue for each one that Python cannot represent.

    Parquet has more times than Python: a year after 9999, nanoseconds, a time zone that this machine does not know.
    Only the affected member of a struct is then lost.
    """
    import pyarrow

    if isinstance(column, pyarrow.StructArray):
        names = [member.name for member in column.type]
        if names and len(set(names)) == len(names):
            rows = zip(*map(_values, column.flatten()), strict=True)
            is_null = column.is_null().to_pylist()
            return [
                None if null else dict(zip(names, row, strict=True)) for null, row in zip(is_null, rows, strict=True)
            ]
    try:
        if _has_nanoseconds(column.type):
            column = column.cast(pyarrow.timestamp("us", column.type.tz))
        return column.to_pylist()
    except UNREADABLE_VALUES:
        return [_value(each) for each in column]


def _has_nanoseconds(kind: "pyarrow.DataType") -> bool:
    """Return whether values may have nanoseconds, which Python's datetime does not have."""
    import pyarrow

    return bool(pyarrow.types.is_timestamp(kind) and kind.unit == "ns")


def _value(cell: "pyarrow.Scalar[Any]") -> object:
    import pyarrow

    if _has_nanoseconds(cell.type):
        try:
            cell = cell.cast(pyarrow.timestamp("us", cell.type.tz))
        except pyarrow.ArrowInvalid:
            return UnreadableValue("has nanoseconds, which cannot be kept; round it to microseconds")
    try:
        return cell.as_py()
    except UNREADABLE_VALUES as error:
        return UnreadableValue(f"cannot be read: {error!s:.200}")


def _open_parquet(stream: IO[bytes], name: str) -> "pyarrow.parquet.ParquetFile":
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(stream)
    except pyarrow.ArrowException as error:
        raise InvalidInput(f"{name} is not a Parquet file (call it .csv if it is CSV): {error}") from error
