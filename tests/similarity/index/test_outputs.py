import os
from contextlib import closing
from pathlib import Path

import pytest

from similarity.errors import IndexUnavailable, InvalidInput
from similarity.feedback.sqlite import SqliteWorkspace
from similarity.index.protocol import Generation
from similarity.index.sqlite import SqliteIndex
from similarity.index.sqlite.files import refuse_database
from similarity.ingest.rejects import RejectsFile
from similarity.search.export import export_neighbours
from similarity.upkeep.backup import back_up
from tests.contract.steps import add_live


def test_no_output_replaces_a_database(tmp_path: Path) -> None:
    path = tmp_path / "similarity.db"
    with closing(SqliteIndex(path)) as index:
        add_live(index, "live")
        before = path.read_bytes()
        with pytest.raises(InvalidInput, match="is a database, which would be lost"):
            RejectsFile(path)
        with pytest.raises(InvalidInput, match="is a database, which would be lost"):
            export_neighbours(index, index.live(), path, k=1)
        for name in ("-wal", "-shm", "-journal", ".workspace", ".bundles/5cbadea183ef6024/model.onnx"):
            with pytest.raises(InvalidInput, match=r"is a name for files of the database .*similarity\.db;"):
                RejectsFile(tmp_path / f"similarity.db{name}")
        assert path.read_bytes() == before


def test_an_export_that_fails_leaves_the_earlier_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **options: object) -> None:
        raise IndexUnavailable("away")

    monkeypatch.setattr("similarity.search.export.all_neighbours", fails)
    path = tmp_path / "out" / "n.parquet"
    path.parent.mkdir()
    path.write_bytes(b"earlier")
    with closing(SqliteIndex(tmp_path / "similarity.db")) as index:
        add_live(index, "live")
        with pytest.raises(IndexUnavailable):
            export_neighbours(index, index.live(), path, k=1)
    assert [file.read_bytes() for file in path.parent.iterdir()] == [b"earlier"]


def test_rejected_rows_do_not_replace_the_file_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "companies.csv"
    path.write_text("id,name,description\n")
    (tmp_path / "link.csv").symlink_to(path)
    for rejects in (path, tmp_path / "link.csv"):
        with pytest.raises(InvalidInput, match="which is being read"):
            RejectsFile(rejects, source=path)


def test_a_backup_replaces_no_workspace(tmp_path: Path) -> None:
    workspace = tmp_path / "similarity.db.workspace"
    SqliteWorkspace(workspace).close()
    before = workspace.read_bytes()
    with closing(SqliteIndex(tmp_path / "similarity.db")) as index:
        with pytest.raises(InvalidInput, match="is another kind of file than the index"):
            index.backup(workspace, overwrite=True)
        index.backup(tmp_path / "copy.db")
        index.backup(tmp_path / "copy.db", overwrite=True)
    assert workspace.read_bytes() == before


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_an_output_without_a_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with closing(SqliteIndex(tmp_path / "similarity.db")) as index:
        for write in (
            lambda: export_neighbours(index, add_generation(index), Path(name), k=1),
            lambda: back_up(index, Path(name), store=tmp_path, overwrite=True),
            lambda: RejectsFile(Path(name)),
        ):
            with pytest.raises(InvalidInput, match="is a folder; name a file"):
                write()


def test_an_output_to_a_loop_of_symbolic_links_is_an_error_of_the_file(tmp_path: Path) -> None:
    loop = tmp_path / "loop.parquet"
    loop.symlink_to(loop)
    refuse_database(loop)
    with closing(SqliteIndex(tmp_path / "similarity.db")) as index:
        assert export_neighbours(index, add_generation(index), loop, k=1) == 0


def test_an_export_has_a_name_of_any_bytes(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.parquet")
    with closing(SqliteIndex(tmp_path / "similarity.db")) as index:
        export_neighbours(index, add_generation(index), path, k=1)
    assert path.read_bytes().startswith(b"PAR1")


def add_generation(index: SqliteIndex) -> Generation:
    if not index.generations():
        add_live(index, "live")
    return index.live()
