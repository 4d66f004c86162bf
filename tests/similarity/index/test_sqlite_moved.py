"""An index file that is moved, replaced or deleted while it is open takes no write that would be lost."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from similarity.errors import IndexUnavailable
from similarity.index.protocol import WriteResult
from similarity.index.sqlite import SqliteIndex, generations, write_ahead_log, writing
from similarity.index.sqlite.files import DamagedRow
from tests.contract.steps import add_live
from tests.factories import make_embedded, unit_vector

NOTICED = "moved, deleted or cut off while in use: put it back or restart the service"


def move(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replace(path: Path) -> None:
    shutil.copyfile(path, path.with_name("copy.db"))
    path.with_name("copy.db").replace(path)


def delete_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def replace_log(path: Path) -> None:
    log = path.with_name(f"{path.name}-wal")
    shutil.copyfile(log, path.with_name("copy-wal"))
    path.with_name("copy-wal").replace(log)


def make_log_anew(path: Path) -> None:
    delete_log(path)
    path.with_name(f"{path.name}-wal").touch()


def cut_log_in_half(path: Path) -> None:
    log = path.with_name(f"{path.name}-wal")
    os.truncate(log, log.stat().st_size // 2)


def delete_shared_memory(path: Path) -> None:
    path.with_name(f"{path.name}-shm").unlink()


PAGE_BYTES = 8192
LOSSES = [Path.unlink, move, replace, delete_log, replace_log, make_log_anew, cut_log_in_half, delete_shared_memory]


@pytest.mark.parametrize("lose", LOSSES)
def test_a_file_that_is_gone_is_noticed_by_the_next_write_and_read(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        index.upsert(add_live(index, "first"), [make_embedded("a")])
        lose(index.path)
        existed = index.path.exists()
        for ask in (
            lambda: index.upsert("first", [make_embedded("b")]),
            lambda: index.take_lease("reembed", holder="a", seconds=60),
            index.live,
            lambda: index.get("first", ["a"]),
            lambda: index.similar("first", unit_vector(1), k=1),
            lambda: index.compact("first"),
            lambda: index.backup(tmp_path / "backup.db"),
        ):
            with pytest.raises(IndexUnavailable, match=NOTICED):
                ask()
        assert index.path.exists() == existed


def test_no_write_behind_the_hole_of_a_log_that_was_cut_off_is_acknowledged(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        index.upsert(add_live(index, "first"), [make_embedded("a")])
        with (tmp_path / "index.db-wal").open("r+b") as log:
            log.truncate(0)
        with pytest.raises(IndexUnavailable):
            index.upsert("first", [make_embedded("b")])


def test_a_file_that_is_lost_during_a_write_is_noticed_before_it_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        write = writing.write

        def write_and_lose(*arguments: Any) -> list[WriteResult]:
            results = write(*arguments)
            index.path.unlink()
            return results

        monkeypatch.setattr(writing, "write", write_and_lose)
        with pytest.raises(IndexUnavailable, match=NOTICED):
            index.upsert("first", [make_embedded("a")])


def test_no_new_file_is_made_in_the_place_of_one_that_is_gone(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        with suppress(IndexUnavailable), index._connections.reading():
            index.path.unlink()
            with pytest.raises(IndexUnavailable, match=NOTICED):
                index.live()
        assert not index.path.exists()


def test_a_file_that_is_put_back_is_used_again(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        index.upsert(add_live(index, "first"), [make_embedded("a")])
        move(index.path)
        with pytest.raises(IndexUnavailable, match=NOTICED):
            index.live()
        index.path.with_name("elsewhere.db").rename(index.path)
        index.upsert("first", [make_embedded("b")])
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        assert set(index.get("first", ["a", "b"])) == {"a", "b"}


def test_processes_that_write_and_empty_the_log_in_turn_find_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with closing(SqliteIndex(path)) as one, closing(SqliteIndex(path)) as other:
        add_live(one, "first")
        for number in range(40):
            writer = (one, other)[number % 2]
            writer.upsert("first", [make_embedded(f"c{number}")])
            if number % 5 == 4:
                writer.compact("first")
        assert one.stats("first").companies == other.stats("first").companies == 40


def copy_over(source: Path, target: Path) -> None:
    """Write a copy over a file like cp, which keeps the inode of the target."""
    with source.open("rb") as old, target.open("r+b") as new:
        new.truncate(0)
        shutil.copyfileobj(old, new)


@pytest.mark.parametrize("after_a_kill", [False, True])
def test_an_older_copy_over_the_file_in_use_is_noticed(tmp_path: Path, after_a_kill: bool) -> None:
    path, older = tmp_path / "index.db", tmp_path / "older.db"
    if after_a_kill:
        kill_with_log(path, writes=5)
    else:
        with closing(SqliteIndex(path)) as index:
            add_live(index, "first")
    shutil.copyfile(path, older)
    with closing(SqliteIndex(path)) as index, closing(SqliteIndex(path)) as other:
        for number in range(20):
            index.upsert("first", [make_embedded(f"n{number}")])
        index.compact("first")
        assert other.live().name == "first"  # the checkpoints of others are no reason
        copy_over(older, path)
        for opened in (index, other):
            with pytest.raises(IndexUnavailable, match="another program wrote to the file"):
                opened.upsert("first", [make_embedded("b")])
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint")
        with pytest.raises(IndexUnavailable, match="another program wrote to the file"):
            index.live()


def test_an_older_copy_over_the_file_during_a_write_is_noticed_before_it_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        index.backup(tmp_path / "older.db")
        write = writing.write

        def write_and_copy(*arguments: Any) -> list[WriteResult]:
            results = write(*arguments)
            copy_over(tmp_path / "older.db", index.path)
            return results

        monkeypatch.setattr(writing, "write", write_and_copy)
        with pytest.raises(IndexUnavailable, match="another program wrote to the file"):
            index.upsert("first", [make_embedded("a")])


def test_handles_of_shared_memory_do_not_add_up(tmp_path: Path) -> None:
    for _ in range(5):
        SqliteIndex(tmp_path / "index.db").close()
    with closing(SqliteIndex(tmp_path / "index.db")), closing(SqliteIndex(tmp_path / "index.db")):
        opened = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    assert len([each for each in opened if each.startswith(f"{tmp_path}/index.db-shm")]) <= 3


def kill_with_log(path: Path, *, writes: int) -> bytearray:
    """What `kill -9` leaves of an index after so many writes, each of them in the log. Returns the log."""
    with closing(SqliteIndex(path.with_name("running.db"))) as index:
        generation = add_live(index, "first")
        index.compact(generation)
        for number in range(writes):
            index.upsert(generation, [make_embedded(f"c{number}")])
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{index.path}{suffix}", f"{path}{suffix}")
    return bytearray(path.with_name(f"{path.name}-wal").read_bytes())


@pytest.mark.parametrize("place", [0, 10, 20, 26, 32, 44, 1000, 20_000])
def test_a_log_whose_damage_hides_commits_is_not_opened(tmp_path: Path, place: int) -> None:
    path = tmp_path / "index.db"
    log = kill_with_log(path, writes=20)
    log[place] ^= 1
    path.with_name("index.db-wal").write_bytes(log)
    for _ in range(2):
        with pytest.raises(IndexUnavailable, match=r"index\.db-wal is damaged, which hides (the last \d+|all) commits"):
            SqliteIndex(path)
    with closing(sqlite3.connect(path)) as connection:  # what the message says
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with closing(SqliteIndex(path)) as index:
        assert index.stats("first").companies < 20


@pytest.mark.parametrize("left", ["all of it", "no last frame", "no last page"])
def test_a_log_that_a_stop_cut_off_is_opened(tmp_path: Path, left: str) -> None:
    path = tmp_path / "index.db"
    log = kill_with_log(path, writes=20)
    if left == "no last frame":
        del log[-PAGE_BYTES - 24 :]
    if left == "no last page":
        log[-PAGE_BYTES:] = bytes(PAGE_BYTES)
    path.with_name("index.db-wal").write_bytes(log)
    with closing(SqliteIndex(path)) as index:
        assert index.stats("first").companies == (20 if left == "all of it" else 19)


@pytest.mark.parametrize("commit", [-2, -3])
def test_a_log_with_the_salt_of_a_commit_damaged_is_not_opened(tmp_path: Path, commit: int) -> None:
    path = tmp_path / "index.db"
    log = kill_with_log(path, writes=20)
    frames = range(32, len(log), PAGE_BYTES + 24)
    commits = [place for place in frames if any(log[place + 4 : place + 8])]
    log[commits[commit] + 8] ^= 1
    path.with_name("index.db-wal").write_bytes(log)
    with pytest.raises(IndexUnavailable, match="is damaged, which hides"):
        SqliteIndex(path)


def test_a_log_of_zeros_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    path.with_name("index.db-wal").write_bytes(bytes(len(kill_with_log(path, writes=3))))
    with pytest.raises(IndexUnavailable, match="hides all commits"):
        SqliteIndex(path)


def test_an_index_with_two_hard_links_is_not_opened(tmp_path: Path) -> None:
    SqliteIndex(tmp_path / "index.db").close()
    other = tmp_path / "other.db"
    other.hardlink_to(tmp_path / "index.db")
    with pytest.raises(IndexUnavailable, match=r"has 2 names \(hard links\)"):
        SqliteIndex(other)
    other.unlink()
    SqliteIndex(tmp_path / "index.db").close()


def test_an_index_behind_a_symbolic_link_is_used(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        index.upsert(add_live(index, "first"), [make_embedded("a")])
    (tmp_path / "link.db").symlink_to(tmp_path / "index.db")
    with closing(SqliteIndex(tmp_path / "link.db")) as index:
        index.upsert("first", [make_embedded("b")])
        delete_log(tmp_path / "index.db")
        with pytest.raises(IndexUnavailable, match=NOTICED):
            index.live()


def test_a_read_neither_follows_links_nor_parses_generations_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        live = index.live()
        monkeypatch.delattr(write_ahead_log, "real_path")
        assert index.live() is live


def test_a_generation_with_a_number_of_another_type_is_damaged(tmp_path: Path) -> None:
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first")
        index.live()
        with closing(sqlite3.connect(index.path)) as other:
            number, *values = other.execute(f"SELECT {generations.COLUMNS} FROM generations").fetchone()
        assert generations._stored(number, *values).number == number
        with pytest.raises(DamagedRow, match="differs from its checksum"):
            generations._stored(float(number), *values)
