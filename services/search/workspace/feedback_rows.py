"""Labelled pairs as lines of a file: exact JSONL for training, CSV for people and their spreadsheets."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from services.search.asking.csv_answers import RUN

PairRecord = Mapping[str, str | int]


def jsonl_lines(records: Iterable[PairRecord]) -> Iterator[str]:
    """One JSON object a line, exactly as given."""
    for record in records:
        yield json.dumps(record, ensure_ascii=False) + "\n"


def csv_lines(records: Iterable[PairRecord], columns: Sequence[str]) -> Iterator[str]:
    """A header and one row a record; a text that a spreadsheet would run begins with an apostrophe."""
    yield _csv_line(columns)
    for record in records:
        yield _csv_line([_harmless(record[column]) for column in columns])


def _csv_line(cells: Sequence[object]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def _harmless(cell: str | int) -> str | int:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(RUN) else cell
