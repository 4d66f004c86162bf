"""Tables without quoting, read strictly."""

import gzip
from pathlib import Path

import pytest

from similarity.errors import InvalidInput
from training.data.tab_separated import benchmark_rows


def test_quotation_marks_are_text(tmp_path: Path) -> None:
    (tmp_path / "MR.tsv").write_text('label\ttext\n0\t"so bad\n1\tsay "hi"\n')
    assert benchmark_rows(tmp_path, "MR", ("text", "label")) == [('"so bad', "0"), ('say "hi"', "1")]


def test_only_a_line_feed_ends_a_row(tmp_path: Path) -> None:
    (tmp_path / "MR.tsv").write_bytes("label\ttext\r\n0\ta\u2028b\x0bc\x85d\r\n".encode())
    assert benchmark_rows(tmp_path, "MR", ("text",)) == [("a\u2028b\x0bc\x85d",)]


def test_an_empty_text_is_kept(tmp_path: Path) -> None:
    (tmp_path / "MR.tsv.gz").write_bytes(gzip.compress(b"label\ttext\n0\t\n1\tx\n"))
    assert benchmark_rows(tmp_path, "MR", ("text",)) == [("",), ("x",)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"label\tword\n0\tx\n", "no column 'text'; it needs label, text"),
        (b"label\ttext\n0\tx\n1\n", "row 2: 1 values for 2 columns"),
        (b"label\ttext\n", "no rows"),
        (b"label\ttext\n0\t\xff\n", "cannot be read"),
    ],
)
def test_a_broken_table_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "MR.tsv").write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        benchmark_rows(tmp_path, "MR", ("label", "text"))


def test_a_missing_or_cut_off_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"there is no MR\.tsv\.gz in"):
        benchmark_rows(tmp_path, "MR", ("text",))
    (tmp_path / "MR.tsv.gz").write_bytes(gzip.compress(b"label\ttext\n0\tx\n" * 9)[:20])
    with pytest.raises(InvalidInput, match="cannot be read"):
        benchmark_rows(tmp_path, "MR", ("text",))
