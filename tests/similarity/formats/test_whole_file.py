from pathlib import Path

import pytest

from similarity.formats.whole_file import whole_file


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with whole_file(path) as first:
        first.write(b"1" * 100)
        with whole_file(path) as second:
            second.write(b"2")
        assert path.read_bytes() == b"2"
    assert path.read_bytes() == b"1" * 100
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_raises_leaves_the_earlier_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"earlier")
    with pytest.raises(TypeError), whole_file(path) as stream:
        stream.writelines([b"half", None])  # type: ignore[list-item]
    assert [(each, each.read_bytes()) for each in tmp_path.iterdir()] == [(path, b"earlier")]
