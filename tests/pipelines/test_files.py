import gzip
import json
import math
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import apache_beam as beam
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given
from hypothesis import strategies as st

from pipelines.sources.files import ReadFiles, message_of
from similarity.company import version_of
from similarity.errors import InvalidCompany, InvalidInput
from similarity.ingest.files import read_rows
from similarity.ingest.messages import Message, decode
from similarity.ingest.records import Columns, VersionedCompany, parse_record
from similarity.ingest.rows import Row

pytestmark = pytest.mark.pipelines
NOW = datetime(2026, 11, 20, tzinfo=UTC)


def read(patterns: list[str], check: Callable[[Iterable[Message]], None]) -> None:
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        assert_that(pipeline | ReadFiles(patterns, now=NOW), check)


def test_files_of_every_format_become_messages_with_their_place_and_time(tmp_path: Path) -> None:
    line = b'{"id":   "j", "name": "caf\xc3\xa9"}\n'
    (tmp_path / "a.jsonl").write_bytes(line)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b"\n" + line))
    (tmp_path / "c.csv").write_text("id,name\nc,Cee\n")
    (tmp_path / "d.tsv.gz").write_bytes(gzip.compress(b"id\tname\nt,Tee\n".replace(b",", b"\t")))
    pq.write_table(pa.table({"id": ["p"], "event_time": [NOW]}), tmp_path / "e.parquet")
    expected = [
        Message(position=f"file:{tmp_path}/a.jsonl#1", value=line, time=NOW),
        Message(position=f"file:{tmp_path}/b.jsonl.gz#2", value=line, time=NOW),
        Message(position=f"file:{tmp_path}/c.csv#1", value=b'{"id": "c", "name": "Cee"}', time=NOW),
        Message(position=f"file:{tmp_path}/d.tsv.gz#1", value=b'{"id": "t", "name": "Tee"}', time=NOW),
        Message(
            position=f"file:{tmp_path}/e.parquet#1",
            value=b'{"id": "p", "event_time": "2026-11-20T00:00:00+00:00"}',
            time=NOW,
        ),
    ]
    read([f"{tmp_path}/*"], equal_to(expected))


def test_a_file_that_two_patterns_name_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    read(
        [f"{tmp_path}/*.csv", f"{tmp_path}/a.csv"],
        equal_to([Message(position=f"file:{tmp_path}/a.csv#1", value=b'{"id": "1"}', time=NOW)]),
    )


def test_a_row_with_the_id_of_another_is_one_unreadable_message_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ticker,name,description\na,A,Makes a.\na,B,Makes b.\na,A,Makes a.\n")

    def check(messages: Iterable[Message]) -> None:
        first, other, same = sorted(messages, key=lambda message: message.position)
        assert (first.unreadable, same.unreadable) == ("", "")
        assert other.unreadable == "row 2 has the same id as row 1: 'a', and other content; row 1 is kept"

    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        columns = Columns(fields={"id": "ticker"})
        assert_that(pipeline | ReadFiles([f"{tmp_path}/a.csv"], now=NOW, columns=columns), check)


def test_files_of_excel_and_in_windows_1252_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("id,name\na,Café\n".encode("cp1252"))
    (tmp_path / "b.jsonl").write_bytes('{"id": "b", "name": "Café"}\n'.encode("cp1252"))
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.append(["id", "founded"])
    book.active.append([123, datetime(2020, 1, 31)])  # noqa: DTZ001  # as in Excel
    book.save(tmp_path / "c.xlsx")
    expected = [
        Message(position=f"file:{tmp_path}/a.csv#1", value=b'{"id": "a", "name": "Caf\\u00e9"}', time=NOW),
        Message(position=f"file:{tmp_path}/b.jsonl#1", value='{"id": "b", "name": "Café"}\n'.encode(), time=NOW),
        Message(position=f"file:{tmp_path}/c.xlsx#1", value=b'{"id": 123, "founded": "2020-01-31"}', time=NOW),
    ]
    read([f"{tmp_path}/*"], equal_to(expected))


def test_a_bad_row_is_one_unreadable_message_with_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,name\n1,a,\xff\n2,\xc3\xa9\n")
    read(
        [f"{tmp_path}/a.csv"],
        equal_to(
            [
                Message(
                    position=f"file:{tmp_path}/a.csv#1",
                    value=b"1,a,\xff\n",
                    time=NOW,
                    unreadable="has 3 values for 2 columns; a text with commas needs quotes",
                ),
                Message(position=f"file:{tmp_path}/a.csv#2", value=b'{"id": "2", "name": "\\u00e9"}', time=NOW),
            ]
        ),
    )


def test_a_file_that_breaks_off_costs_one_message_and_no_other_file(tmp_path: Path) -> None:
    rows = b"".join(b'{"id": "%d"}\n' % number for number in range(1000))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(rows)[:-20])
    (tmp_path / "b.jsonl").write_bytes(b'{"id": "whole"}\n')

    def check(messages: Iterable[Message]) -> None:
        found = list(messages)
        (broken,) = [message for message in found if message.unreadable]
        read_before = [message for message in found if "a.jsonl.gz" in message.position and not message.unreadable]
        assert broken.position == f"file:{tmp_path}/a.jsonl.gz#{len(read_before) + 1}"
        assert "cannot be read to its end" in broken.unreadable
        assert any(message.value == b'{"id": "whole"}\n' for message in found)

    read([f"{tmp_path}/*"], check)


def test_relative_paths_mean_the_same_to_every_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"{}\n")
    monkeypatch.chdir(tmp_path)
    read(["a.jsonl"], equal_to([Message(position=f"file:{tmp_path}/a.jsonl#1", value=b"{}\n", time=NOW)]))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("nothing-*.csv", "no file matches"),
        ("", "no file matches"),
        ("notes.doc", "is none of .csv"),
        ("s3://bucket/a.csv", r"s3:// needs apache-beam\[aws\]"),
        ("gs://bucket/a.csv", r"gs:// needs apache-beam\[gcp\]"),
        ("hdfs://host/a.csv", "cannot be listed"),
    ],
)
def test_what_cannot_be_read_is_refused_before_the_run(tmp_path: Path, pattern: str, message: str) -> None:
    (tmp_path / "notes.doc").write_text("x")
    with pytest.raises(InvalidInput, match=message):
        beam.Pipeline(runner="FnApiRunner") | ReadFiles(
            [pattern if "//" in pattern else f"{tmp_path}/{pattern}"], now=NOW
        )


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.dictionaries(st.text(), scalars | st.lists(scalars)))
def test_a_row_survives_as_json(record: dict[str, object]) -> None:
    value = message_of(Row(number=1, record=record), position="file:x#1", time=NOW).value
    assert value is not None
    assert json.loads(value) == record


def test_a_number_that_is_missing_in_a_table_is_missing_in_the_message() -> None:
    numbers = {"size": math.nan, "sizes": [1.5, math.inf], "more": {"x": -math.inf}}
    record = {"id": "a", **numbers, "map": [("y", math.nan)], "price": Decimal("nan")}
    value = message_of(Row(number=1, record=record), position="p", time=NOW).value
    nulls = b'"size": null, "sizes": [1.5, null], "more": {"x": null}, "map": [["y", null]], "price": null'
    assert value == b'{"id": "a", ' + nulls + b"}"


@pytest.mark.parametrize("also", [{}, {"score": math.nan}], ids=["finite", "NaN"])
def test_a_row_of_parquet_is_the_same_company_as_in_a_load(tmp_path: Path, also: dict[str, object]) -> None:
    row: dict[str, object] = {
        "id": Decimal(12),
        "name": "A",
        "description": "Makes bolts.",
        "price": Decimal("12.50"),
        "founded": datetime(2020, 1, 31),  # noqa: DTZ001  # a timestamp of Parquet without a time zone
        "opened": date(2021, 2, 1),
        "opens": time(9, 30),
        "event_time": NOW,
        "attributes": {"share": Decimal("0.25")},
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({name: [value] for name, value in (row | also).items()}), path)
    columns = Columns.from_pairs([], ["price:number", "founded", "opened", "opens", "score"])
    (read,) = read_rows(path)
    loaded = parse_record(read.record, columns=columns, now=NOW).change
    decoded = decode(message_of(read, position="p", time=NOW), columns=columns).change
    assert decoded == loaded
    assert isinstance(decoded, VersionedCompany)
    assert decoded.company.attributes == {
        "share": 0.25, "price": 12.5, "founded": "2020-01-31", "opened": "2021-02-01", "opens": "09:30:00",
    }  # fmt: skip


def test_a_column_without_a_json_form_is_refused_only_where_it_is_a_field() -> None:
    company = {"id": "a", "name": "A", "description": "Makes bolts."}
    ignored = message_of(Row(number=1, record={**company, "logo": b"\x89PNG"}), position="p", time=NOW)
    assert decode(ignored).change.version == version_of(NOW, now=NOW)
    used = message_of(Row(number=1, record={**company, "industry": b"\x89PNG"}), position="p", time=NOW)
    with pytest.raises(InvalidCompany, match="industry: must be text, not an object"):
        decode(used)
