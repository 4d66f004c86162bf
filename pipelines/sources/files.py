"""Reads messages from files: JSONL, JSON, CSV, TSV, TXT (also gzipped), Excel and Parquet, on a disk, S3 or GCS.

    messages = pipeline | ReadFiles(["s3://bucket/companies-*.jsonl.gz"], now=utc_now())

Each row becomes a message with the position "file:PATH#ROW". Its value is the row as JSON or, for JSONL, the bytes of
the line. A file is read by one worker, so split a large file. A row with the id and the event time of an earlier row of
the file, but other content, becomes an unreadable message.
"""

import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

import apache_beam as beam

from pipelines.file_systems import matching, open_to_read
from similarity.errors import InvalidCompany, InvalidInput
from similarity.formats.plain_values import plain_value
from similarity.ingest.file_columns import KnownAttributes, columns_of_rows
from similarity.ingest.files import format_of, read_stream
from similarity.ingest.messages import NO_COLUMNS, Message, decode
from similarity.ingest.records import Columns
from similarity.ingest.repeated_rows import RepeatedRows
from similarity.ingest.rows import Row

FILES_LOOKED_AT = 100
ROWS_LOOKED_AT = 1_000

LOGGER = logging.getLogger(__name__)


class ReadFiles(beam.PTransform):
    """PBegin -> PCollection[Message]: all rows of the files that match the patterns when the job is built.

    `now` is the start of the run: the version of rows without an event time. `columns` serve only to
    find rows that repeat an earlier row.

    Raises:
        InvalidInput: no file matches a pattern, a suffix is unknown, or this installation cannot read from the store.
    """

    def __init__(self, patterns: Sequence[str], *, now: datetime, columns: Columns = NO_COLUMNS) -> None:
        super().__init__()
        self._patterns = list(patterns)
        self._now = now
        self._columns = columns

    def expand(self, begin: beam.pvalue.PBegin) -> "beam.PCollection[Message]":
        """Find the files and distribute them over the workers."""
        paths = matching(self._patterns)
        for path in paths:
            format_of(path)
        return (
            begin
            | "Files" >> beam.Create(paths, reshuffle=False)
            | "ShareOut" >> beam.Reshuffle()
            | "Rows" >> beam.ParDo(_ReadFile(self._now, self._columns)).with_output_types(Message)
        )


class _ReadFile(beam.DoFn):
    def __init__(self, now: datetime, columns: Columns) -> None:
        super().__init__()
        self._now = now
        self._columns = columns

    def process(self, path: str) -> Iterator[Message]:
        number = 0
        repeated = RepeatedRows()
        with open_to_read(path) as stream:
            try:
                for row in read_stream(stream, name=path, on_note=LOGGER.warning):
                    number = row.number
                    message = message_of(row, position=f"file:{path}#{number}", time=self._now)
                    yield replace(message, unreadable=message.unreadable or self._conflict(repeated, number, message))
            except InvalidInput as error:
                # The file, or its rest, is one unreadable message.
                position = f"file:{path}#{number + 1}"
                yield Message(position=position, value=None, time=self._now, unreadable=str(error))

    def _conflict(self, repeated: RepeatedRows, number: int, message: Message) -> str:
        """Return why a row conflicts with an earlier row; empty if there is no conflict, or if the row is invalid."""
        try:
            return repeated.conflict(number, decode(message, columns=self._columns).change)
        except InvalidCompany:
            return ""  # the next step makes it a dead letter


def columns_of_files(
    patterns: Sequence[str], columns: Columns, *, known: KnownAttributes, log: Callable[[str], None]
) -> Columns:
    """Return the columns of the fields and attributes in the files, as `similarity ingest` finds them; log them.

    `columns`: those that the user named. Looked at are the first rows of the first hundred files. A file that is empty
    or cannot be read is left to the job.

    Raises:
        InvalidInput: the first rows of a file lack a required column or one that the user named, or files spell a
            column differently.
    """
    fields, attributes = dict(columns.fields), dict(columns.attributes)
    used, lacking, shown = dict[str, str](), dict[str, str](), set[str]()
    for path in matching(patterns)[:FILES_LOOKED_AT]:
        with open_to_read(path) as stream:
            try:
                rows = list(islice(read_stream(stream, name=path), ROWS_LOOKED_AT))
            except InvalidInput:
                continue
        if all(row.unreadable for row in rows):
            continue
        try:
            found = columns_of_rows(rows, columns, known=known)
        except InvalidInput as error:
            raise InvalidInput(f"{path}: {error}") from None
        for name, column in found.used:
            if used.setdefault(name, column) != column:
                raise InvalidInput(
                    f"{path}: this and the files before it have different columns for {name}: {column!r} and "
                    f"{used[name]!r}; stream them one after the other"
                )
        fields |= found.columns.fields
        attributes |= found.columns.attributes
        for name in known.without_column(dict(found.used)):
            lacking.setdefault(name, path)
        if found.summary not in shown:
            shown.add(found.summary)
            log(found.summary)
    if lacking:
        file, names = next(iter(lacking.values())), ", ".join(lacking)
        log(
            f"warning: {file} has no column for {names}; a company is written whole, so companies that are stored "
            "already lose these values"
        )
    return replace(columns, fields=fields, attributes=attributes)


def message_of(row: Row, *, position: str, time: datetime) -> Message:
    """Return a row as a message."""
    if row.unreadable:
        return Message(position=position, value=row.raw, time=time, unreadable=row.unreadable)
    return Message(position=position, value=row.raw or _as_json(row.record), time=time)


def _as_json(record: Mapping[str, object]) -> bytes:
    try:
        text = json.dumps(record, default=_json_form, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(record), default=_json_form)
    return text.encode()


def _json_form(value: object) -> object:
    """Return a Parquet value in the JSON form that `similarity ingest` uses; without one, such as bytes, an object.

    An object as the domain, or in the column of an attribute, is ignored with a warning. In any other field of a
    company, or as a member of `attributes`, it makes the message a dead letter.
    """
    plain = plain_value(value)
    return {type(value).__name__: str(value)} if plain is value else plain


def _finite(value: object) -> object:
    """Replace NaN and infinity, which tables contain for missing numbers, by None."""
    value = plain_value(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
