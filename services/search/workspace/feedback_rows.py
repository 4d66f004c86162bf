"""Labelled pairs as lines of a file: exact JSONL for training, CSV for people and their spreadsheets."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from ..wire import tables

PairRecord = Mapping[str, str | int]


def jsonl_lines(records: Iterable[PairRecord]) -> Iterator[str]:
    """One JSON object a line, exactly as given."""
    for record in records:
        yield json.dumps(record, ensure_ascii=False) + "\n"


def csv_lines(records: Iterable[PairRecord], columns: Sequence[str]) -> Iterator[str]:
    """A header and one row a record; a text that a spreadsheet would run begins with an apostrophe."""
    rows = ([record[column] for column in columns] for record in records)
    return tables.csv_lines(chain([columns], rows))
