"""A backup of an embedded index holds all that belongs to it, and can be used where it lies."""

import errno
import fcntl
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from similarity.bundle import ModelBundle
from similarity.errors import IndexUnavailable, InvalidInput
from similarity.feedback.opening import workspace_file
from similarity.feedback.protocol import SavedList
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.bundle_store import bundle_for, keep_bundle, store_folder
from similarity.index.sqlite import SqliteIndex
from similarity.index.sqlite import generations as sqlite_generations
from similarity.index.sqlite.generations import StoredGeneration
from similarity.upkeep.backup import back_up
from tests.contract.steps import add_live
from tests.factories import make_embedded
from tests.tiny_bundle import write_tiny_bundle
from tests.workspace_records import forget

BREWERS = SavedList(name="Brewers", question={}, saved_by="ann", saved_at=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def bundle(tmp_path: Path) -> ModelBundle:
    return write_tiny_bundle(tmp_path / "tiny")


@pytest.fixture
def index(tmp_path: Path, bundle: ModelBundle) -> Iterator[SqliteIndex]:
    """One company, embedded by `bundle`, which lies in the index's store."""
    with closing(SqliteIndex(tmp_path / "index.db")) as index:
        add_live(index, "first", encoder_id=bundle.encoder_id)
        index.upsert("first", [make_embedded("a", encoder_id=bundle.encoder_id)])
        keep_bundle(bundle, store_folder(index.path))
        yield index


@pytest.fixture
def workspace(index: SqliteIndex) -> Iterator[SqliteWorkspace]:
    """A saved list, in a workspace that stays open."""
    with closing(SqliteWorkspace(workspace_file(index.path))) as workspace:
        workspace.save_list(BREWERS)
        yield workspace


def backed_up(index: SqliteIndex, target: Path, *, overwrite: bool = False) -> tuple[str, ...]:
    return back_up(index, target, store=store_folder(index.path), overwrite=overwrite).missing_encoders


@pytest.mark.usefixtures("workspace")
def test_a_backup_holds_companies_lists_and_the_model(index: SqliteIndex, bundle: ModelBundle, tmp_path: Path) -> None:
    target = tmp_path / "kept" / "copy.db"
    assert backed_up(index, target) == ()
    assert sorted(each.name for each in target.parent.iterdir()) == ["copy.db", "copy.db.bundles", "copy.db.workspace"]
    with closing(SqliteIndex(target)) as copy:
        assert list(copy.get("first", ["a"])) == ["a"]
        assert bundle_for(copy, store_folder(target)).bundle_id == bundle.bundle_id
    with closing(SqliteWorkspace(workspace_file(target))) as lists:
        assert lists.lists() == [BREWERS]


def test_an_index_that_nobody_judged_has_no_workspace_to_copy(index: SqliteIndex, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    assert back_up(index, target, store=store_folder(index.path)).workspace is None
    assert not workspace_file(target).exists()
    assert not workspace_file(index.path).exists()


def test_a_bundle_that_is_not_at_hand_is_named(index: SqliteIndex, bundle: ModelBundle, tmp_path: Path) -> None:
    missing = back_up(index, tmp_path / "copy.db", store=tmp_path / "nowhere").missing_encoders
    assert missing == (bundle.encoder_id,)


@pytest.mark.parametrize("is_kept", [True, False], ids=["its bundle stays", "its bundle goes too"])
def test_the_model_of_the_copy_is_kept_although_its_generation_is_retired_meanwhile(
    index: SqliteIndex, bundle: ModelBundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_kept: bool
) -> None:
    target, every = tmp_path / "kept" / "copy.db", sqlite_generations.every

    def after_the_copy(copy: sqlite3.Connection) -> list[StoredGeneration]:
        monkeypatch.setattr(sqlite_generations, "every", every)
        for name in ("second", "third"):
            add_live(index, name, encoder_id="other")
        index.retire("first")
        if not is_kept:
            shutil.rmtree(store_folder(index.path))
        return every(copy)

    monkeypatch.setattr(sqlite_generations, "every", after_the_copy)
    if is_kept:
        assert backed_up(index, target) == ()
        with closing(SqliteIndex(target)) as copy:
            assert bundle_for(copy, store_folder(target)).bundle_id == bundle.bundle_id
    else:
        with pytest.raises(IndexUnavailable, match="was retired while it was copied; run the backup again"):
            backed_up(index, target)
        assert not target.exists()


def test_a_backup_during_an_erasure_is_refused(
    index: SqliteIndex, workspace: SqliteWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, every = tmp_path / "kept" / "copy.db", sqlite_generations.every

    def after_the_copy(copy: sqlite3.Connection) -> list[StoredGeneration]:
        forget(workspace, "a")
        return every(copy)

    monkeypatch.setattr(sqlite_generations, "every", after_the_copy)
    with pytest.raises(IndexUnavailable, match="a company was erased during the backup; run the backup again"):
        backed_up(index, target)
    assert not target.exists()
    assert not workspace_file(target).exists()
    monkeypatch.undo()
    backed_up(index, target)


def test_a_second_backup_replaces_the_first_only_when_told(
    index: SqliteIndex, bundle: ModelBundle, workspace: SqliteWorkspace, tmp_path: Path
) -> None:
    target = tmp_path / "copy.db"
    backed_up(index, target)
    index.upsert("first", [make_embedded("b", encoder_id=bundle.encoder_id)])
    workspace.remove_list("Brewers")
    with pytest.raises(InvalidInput, match=r"copy\.db exists"):
        backed_up(index, target)
    with closing(SqliteWorkspace(workspace_file(target))) as lists:
        assert lists.lists() == [BREWERS]
    backed_up(index, target, overwrite=True)
    with closing(SqliteIndex(target)) as copy:
        assert sorted(copy.get("first", ["a", "b"])) == ["a", "b"]
    with closing(SqliteWorkspace(workspace_file(target))) as lists:
        assert lists.lists() == []


def test_another_workspace_where_the_copy_would_lie_is_never_taken_for_part_of_it(
    index: SqliteIndex, tmp_path: Path
) -> None:
    target = tmp_path / "copy.db"
    with closing(SqliteWorkspace(workspace_file(target))) as other:
        other.save_list(BREWERS)
    with pytest.raises(InvalidInput, match=r"copy\.db\.workspace belongs to another index"):
        backed_up(index, target, overwrite=True)
    assert not target.exists()


@pytest.mark.usefixtures("workspace")
def test_nothing_is_written_where_the_workspaces_place_is_taken(index: SqliteIndex, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    with closing(SqliteWorkspace(workspace_file(target))) as other:
        other.save_list(BREWERS)
        for overwrite, why in ((False, "exists"), (True, "in use")):
            with pytest.raises(InvalidInput, match=rf"copy\.db\.workspace .*{why}"):
                backed_up(index, target, overwrite=overwrite)
    assert not target.exists()


KILLED_BACKUP = """
import os, signal, sys
from pathlib import Path
from similarity.index.sqlite import SqliteIndex
from similarity.upkeep.backup import back_up

renamed, rename = [], Path.replace

def rename_or_die(self, target):
    if len(renamed) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    renamed.append(target)
    return rename(self, target)

Path.replace = rename_or_die
back_up(SqliteIndex(sys.argv[1]), Path(sys.argv[2]), store=Path(sys.argv[1] + ".bundles"))
"""


@pytest.mark.parametrize("renamed", [0, 1, 2], ids=["none", "bundle", "bundle and workspace"])
def test_after_a_killed_backup_the_next_one_replaces_what_it_left(
    index: SqliteIndex, bundle: ModelBundle, workspace: SqliteWorkspace, tmp_path: Path, renamed: int
) -> None:
    target = tmp_path / "kept" / "copy.db"
    done = subprocess.run(
        [sys.executable, "-c", KILLED_BACKUP, str(index.path), str(target), str(renamed)], check=False
    )
    assert done.returncode == -signal.SIGKILL
    left = [each.name for each in target.parent.iterdir()]
    assert any(name.endswith(".partial") for name in left)
    assert ("copy.db.workspace" in left, "copy.db" in left) == (renamed == 2, False)
    assert store_folder(target).joinpath(bundle.encoder_id).exists() == bool(renamed)
    workspace.save_list(replace(BREWERS, name="Bakers"))
    backed_up(index, target)
    assert sorted(each.name for each in target.parent.iterdir()) == ["copy.db", "copy.db.bundles", "copy.db.workspace"]
    with closing(SqliteWorkspace(workspace_file(target))) as lists:
        assert {each.name for each in lists.lists()} == {"Bakers", "Brewers"}


@pytest.mark.usefixtures("workspace")
def test_a_killed_overwriting_backup_leaves_the_finished_one_to_who_overwrites(
    index: SqliteIndex, tmp_path: Path
) -> None:
    target = tmp_path / "copy.db"
    backed_up(index, target)
    (tmp_path / ".copy.db.begun").touch()
    with pytest.raises(InvalidInput, match=r"copy\.db exists"):
        backed_up(index, target)


def test_what_another_backup_is_writing_is_left_alone(index: SqliteIndex, tmp_path: Path) -> None:
    with (tmp_path / ".copy.db.abc.partial").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        backed_up(index, tmp_path / "copy.db")
        assert (tmp_path / ".copy.db.abc.partial").exists()
    backed_up(index, tmp_path / "copy.db", overwrite=True)
    assert not (tmp_path / ".copy.db.abc.partial").exists()


def test_a_backup_holds_what_erasures_need_to_know(index: SqliteIndex, tmp_path: Path) -> None:
    index.ledger.remember({"a": ["1:hash"]})
    backed_up(index, tmp_path / "kept" / "copy.db")
    with closing(SqliteIndex(tmp_path / "kept" / "copy.db")) as copy:
        assert copy.ledger.remembered("a") == {"1:hash"}
        assert copy.ledger.key() == index.ledger.key()


def test_a_backup_takes_no_name_of_a_file_of_the_index(index: SqliteIndex) -> None:
    with pytest.raises(InvalidInput, match="is a name for files of the database"):
        backed_up(index, workspace_file(index.path))
    assert not workspace_file(index.path).exists()


@pytest.mark.usefixtures("workspace")
def test_a_backup_that_fails_leaves_no_file(
    index: SqliteIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: Path) -> None:
        path.with_name(f"{path.name}-journal").touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("similarity.index.sqlite.backup.flush", fails)
    with pytest.raises(OSError, match="No space"):
        backed_up(index, tmp_path / "kept" / "copy.db")
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_failed_backup_leaves_an_earlier_one_with_its_workspace(
    index: SqliteIndex, workspace: SqliteWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "kept" / "copy.db"
    backed_up(index, target)
    workspace.remove_list("Brewers")

    def fails(path: Path) -> None:
        if "workspace" not in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("similarity.index.sqlite.backup.flush", fails)
    with pytest.raises(OSError, match="No space"):
        backed_up(index, target, overwrite=True)
    with closing(SqliteWorkspace(workspace_file(target))) as lists:
        assert lists.lists() == [BREWERS]


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize(
    "left", [f"copy.db{of}-{log}" for of in ("", ".workspace") for log in ("wal", "shm", "journal")]
)
def test_a_log_that_sqlite_would_apply_to_the_copy_is_refused(index: SqliteIndex, tmp_path: Path, left: str) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / left).touch()
    with pytest.raises(InvalidInput, match=f"{left} is left from another file"):
        backed_up(index, tmp_path / "kept" / "copy.db")
    assert [each.name for each in (tmp_path / "kept").iterdir()] == [left]


@pytest.mark.usefixtures("workspace")
def test_the_restore_of_the_guide_keeps_the_audit_record_and_copies_of_the_user(
    index: SqliteIndex, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    backed_up(index, kept / "similarity.db")
    (kept / "similarity.db.audit.jsonl").write_text("of a service that tested the backup")
    here = tmp_path / "here"
    here.mkdir()
    (here / "similarity.db.audit.jsonl").write_text("live")
    for name in ("similarity.db-before-upgrade", "similarity.db.workspace.old", "similarity.db-wal"):
        (here / name).write_text("kept, if it is no log")
    guide = Path(__file__).parents[3].joinpath("docs/backup.md").read_text()
    commands = guide.split("```\n")[-2].replace("BUNDLES", "similarity.db.bundles").replace("BACKUP", str(kept))
    subprocess.run(["bash", "-euc", commands], cwd=here, check=True)
    kept_names = ["similarity.db-before-upgrade", "similarity.db.audit.jsonl", "similarity.db.workspace.old"]
    restored = ["similarity.db", "similarity.db.bundles", "similarity.db.workspace"]
    assert sorted(each.name for each in here.iterdir()) == sorted(kept_names + restored)
    assert (here / "similarity.db.audit.jsonl").read_text() == "live"
