import gzip
import io
import json
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from similarity.errors import InvalidCompany, InvalidInput
from similarity.ingest.files import column_names, count_rows, read_rows, read_stream
from similarity.ingest.records import Columns, VersionedCompany, parse_record
from similarity.ingest.rejects import RejectsFile
from similarity.ingest.rows import Row


def write(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def records(path: Path) -> list[dict[str, object]]:
    return [dict(row.record) for row in read_rows(path)]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_csv_is_read_with_quotes_newlines_and_a_byte_order_mark(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, '\ufeffid,name\n1,"a, ""b""\nc"\n\n2,d\n')
    assert records(path) == [{"id": "1", "name": 'a, "b"\nc'}, {"id": "2", "name": "d"}]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "id;name\n1;a,b\n"),
        ("a.tsv", "id\tname\n1\ta,b\n"),
        ("a.txt", "id\tname\n1\ta,b\n"),
        ("a.txt.gz", "id;name\n1;a,b\n"),
        ("a.csv", "\ufeffsep=;\r\nid;name\r\n1;a,b\r\n"),
        ("a.csv", '"SEP=\t"\nid\tname\n1\ta,b\n'),
        ("a.tsv", "sep=#\nid#name\n1#a,b\n"),
        ("a.tsv", 'id,name\n1,"a,b"\n'),
    ],
)
def test_other_delimiters_are_found(tmp_path: Path, name: str, text: str) -> None:
    assert records(write(tmp_path / name, text)) == [{"id": "1", "name": "a,b"}]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jsonl.gz"])
def test_json_lines_are_read(tmp_path: Path, name: str) -> None:
    assert records(write(tmp_path / name, '{"id": 1}\n\n{"id": "b", "tags": ["x"]}')) == [
        {"id": 1},
        {"id": "b", "tags": ["x"]},
    ]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.json.gz"])
@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_of_objects_is_read(tmp_path: Path, name: str, indent: int | None) -> None:
    companies: list[object] = [{"id": str(number), "name": "Ä\n]" * number} for number in range(2_000)]
    path = write(tmp_path / name, "\ufeff\n " + json.dumps(companies, indent=indent, ensure_ascii=False) + "\n")
    assert records(path) == companies
    assert column_names(path) == ["id", "name"]


def test_one_object_per_line_is_read_from_json(tmp_path: Path) -> None:
    assert records(write(tmp_path / "a.json", '{"id": 1}\n{"id": 2}\n')) == [{"id": 1}, {"id": 2}]
    assert records(write(tmp_path / "b.json", "[]")) == []


def test_an_item_that_is_no_object_costs_only_itself(tmp_path: Path) -> None:
    rows = list(read_rows(write(tmp_path / "a.json", '[1, {"id": "a"}, {"a": 1, "a": 2}, {"id": "b"}]')))
    assert [row.record.get("id") for row in rows if not row.unreadable] == ["a", "b"]
    reasons = [row.unreadable for row in rows if row.unreadable]
    assert reasons[0].startswith("not a JSON object; each line must be one object, or the file one array of objects")
    assert reasons[1] == "not JSON: the member 'a' occurs twice; keep one of them"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"id": 1}, {"id": ', "item 2 of its array is not JSON .*, or the file is cut off"),
        ('[{"id": 1}', "after item 1 of its array, it ends"),
        ('[{"id": 1} {"id": 2}]', "after item 1 of its array, there is '{' and not a comma or ]"),
        ('[{"id": 1}]\n[{"id": 2}]', "has text after its array of 1 items"),
        ('[{"id": ' + "[" * 100_000 + "]" * 100_000 + "}]", "item 1 of the array in .* cannot be read"),
    ],
)
def test_a_broken_array_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        list(read_rows(write(tmp_path / "a.json", text)))


def test_an_object_over_several_lines_says_what_json_may_be(tmp_path: Path) -> None:
    [first, *_] = read_rows(write(tmp_path / "a.json", '{\n"companies": [\n'))
    assert "each line must be one object, or the file one array of objects (jq -c . writes" in first.unreadable


def test_a_list_in_the_first_line_is_a_broken_row(tmp_path: Path) -> None:
    rows = list(read_rows(write(tmp_path / "a.jsonl", '["x"]\n{"id": 2}\n')))
    assert [bool(row.unreadable) for row in rows] == [True, False]


@pytest.mark.parametrize(
    "header",
    [
        ' ID ,"Company\nName","Description\r\n(EN)"\n',
        '"ID\n",Company Name,Description (EN)\n',
        '"ID";"Company\rName";Description (EN);;\n',
    ],
)
def test_a_line_break_in_a_column_name_is_a_blank(tmp_path: Path, header: str) -> None:
    delimiter = ";" if ";" in header else ","
    values = ["1", "a", '"b\nc"'] + [""] * header.count(";;") * 2
    path = write(tmp_path / "a.csv", header + delimiter.join(values) + "\n")
    [row] = records(path)
    assert [name.casefold().strip() for name in row] == ["id", "company name", "description (en)"]
    assert list(row.values()) == ["1", "a", "b\nc"]
    assert column_names(path) == list(row)


def test_a_quotation_mark_that_is_not_closed_in_the_column_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="a quotation mark in the line of the column names is not closed"):
        records(write(tmp_path / "a.csv", 'id,"name\n1,a\n'))
    with pytest.raises(InvalidInput, match="a quotation mark in the line of the column names is not closed"):
        records(write(tmp_path / "c.csv", 'id,"name\n1,a\n2,"b"\n3,c\n'))  # not a name with two rows in it
    with pytest.raises(InvalidInput, match="a quotation mark in the line of the column names is not closed"):
        records(write(tmp_path / "d.csv", 'id,name,"notes\n1,a,x\n2,b,15"\n3,c,y\n'))  # inches at the end of a row
    assert records(write(tmp_path / "b.csv", 'id,5" size\n1,a\n')) == [{"id": "1", '5" size': "a"}]


@pytest.mark.parametrize("above", ["\n", ",,\n", "\ufeff\r\n", "\n \n\t\n", "sep=,\n\n", "\nsep=,\n", "\n" * 100])
def test_empty_lines_above_the_column_names_are_skipped(tmp_path: Path, above: str) -> None:
    path = write(tmp_path / "a.csv", above + 'id,"na\nme"\n1,a\n2,"open\n')
    first, broken = read_rows(path)
    assert (first.record, column_names(path)) == ({"id": "1", "na me": "a"}, ["id", "na me"])
    assert broken.record == {"lines": f"line {above.count(chr(10)) + 4}"}


def test_blank_rows_are_left_out_and_keep_their_numbers(tmp_path: Path) -> None:
    rows = list(read_rows(write(tmp_path / "a.csv", "id,name\n,\n1,a\n , \n,,,\n2,b\n")))
    assert [(row.number, row.record["id"]) for row in rows] == [(2, "1"), (5, "2")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("id;name\n1;a;b\n", "has 3 values for 2 columns; a text with semicolons needs quotes"),
        ("id\tname\n1\ta\tb\n", "has 3 values for 2 columns; a text with tabs needs quotes"),
        ("sep=#\nid#name\n1#a#b\n", "has 3 values for 2 columns; a text with '#' needs quotes"),
        (
            "id,name,x\n1,a\n",
            "has 2 values for 3 columns; values are missing; each column needs one, which may be empty",
        ),
        ("id,name\n id,name \n", "repeats the column names, as where files are joined; delete this row"),
    ],
)
def test_a_row_that_does_not_fit_says_why(tmp_path: Path, text: str, reason: str) -> None:
    [row] = read_rows(write(tmp_path / "a.csv", text))
    assert row.unreadable == reason


def test_rows_that_end_with_a_delimiter_are_not_shifted(tmp_path: Path) -> None:
    rows = list(read_rows(write(tmp_path / "a.csv", "id,name\n1,a,\n2,b,\n")))
    assert all("end the line of the column names with one too" in row.unreadable for row in rows)
    rows = list(read_rows(write(tmp_path / "b.csv", "id,name,\n1,a,\n2,b,\n")))
    assert [row.record for row in rows] == [{"id": "1", "name": "a"}, {"id": "2", "name": "b"}]


def test_parquet_is_read_with_its_types(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "tags": [["x"], None]}), path)
    assert records(path) == [{"id": "a", "tags": ["x"]}, {"id": "b", "tags": None}]
    assert (column_names(path), count_rows(path)) == (["id", "tags"], 2)


def test_a_bad_json_line_is_one_bad_row(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"id": 1}\n{oops\n[1]\n{"id": 2}\n')
    rows = list(read_rows(path))
    assert [bool(row.unreadable) for row in rows] == [False, True, True, False]
    assert "not JSON" in rows[1].unreadable
    assert "not a JSON object" in rows[2].unreadable
    assert rows[1].record == {"line": "{oops\n"}


def test_a_csv_row_with_too_many_or_too_few_values_is_one_bad_row(tmp_path: Path) -> None:
    rows = list(read_rows(write(tmp_path / "a.csv", "id,name\n1,a,b\n2\n3,c\n")))
    assert [row.unreadable.partition(";")[0] for row in rows] == [
        "has 3 values for 2 columns",
        "has 1 values for 2 columns",
        "",
    ]
    assert rows[0].record == {"id": "1", "name": "a", "extra": ["b"]}


@pytest.mark.parametrize(
    ("lines", "rejected", "read"),
    [
        (['1,"a"b', "2,c"], {"line 2": '1,"a"b'}, ["2"]),
        (['1,"open', "2,c", '3,"d"'], {"line 2": '1,"open'}, ["2", "3"]),
        (['1,"open', "2,c", "3,d"], {"line 2": '1,"open'}, ["2", "3"]),
        (["1,a", '2,"open'], {"line 3": '2,"open'}, ["1"]),
        (['1,"open', '2,"open', '3,"open', "4,d"], {f"line {n}": f'{n - 1},"open' for n in (2, 3, 4)}, ["4"]),
        (['1,"two', 'lines"', '2,"open', '3,"two', 'lines"'], {"line 4": '2,"open'}, ["1", "3"]),
        (['"two', 'lines","open', "2,c", '3,"d"'], {"lines 2 to 3": '"two\nlines","open'}, ["2", "3"]),
        # Another line ends the text, by chance with a comma behind it.
        (['1,"open', "2,c", '3,5" pipe",d'], {"line 2": '1,"open', "line 4": '3,5" pipe",d'}, ["2"]),
        (['"open,a', "2,c", '5",d,e'], {"line 2": '"open,a', "line 4": '5",d,e'}, ["2"]),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_broken_quotes_cost_their_own_lines(
    tmp_path: Path, lines: list[str], rejected: dict[str, str], read: list[str], line_end: str
) -> None:
    rows = list(read_rows(write(tmp_path / "a.csv", line_end.join(["id,name", *lines, ""]))))
    broken = [row for row in rows if row.unreadable]
    texts = [row.raw.decode().removesuffix(line_end).replace(line_end, "\n") for row in broken]
    assert texts == list(rejected.values())
    assert [row.record["id"] for row in rows if not row.unreadable] == read
    for row, where in zip(broken, rejected, strict=True):
        assert row.unreadable.startswith(f"broken CSV in {where}: ") or "values for 2 columns" in row.unreadable


def test_broken_bytes_stay_in_their_row(tmp_path: Path) -> None:
    rows = list(read_rows(write(tmp_path / "a.csv", b"id,name\n1,caf\xe9\n2,caf\xc3\xa9\n")))
    assert rows[0].record["name"] == "caf\udce9"
    assert rows[1].record["name"] == "café"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xls", "x", "is none of .csv, .tsv, .txt, .jsonl, .ndjson, .json, .xlsx, .parquet"),
        ("a", "x", "is none of .csv, .tsv"),
        ("a.csv", "", "its first line must name the columns"),
        ("a.csv", "id,id\n1,2\n", "a column name occurs twice"),
        ("a.csv", '{"id": "1", "name": "Acme, Ltd."}\n', "contains JSON instead of columns; name it FILE.jsonl"),
        ("a.tsv", '[\n{"id": "1"}]\n', "contains JSON instead of columns"),
        ("a.csv", "My export 2026,,\nid,name,description\n", "the first line must hold the column names, but several"),
        ("a.parquet", "not parquet", "is not a Parquet file"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        list(read_rows(write(tmp_path / name, content)))


def test_lines_are_numbered_as_in_the_file(tmp_path: Path) -> None:
    broken, good = read_rows(write(tmp_path / "a.csv", 'sep=;\nid;name\n1;"a"b\n2;c\n'))
    assert broken.unreadable.startswith("broken CSV in line 3: ';' expected after '\"'; a quotation mark inside")
    assert (good.number, good.record["id"]) == (2, "2")


def test_unicode_text_of_excel_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", 'id\tname\r\n1\t"Caf\u00e9, ""A"""\r\n'.encode("utf-16"))
    assert records(path) == [{"id": "1", "name": 'Caf\u00e9, "A"'}]
    assert (column_names(path), count_rows(path)) == (["id", "name"], 1)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_csv_file_in_utf_16_without_a_mark_is_said_to_be_so(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "excel.csv"
    path.write_bytes("id\tname\na\tCafé\n".encode(encoding))
    for read in (lambda: list(read_rows(path)), lambda: column_names(path)):
        with pytest.raises(InvalidInput, match="the file is UTF-16 without a byte order mark; save it as UTF-8"):
            read()


def test_a_cut_off_gzip_file_is_said_to_be_so(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": 1}\n' * 10_000)[:-20])
    with pytest.raises(InvalidInput, match="cannot be read to its end"):
        list(read_rows(path))


def test_a_damaged_gzip_file_is_said_to_be_so(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    whole = gzip.compress(b"".join(b'{"id": %d}\n' % number for number in range(10_000)))
    path.write_bytes(whole[:1000] + bytes(byte ^ 0xFF for byte in whole[1000:]))
    with pytest.raises(InvalidInput, match="cannot be read to its end"):
        list(read_rows(path))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s3://bucket/a.jsonl", b'{"id": "1"}\n'),
        ("gs://bucket/a.jsonl.gz", gzip.compress(b'\xef\xbb\xbf{"id": "1"}\n')),
        ("a.csv", b"id\n1\n"),
        ("a.tsv.gz", gzip.compress(b"id\n1\n")),
    ],
)
def test_an_open_stream_reads_like_a_file_and_stays_open(name: str, content: bytes) -> None:
    stream = io.BytesIO(content)
    assert [row.record for row in read_stream(stream, name=name)] == [{"id": "1"}]
    assert not stream.closed


def test_decimals_and_dates_of_parquet_are_read_as_those_of_excel(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    company = {"id": Decimal(7), "name": "A", "description": "Makes anvils."}
    numbers = {"staff": Decimal("12.50"), "sites": Decimal("3.0"), "code": Decimal(10) ** 30}
    times = {"founded": date(2020, 1, 31), "opened": datetime(2020, 1, 31, 12, tzinfo=UTC)}
    row = company | numbers | times | {"parts": [1]}
    pq.write_table(pa.Table.from_pylist([row]), path)
    options = ["staff:number", "sites:number", "code:number", "founded", "parts", "opened"]
    [found] = read_rows(path)
    parsed = parse_record(found.record, columns=Columns.from_pairs([], options), now=datetime.now(UTC))
    assert isinstance(parsed.change, VersionedCompany)
    assert parsed.change.id == "7"
    dates = {"founded": "2020-01-31", "opened": "2020-01-31T12:00:00+00:00"}
    assert parsed.change.company.attributes == {"staff": 12.5, "sites": 3, **dates}
    assert [warning.partition(";")[0] for warning in parsed.warnings] == [
        "attributes.code: '1000000000000000000000000000000' is not a number like 12500, 12,500 or 12.5",
        "attributes.parts: must be text, a number, a date, true or false, not a list",
    ]


def test_times_that_python_has_no_value_for_cost_one_row_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    microseconds = pa.array([1, 300_000_000_000_000_000], pa.timestamp("us"))
    pq.write_table(pa.table({"id": ["a", "b"], "event_time": microseconds}), path)
    good, bad = read_rows(path)
    assert (good.record["id"], bad.record["id"], bad.number) == ("a", "b", 2)
    with pytest.raises(InvalidCompany, match="event_time: cannot be read: date value out of range"):
        parse_record(bad.record, columns=Columns(), now=datetime.now(UTC))
    nanoseconds = pa.array([1_000, 1_500], pa.timestamp("ns"))
    pq.write_table(pa.table({"id": ["a", "b"], "event_time": nanoseconds}), path)
    good, bad = read_rows(path)
    assert good.record["event_time"] == datetime(1970, 1, 1, microsecond=1)  # noqa: DTZ001  # as the file has it
    with pytest.raises(InvalidCompany, match="event_time: has nanoseconds, which cannot be kept; round it"):
        parse_record(bad.record, columns=Columns(), now=datetime.now(UTC))


@pytest.mark.parametrize(
    "odd", [pa.time64("ns"), pa.duration("ns"), pa.timestamp("us", "Mars/Olympus"), pa.timestamp("ns", "Mars/Olympus")]
)
def test_a_column_of_an_odd_type_costs_only_its_values(tmp_path: Path, odd: pa.DataType) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"id": ["a"], "name": ["A"], "description": ["Makes anvils."], "odd": pa.array([1_500], odd)})
    pq.write_table(table, path)
    [row] = read_rows(path)
    for attributes, warned in (([], 0), (["odd"], 1)):
        parsed = parse_record(row.record, columns=Columns.from_pairs([], attributes), now=datetime.now(UTC))
        assert isinstance(parsed.change, VersionedCompany)
        assert [text.partition(":")[0] for text in parsed.warnings] == ["attributes.odd"] * warned


def test_an_unreadable_member_of_a_struct_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    staff, opened = pa.array([5, 6, None]), pa.array([1, 1_500, 3], pa.timestamp("ns"))
    seen = pa.array([1, 2, 3], pa.timestamp("us", "Mars/Olympus"))
    members = pa.StructArray.from_arrays(
        [staff, opened, seen], names=["staff", "opened", "seen"], mask=pa.array([False, False, True])
    )
    columns = {"id": ["a", "b", "c"], "name": ["A", "B", "C"], "description": ["Makes anvils."] * 3}
    pq.write_table(pa.table({**columns, "attributes": members}), path)
    rows = list(read_rows(path))
    assert rows[2].record["attributes"] is None
    parsed = [parse_record(row.record, columns=Columns(), now=datetime.now(UTC)) for row in rows[:2]]
    changes = [each.change for each in parsed if isinstance(each.change, VersionedCompany)]
    assert [each.company.attributes.get("staff") for each in changes] == [5, 6]
    assert [[warning.partition(":")[0] for warning in each.warnings] for each in parsed] == [
        ["attributes.opened", "attributes.seen"], ["attributes.opened", "attributes.seen"],
    ]  # fmt: skip


def test_attributes_that_cannot_be_read_are_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = {"id": ["a"], "name": ["A"], "description": ["Makes anvils."]}
    odd = pa.array([1], pa.timestamp("us", "Mars/Olympus"))
    pq.write_table(pa.table({**columns, "attributes": odd}), path)
    [row] = read_rows(path)
    parsed = parse_record(row.record, columns=Columns(), now=datetime.now(UTC))
    assert [warning.partition(":")[0] for warning in parsed.warnings] == ["attributes"]


@pytest.mark.parametrize("level", ["none", "N/A", "nan", "tbd", " - "])
def test_a_declared_level_is_no_missing_value(level: str) -> None:
    columns = Columns.from_pairs([], [f"risk:ordinal={level.strip()},low,high"])
    record = {"id": "a", "name": "A", "description": "Makes anvils.", "risk": level}
    parsed = parse_record(record, columns=columns, now=datetime.now(UTC))
    assert isinstance(parsed.change, VersionedCompany)
    assert (parsed.change.company.attributes, parsed.warnings) == ({"risk": level.strip()}, ())


def test_parquet_is_read_from_a_stream_that_seeks() -> None:
    stream = io.BytesIO()
    pq.write_table(pa.table({"id": ["a", "b"]}), stream)
    assert [row.record for row in read_stream(stream, name="a.parquet")] == [{"id": "a"}, {"id": "b"}]
    assert not stream.closed


def test_a_failing_stream_fails_as_it_does_since_another_try_may_help() -> None:
    class Dropped(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            raise ConnectionResetError("connection lost")

        def __next__(self) -> bytes:
            return self.readline()

    with pytest.raises(ConnectionResetError, match="connection lost"):
        list(read_stream(Dropped(), name="a.jsonl"))


def test_json_rows_and_unreadable_rows_keep_their_own_bytes() -> None:
    content = b'\xef\xbb\xbf{"id":  1}\n\xff{oops \xc3\xa9\n'
    assert [row.raw for row in read_stream(io.BytesIO(content), name="a.jsonl")] == [
        b'{"id":  1}\n',
        b"\xff{oops \xc3\xa9\n",
    ]
    content = b'id,name\n1,\xc3\xa9\n2,"b"\xff\n\n3,c,d\n'
    rows = list(read_stream(io.BytesIO(content), name="a.csv"))
    assert [row.raw for row in rows] == [b"", b'2,"b"\xff\n', b"3,c,d\n"]


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no file"):
        list(read_rows(tmp_path / "a.csv"))


def test_the_progress_bar_knows_what_to_expect(tmp_path: Path) -> None:
    for content, rows in {"": 0, "id": 0, "id\n": 0, "id\n1": 1, "id\n1\n2\n": 2}.items():
        assert count_rows(write(tmp_path / "a.csv", content)) == rows
    assert count_rows(write(tmp_path / "a.jsonl", "{}\n{}\n")) == 2
    assert count_rows(write(tmp_path / "a.jsonl", "{}\n{}")) == 2
    assert count_rows(write(tmp_path / "a.jsonl.gz", "{}\n")) == 1


def test_rejects_keep_row_reason_and_content_even_of_broken_text(tmp_path: Path) -> None:
    with RejectsFile(tmp_path / "r.jsonl") as rejects:
        rejects.add(Row(number=3, record={"name": "caf\udce9"}), "name: broken")
        rejects.add(Row(number=4, record={"lines": "line 5"}, unreadable="?", raw=b'a,"caf\xe9\n'), "broken CSV")
    entries = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert entries == [
        {"row": 3, "reason": "name: broken", "record": {"name": "caf\udce9"}},
        {"row": 4, "reason": "broken CSV", "record": {"lines": "line 5"}, "text": 'a,"caf\udce9\n'},
    ]


def test_without_rejects_there_is_no_rejects_file(tmp_path: Path) -> None:
    with RejectsFile(tmp_path / "r.jsonl") as earlier:
        earlier.add(Row(number=1, record={}), "id: is missing")
        earlier.warn(Row(number=2, record={}), "a", "Staff", "staff: 'many' is not a number")
    with suppress(OSError), RejectsFile(tmp_path / "r.jsonl"):
        raise OSError  # a run that failed says nothing about the rows
    assert len(list(tmp_path.iterdir())) == 2
    with RejectsFile(tmp_path / "r.jsonl"):
        pass
    assert not list(tmp_path.iterdir())


def test_without_rejects_a_file_of_another_program_stays(tmp_path: Path) -> None:
    path = write(tmp_path / "notes.txt", "my notes")
    with RejectsFile(path):
        pass
    assert path.read_text() == "my notes"


@pytest.mark.parametrize(
    ("rejects", "warnings"),
    [
        ("c.csv.rejects.jsonl", "c.csv.warnings.jsonl"),
        ("bad.jsonl", "bad.warnings.jsonl"),
        ("bad", "bad.warnings.jsonl"),
    ],
)
def test_ignored_values_are_in_a_file_beside_the_rejects(tmp_path: Path, rejects: str, warnings: str) -> None:
    with RejectsFile(tmp_path / rejects) as both:
        both.warn(Row(number=3, record={}), "a", "Staff", "staff: 'many' is not a number")
    entry = json.loads((tmp_path / warnings).read_text())
    assert entry == {"row": 3, "id": "a", "column": "Staff", "reason": "staff: 'many' is not a number"}
    assert [path.name for path in tmp_path.iterdir()] == [warnings]
    with pytest.raises(InvalidInput, match="which is being read; name another file"):
        RejectsFile(tmp_path / rejects, source=tmp_path / warnings)


def test_no_file_of_warnings_is_made_beside_a_device() -> None:
    assert RejectsFile(Path("/dev/null")).warnings_path == Path("/dev/null")


def test_a_type_of_parquet_that_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise pa.ArrowNotImplementedError("Reading unsigned 128-bit integers is not supported")

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": ["a"]}), path)
    monkeypatch.setattr("pyarrow.parquet.ParquetFile", fails)
    with pytest.raises(InvalidInput, match="128-bit integers is not supported"):
        list(read_rows(path))
