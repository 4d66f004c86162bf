"""Reads company files (CSV, TSV, JSONL, Parquet; the text formats also gzipped) and writes rejects.

A row that cannot be read is an item of its own, so that one bad row costs one row.
"""

import csv
import gzip
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from similarity.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow.parquet

FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
MAX_FIELD_CHARACTERS = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a file: its number (the first data row is 1), its values, or why it could not be read."""

    number: int
    record: Mapping[str, object]
    unreadable: str = ""


def read_rows(path: Path) -> Iterator[Row]:
    """All rows of a file, lazily; the format is told by the file's ending.

    Raises:
        InvalidInput: no such file, an unknown ending, or a file that is not of its format at all.
    """
    suffix = _format_of(path)
    if suffix == ".parquet":
        yield from _parquet_rows(path)
        return
    try:
        with _open_text(path) as stream:
            yield from _json_rows(stream) if suffix in {".jsonl", ".ndjson"} else _csv_rows(stream, suffix)
    except (gzip.BadGzipFile, EOFError, OSError) as error:
        raise InvalidInput(f"{path} cannot be read to its end: {error}") from error


def column_names(path: Path) -> list[str]:
    """The columns of a file; for JSONL those of the first 100 rows."""
    if _format_of(path) == ".parquet":
        return list(_open_parquet(path).schema_arrow.names)
    names: dict[str, None] = {}
    for row in read_rows(path):
        names |= dict.fromkeys(str(name) for name in row.record)
        if row.number >= 100:
            break
    return list(names)


def count_rows(path: Path) -> int:
    """How many rows a progress bar may expect: exact for Parquet, lines for text formats."""
    suffix = _format_of(path)
    if suffix == ".parquet":
        return int(_open_parquet(path).metadata.num_rows)
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as stream:
            lines = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
    except (gzip.BadGzipFile, EOFError, OSError) as error:
        raise InvalidInput(f"{path} cannot be read to its end: {error}") from error
    return lines - int(suffix in {".csv", ".tsv"})


class RejectsFile:
    """A JSONL file of rows that were not taken, each with its number and reason; made at the first reject."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self._stream: IO[str] | None = None

    def add(self, row: Row, reason: str) -> None:
        """Appends one rejected row."""
        if self._stream is None:
            self._stream = self.path.open("w", encoding="utf-8")
        entry = {"row": row.number, "reason": reason, "record": dict(row.record)}
        # ASCII output: a record may hold broken Unicode, which must not break this file.
        self._stream.write(json.dumps(entry, default=str) + "\n")
        self.count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()


def _format_of(path: Path) -> str:
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])
    if suffix not in FORMATS or (suffix == ".parquet" and suffixes[-1] == ".gz"):
        raise InvalidInput(
            f"{path.name} is none of {', '.join(FORMATS)} (all but Parquet also as .gz); convert it first"
        )
    return suffix


def _open_text(path: Path) -> IO[str]:
    # Broken bytes become lone surrogates, which the company record refuses row by row.
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def _json_rows(stream: IO[str]) -> Iterator[Row]:
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Row(number=number, record={"line": line[:1000]}, unreadable=f"not JSON: {error}")
            continue
        if isinstance(record, dict):
            yield Row(number=number, record=record)
        else:
            yield Row(number=number, record={"line": line[:1000]}, unreadable="not a JSON object")


def _csv_rows(stream: IO[str], suffix: str) -> Iterator[Row]:
    csv.field_size_limit(MAX_FIELD_CHARACTERS)
    first_line = stream.readline()
    delimiter = "\t" if suffix == ".tsv" else max(",;\t|", key=first_line.count)
    header = [name.strip() for name in next(csv.reader([first_line], delimiter=delimiter), [])]
    if not any(header):
        raise InvalidInput("the file is empty; its first line must name the columns")
    if len(set(header)) < len(header):
        raise InvalidInput(f"a column name occurs twice in the first line: {', '.join(header)}")
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    for number in itertools.count(1):
        first = reader.line_num + 2
        try:
            values = next(reader, None)
        except csv.Error as error:
            lines = f"lines {first} to {reader.line_num + 1}"
            yield Row(number=number, record={"lines": lines}, unreadable=f"broken CSV in {lines}: {error}")
            continue
        if values is None:
            return
        if values:
            yield _csv_row(number, header, values)


def _csv_row(number: int, header: Sequence[str], values: Sequence[str]) -> Row:
    if len(values) != len(header):
        return Row(
            number=number,
            record={**dict(zip(header, values, strict=False)), "extra": list(values[len(header) :])},
            unreadable=f"has {len(values)} values for {len(header)} columns; a text with commas needs quotes",
        )
    return Row(number=number, record=dict(zip(header, values, strict=True)))


def _parquet_rows(path: Path) -> Iterator[Row]:
    number = 0
    for batch in _open_parquet(path).iter_batches(batch_size=1024):
        for record in batch.to_pylist():
            number += 1
            yield Row(number=number, record=record)


def _open_parquet(path: Path) -> "pyarrow.parquet.ParquetFile":
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise InvalidInput(f"{path} is not a Parquet file: {error}") from error
