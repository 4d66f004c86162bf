"""A line without an end costs itself, whatever it weighs; gzip is recognised by its first bytes."""

import gzip
import io
import subprocess
import sys
from pathlib import Path

import pytest

from similarity.errors import InvalidInput
from similarity.ingest.files import column_names, count_rows, read_rows, read_stream
from similarity.ingest.lines import MAX_LINE

ENDLESS = 300_000_000
SPARE_MEMORY = 150_000_000
READ = """
import resource, sys
from pathlib import Path
from similarity.ingest.files import column_names, count_rows, read_rows
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]), ) * 2)
path = Path(sys.argv[1])
print(column_names(path)[0], count_rows(path))
for row in read_rows(path):
    print(row.number, row.unreadable or row.record["id"], len(row.raw) < 2_000)
"""


def write_with_endless_line(path: Path, first: bytes, last: bytes) -> None:
    with gzip.open(path, "wb", compresslevel=1) if path.suffix == ".gz" else path.open("wb") as file:
        file.write(first)
        if path.suffix == ".gz":
            for _ in range(ENDLESS // 1_000_000):
                file.write(b"x" * 1_000_000)
        else:
            file.seek(ENDLESS)  # leaves a hole that takes no disk
        file.write(last)


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "first", "last", "why"),
    [
        ("a.jsonl", b'{"id": "a"}\n{"id": "', b'"}\n{"id": "b"}\n', "line 2 is longer than 16 MiB"),
        ("a.csv", b'id,name\na,A\n1,"', b'"\nb,B\n', "broken CSV in line 3: the row is longer than 16 MiB"),
    ],
)
def test_a_line_of_300_mb_is_one_bad_row_and_takes_little_memory(
    tmp_path: Path, ending: str, name: str, first: bytes, last: bytes, why: str
) -> None:
    path = tmp_path / f"{name}{ending}"
    write_with_endless_line(path, first, last)
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path), str(SPARE_MEMORY)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    told = done.stdout.splitlines()
    assert told[0] == "id 3"
    assert (told[1], told[3]) == ("1 a True", "3 b True")
    assert told[2].startswith(f"2 {why}")
    assert told[2].endswith("True")


def test_a_csv_row_is_as_bounded_as_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    field = '"' + "x" * 996 + '\n",'  # 1,000 characters
    path.write_text("id,name\n" + field * (MAX_LINE // 1000) + "x" * 1_000 + "\nb,B\n")
    long, rest, short = read_rows(path)
    assert "the row is longer than 16 MiB" in long.unreadable
    assert (len(long.raw), long.record) == (
        MAX_LINE // 1000 * 1000 - 2,
        {"lines": f"lines 2 to {MAX_LINE // 1000 + 1}"},
    )
    assert rest.raw == b'",' + b"x" * 1_000 + b"\n"
    assert short.record == {"id": "b", "name": "B"}


def test_an_open_quotation_mark_costs_its_line_even_if_the_row_becomes_too_long(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = [f"c{number},{'x' * 990}\n" for number in range(MAX_LINE // 900)]
    path.write_text('id,name\na,"A\n' + "".join(lines) + 'b,"B\n')
    broken, *good, last = read_rows(path)
    assert (broken.raw, last.raw) == (b'a,"A\n', b'b,"B\n')
    assert [row.record["id"] for row in good] == [f"c{number}" for number in range(len(lines))]


def test_a_line_of_just_the_longest_length_is_read() -> None:
    line = b'{"id": "' + b"x" * (MAX_LINE - 11) + b'"}\n'
    [row] = read_stream(io.BytesIO(line), name="a.jsonl")
    assert (len(line), row.unreadable) == (MAX_LINE, "")
    [row] = read_stream(io.BytesIO(line[:-1] + b" \n"), name="a.jsonl")
    assert "longer" in row.unreadable


def test_a_first_line_of_csv_that_does_not_end_is_no_header() -> None:
    with pytest.raises(InvalidInput, match="the first line, which must name the columns, is longer than 16 MiB"):
        list(read_stream(io.BytesIO(b"x" * (MAX_LINE + 2)), name="a.csv"))


@pytest.mark.parametrize(("name", "content"), [("a.jsonl", b'{"id": "1"}\n'), ("a.csv", b"id\n1\n")])
def test_a_gzipped_file_is_read_under_any_name(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(content))
    assert [row.record for row in read_rows(path)] == [{"id": "1"}]
    assert (column_names(path), count_rows(path)) == (["id"], 1)


def test_a_file_that_is_not_gzipped_under_the_name_of_one_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(b'{"id": "1"}\n')
    with pytest.raises(InvalidInput, match="Not a gzipped file"):
        list(read_rows(tmp_path / "a.jsonl.gz"))
