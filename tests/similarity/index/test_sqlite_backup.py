import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from similarity.errors import IndexUnavailable, InvalidInput
from similarity.index.sqlite import SqliteIndex
from similarity.index.sqlite.schema import PAGE_BYTES
from tests.contract.steps import add_live, found
from tests.factories import make_embedded
from tests.similarity.index.inspection import damage


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteIndex]:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        index.upsert(add_live(index, "first"), [make_embedded("a"), make_embedded("b")])
        yield index


def test_a_backup_opens_as_an_index_with_the_same_companies(index: SqliteIndex, tmp_path: Path) -> None:
    target = tmp_path / "backups" / "copy.db"
    index.backup(target)
    assert [file.name for file in target.parent.iterdir()] == ["copy.db"]
    assert damage(target) == []
    with closing(SqliteIndex(target)) as copy:
        assert copy.live() == index.live()
        assert found(copy.similar("first", make_embedded("a").vector, k=2))[0] == "a"


def test_a_backup_holds_what_was_written_before_it_and_nothing_after(index: SqliteIndex, tmp_path: Path) -> None:
    index.backup(tmp_path / "copy.db")
    index.upsert("first", [make_embedded("c")])
    with closing(SqliteIndex(tmp_path / "copy.db")) as copy:
        assert sorted(copy.get("first", ["a", "b", "c"])) == ["a", "b"]


def test_an_existing_file_is_kept_unless_told_otherwise(index: SqliteIndex, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("precious")
    with pytest.raises(InvalidInput, match="exists"):
        index.backup(target)
    assert target.read_text() == "precious"
    index.backup(target, overwrite=True)
    assert damage(target) == []


def test_an_index_in_use_is_never_overwritten(index: SqliteIndex, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="index itself"):
        index.backup(index.path, overwrite=True)
    with closing(SqliteIndex(tmp_path / "other.db")) as other:
        add_live(other, "first")
        with pytest.raises(InvalidInput, match="in use"):
            index.backup(other.path, overwrite=True)
        assert other.live().name == "first"


def test_a_damaged_index_gives_no_backup(index: SqliteIndex, tmp_path: Path) -> None:
    index.upsert("first", [make_embedded(f"c{number}") for number in range(2000)])
    index.close()
    pages = index.path.stat().st_size // PAGE_BYTES
    with index.path.open("r+b") as file:
        file.seek(PAGE_BYTES * (pages // 2))
        file.write(b"\xff" * PAGE_BYTES * 4)
    with closing(SqliteIndex(index.path)) as damaged, pytest.raises(IndexUnavailable, match="damaged"):
        damaged.backup(tmp_path / "copy.db")
    assert [file.name for file in tmp_path.iterdir() if "copy" in file.name] == []


def test_a_failed_backup_leaves_the_earlier_one(
    index: SqliteIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "copy.db"
    index.backup(target)
    index.upsert("first", [make_embedded("c")])

    def fail(self: Path, other: Path) -> None:
        raise OSError("disk gone")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk gone"):
        index.backup(target, overwrite=True)
    with closing(sqlite3.connect(target)) as copy:
        assert copy.execute("SELECT count(*) FROM documents").fetchone() == (2,)
    assert [file.name for file in tmp_path.iterdir() if "partial" in file.name] == []
