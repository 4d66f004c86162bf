import os
from pathlib import Path

import pytest

from similarity.errors import InvalidInput
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


def test_the_target_of_a_link_is_replaced_and_not_the_link(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "folder" / "out"
    target.parent.mkdir()
    link.symlink_to(target)
    for content in (b"1", b"2"):
        with whole_file(link) as stream:
            stream.write(content)
        assert link.is_symlink()
        assert target.read_bytes() == content


def test_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "device")
    (tmp_path / "link").symlink_to(tmp_path / "device")
    with pytest.raises(InvalidInput, match="device is no regular file"), whole_file(tmp_path / "link"):
        pass
    assert (tmp_path / "device").is_fifo()


def test_drafts_of_killed_processes_are_removed_after_a_day(tmp_path: Path) -> None:
    path = tmp_path / "out[1]"
    drafts = {name: tmp_path / name for name in (".out[1].0123abcd.part", ".out[1].1.part", ".out1.0123abcd.part")}
    drafts["new"] = tmp_path / ".out[1].00000000.part"
    for name, draft in drafts.items():
        draft.touch()
        if name != "new":
            os.utime(draft, (0, 0))
    with whole_file(path) as stream:
        stream.write(b"1")
    assert {name for name, draft in drafts.items() if not draft.exists()} == {".out[1].0123abcd.part"}
